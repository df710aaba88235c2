use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(mask = count)]
    hand: List<u8>,
}

fn count(hand: &List<u8>) -> u32 {
    hand.len() as u32
}

fn main() {}
