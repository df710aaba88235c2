use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(mask)]
    hand: List<u8>,
}

fn main() {}
