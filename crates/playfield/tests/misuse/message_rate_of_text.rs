use playfield::prelude::*;

#[derive(Message)]
#[message(rate = "fast")]
struct Say;

fn main() {}
