use playfield::prelude::*;

#[derive(State, Default)]
struct Ship {
    #[sync(angle = 0.01, range = 0.0..=3.0)]
    heading: f32,
}

fn main() {}
