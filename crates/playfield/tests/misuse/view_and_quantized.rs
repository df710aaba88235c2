use playfield::prelude::*;

#[derive(State, Default)]
struct Sea {
    ships: Map<PlayerId, Ship>,
    #[sync(view = near, viewer = ships, quantize = 0.1)]
    depth: f32,
}

#[derive(State, Default)]
struct Ship {
    x: f32,
}

fn near(_: &f32, _: &Ship) -> bool {
    true
}

fn main() {}
