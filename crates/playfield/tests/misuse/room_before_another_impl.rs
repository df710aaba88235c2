use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[room()]
impl Drop for Table {
    fn drop(&mut self) {}
}

fn main() {}
