use playfield::prelude::*;

#[derive(State, Default)]
struct Ship {
    #[sync(quantize = 0.1, quantize = 0.5)]
    heading: f32,
}

fn main() {}
