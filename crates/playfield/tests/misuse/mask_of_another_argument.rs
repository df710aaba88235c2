use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(mask = reversed)]
    hand: List<u8>,
}

fn reversed(hand: List<u8>) -> List<u8> {
    hand
}

fn main() {}
