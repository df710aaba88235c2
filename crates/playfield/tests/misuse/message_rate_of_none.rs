use playfield::prelude::*;

#[derive(Message)]
#[message(rate = 0)]
struct Say;

fn main() {}
