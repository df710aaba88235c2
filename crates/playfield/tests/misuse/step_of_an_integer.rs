use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(quantize = 0.5)]
    width: u32,
}

fn main() {}
