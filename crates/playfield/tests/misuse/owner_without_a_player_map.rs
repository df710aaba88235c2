use playfield::prelude::*;

#[derive(State, Default)]
struct Table {
    seats: Map<u32, Seat>, // keyed by a number, not by a player
}

#[derive(State, Default)]
struct Seat {
    #[sync(owner)]
    hand: u8,
}

#[room()]
impl Room for Table {
    type Options = ();
}

fn main() {}
