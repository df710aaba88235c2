use playfield::prelude::*;

#[derive(State, Default)]
struct Race {}

#[derive(Data, Default)]
struct Rules {
    map: String,
}

#[room(criteria(maps))]
impl Room for Race {
    type Options = Rules;
}

fn main() {}
