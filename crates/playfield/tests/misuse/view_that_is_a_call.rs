use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(view = seen(3), viewer = seats)]
    hand: List<u8>,
}

fn main() {}
