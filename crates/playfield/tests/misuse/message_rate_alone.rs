use playfield::prelude::*;

#[derive(Message)]
#[message = 10]
struct Say;

fn main() {}
