use playfield::prelude::*;

#[derive(Data)]
struct Move {
    #[sync(skip)]
    cache: u8,
}

fn main() {}
