use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(near = x, y, viewer = eyes, radius = 5.0)]
    units: Map<u32, Unit>,
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct Unit {
    x: f32,
    y: f32,
    floor: u8,
    name: String,
}

#[derive(State, Default)]
struct Eye {
    x: f32,
    y: f32,
    floor: u16,
}

fn main() {}
