use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(near = (unit, eye), viewer = eyes, radius = 5.0)]
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

fn unit(unit: &Unit) -> [f32; 3] {
    [unit.x, unit.y, 0.0]
}

fn eye(eye: &Eye) -> [f32; 2] {
    [eye.x, eye.y]
}

fn main() {}
