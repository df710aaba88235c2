use playfield::prelude::*;

#[derive(State, Default)]
struct Ship {
    #[sync(hidden, quantize = 0.1)]
    speed: f32,
}

fn main() {}
