use playfield::prelude::*;

#[derive(State, Default)]
struct World {
    #[sync(owner, skip)]
    hands: Map<PlayerId, u8>,
}

fn main() {}
