use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(owner, hidden)]
    hand: u8,
}

fn main() {}
