use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[room(rate = 20)]
impl Room for Table {}

fn main() {}
