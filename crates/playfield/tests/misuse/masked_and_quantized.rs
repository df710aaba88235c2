use playfield::prelude::*;

#[derive(State, Default)]
struct Ship {
    #[sync(mask = rounded, quantize = 0.1)]
    speed: f32,
}

fn rounded(speed: &f32) -> f32 {
    speed.round()
}

fn main() {}
