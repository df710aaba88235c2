use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(secret)]
    hand: u8,
}

fn main() {}
