use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(view = near)]
    units: Map<u32, Unit>,
}

#[derive(State, Default)]
struct Unit {
    x: i32,
}

fn near(_: &Unit, _: &Unit) -> bool {
    true
}

fn main() {}
