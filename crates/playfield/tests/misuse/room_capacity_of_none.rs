use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[room(capacity = 0)]
impl Room for Table {}

fn main() {}
