use playfield::prelude::*;

#[derive(State, Default)]
struct Ship {
    #[sync(range = 0.0..=3.0)]
    speed: f32,
}

fn main() {}
