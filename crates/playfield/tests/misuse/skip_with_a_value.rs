use playfield::prelude::*;

#[derive(State, Default)]
struct World {
    #[sync(skip = true)]
    index: Vec<u8>,
}

fn main() {}
