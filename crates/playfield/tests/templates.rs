//! The games that `playfield new` writes compile, and their own tests pass here.

#[path = "../templates/arena/src/main.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod arena;
#[path = "../templates/cards/src/main.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod cards;
#[path = "../templates/counter/src/main.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod counter;
#[path = "../templates/react/src/main.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod react;
