use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[room(silence_ms = 99)]
impl Room for Table {}

fn main() {}
