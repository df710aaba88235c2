use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(hidden = 1)]
    deck: List<u8>,
}

fn main() {}
