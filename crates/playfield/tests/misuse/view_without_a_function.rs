use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(view)]
    hand: List<u8>,
}

fn main() {}
