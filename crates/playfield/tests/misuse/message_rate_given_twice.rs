use playfield::prelude::*;

#[derive(Message)]
#[message(rate = 10, rate = 20)]
struct Say;

fn main() {}
