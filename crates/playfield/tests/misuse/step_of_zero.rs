use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(quantize = 0.0)]
    width: f32,
}

fn main() {}
