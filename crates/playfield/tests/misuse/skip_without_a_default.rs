use playfield::prelude::*;

#[derive(State)]
struct World {
    #[sync(skip)]
    index: Index,
}

struct Index;

fn main() {}
