use playfield::prelude::*;

#[derive(State, Default)]
struct Race {}

#[room(creation = nobody)]
impl Room for Race {}

fn main() {}
