use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
struct Draw;

#[room(messages(Draw))]
impl Room for Table {}

fn main() {}
