use playfield::prelude::*;

#[derive(State, Default)]
struct Table {
    choices: Map<u32, Option<u8>>,
}

#[room()]
impl Room for Table {
    type Options = ();
}

fn main() {}
