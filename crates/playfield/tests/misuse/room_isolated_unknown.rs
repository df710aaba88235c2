use playfield::prelude::*;

#[derive(State, Default)]
struct Race {}

#[room(persist = 10, isolated = stop)]
impl Room for Race {}

fn main() {}
