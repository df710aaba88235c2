use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(quantize)]
    height: f32,
}

fn main() {}
