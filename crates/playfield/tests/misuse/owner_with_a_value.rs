use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(owner = 3)]
    hand: Map<PlayerId, u8>,
}

fn main() {}
