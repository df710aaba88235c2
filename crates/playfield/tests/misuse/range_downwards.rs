use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(quantize = 0.5, range = 1.0..=-1.0)]
    width: f32,
}

fn main() {}
