use playfield::prelude::*;

#[derive(State, Default, Clone)]
enum Phase {
    #[default]
    Waiting,
}

fn main() {}
