use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    cards: Map<bool, u8>,
}

fn main() {}
