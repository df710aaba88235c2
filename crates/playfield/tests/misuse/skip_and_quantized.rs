use playfield::prelude::*;

#[derive(State, Default)]
struct World {
    #[sync(skip, quantize = 0.1)]
    speed: f32,
}

fn main() {}
