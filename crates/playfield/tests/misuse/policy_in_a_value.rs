use playfield::prelude::*;

#[derive(State, Data, Default, Clone)]
struct Card {
    #[sync(owner)]
    face: u8,
}

fn main() {}
