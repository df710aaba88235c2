use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    hand: Option<Option<u8>>,
}

fn main() {}
