use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(quantize = 0.1, range = 3)]
    height: f32,
}

fn main() {}
