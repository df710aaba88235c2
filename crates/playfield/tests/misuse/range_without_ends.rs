use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(quantize = 0.1, range)]
    height: f32,
}

fn main() {}
