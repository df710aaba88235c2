use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    seats: Map<PlayerId, u8>,
    #[sync(view = near, viewer = seats)]
    things: Map<u32, u16>,
    #[sync(view = told, viewer = seats)]
    whole: List<u8>,
    #[sync(view = alone, viewer = seats)]
    others: Map<u32, u16>,
}

fn near(_: &u32, _: &u8) -> bool {
    true
}

fn told(_: &List<u8>, _: &u8) -> u8 {
    1
}

fn alone(_: &u16) -> bool {
    true
}

fn main() {}
