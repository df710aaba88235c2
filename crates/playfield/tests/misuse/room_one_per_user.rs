use playfield::prelude::*;

#[derive(State, Default)]
struct Race {}

#[room(one_per_user = nobody)]
impl Room for Race {}

fn main() {}
