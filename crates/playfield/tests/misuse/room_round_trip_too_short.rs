use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[room(round_trip_ms = 99)]
impl Room for Table {}

fn main() {}
