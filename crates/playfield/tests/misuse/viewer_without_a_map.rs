use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(view = seen, viewer)]
    hand: List<u8>,
}

fn main() {}
