use playfield::prelude::*;

#[derive(State, Default)]
struct TwoPaths {
    #[sync(near = at.x at.y, viewer = eyes, radius = 5.0)]
    units: Map<u32, Unit>,
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct WithoutBrackets {
    #[sync(near = x, y, viewer = eyes, radius = 5.0)]
    units: Map<u32, Unit>,
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct TwoCounts {
    #[sync(near = [x, y], viewer = eyes, radius = 5.0, nearest = 3 4)]
    units: Map<u32, Unit>,
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct Unit {
    x: f32,
    y: f32,
}

#[derive(State, Default)]
struct Eye {
    x: f32,
    y: f32,
}

fn main() {}
