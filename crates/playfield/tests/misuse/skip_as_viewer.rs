use playfield::prelude::*;

#[derive(State, Default)]
struct World {
    #[sync(view = near, viewer = players)]
    ships: Map<u32, u8>,
    #[sync(skip)]
    players: Map<PlayerId, u8>,
}

fn near(_: &u8, _: &u8) -> bool {
    true
}

fn main() {}
