use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(view = sees, viewer = eyes)]
    houses: Map<u32, House>,
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct House {
    #[sync(near = [x, y], viewer = eyes, radius = 5.0, hysteresis = 1.0)]
    units: Map<u32, Eye>,
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct Eye {
    x: f32,
    y: f32,
}

fn sees(_: &House, _: &Eye) -> bool {
    true
}

#[room()]
impl Room for Field {
    type Options = ();
}

fn main() {}
