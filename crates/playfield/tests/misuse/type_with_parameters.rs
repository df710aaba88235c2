use playfield::prelude::*;

#[derive(State, Default)]
struct Seat<T> {
    hand: T,
}

fn main() {}
