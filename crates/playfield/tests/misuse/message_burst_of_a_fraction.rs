use playfield::prelude::*;

#[derive(Message)]
#[message(rate = 10, burst = 0.5)]
struct Say;

fn main() {}
