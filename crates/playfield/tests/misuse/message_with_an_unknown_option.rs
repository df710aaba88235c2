use playfield::prelude::*;

#[derive(Message)]
#[message(limit = 10)]
struct Say;

fn main() {}
