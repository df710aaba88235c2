use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    avatars: Map<PlayerId, u32>,
    #[sync(viewer = avatars)]
    units: Map<u32, u32>,
}

fn main() {}
