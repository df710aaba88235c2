use playfield::prelude::*;

#[derive(State, Default)]
struct Seat {
    #[sync(angle)]
    heading: f32,
}

fn main() {}
