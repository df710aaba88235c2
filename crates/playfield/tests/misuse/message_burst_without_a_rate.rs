use playfield::prelude::*;

#[derive(Message)]
#[message(burst = 10)]
struct Say;

fn main() {}
