use playfield::prelude::*;

struct Card;

#[derive(State, Default)]
struct Seat {
    hand: List<Card>,
}

fn main() {}
