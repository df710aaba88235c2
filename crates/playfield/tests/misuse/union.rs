use playfield::prelude::*;

#[derive(State)]
union Number {
    whole: u32,
    part: f32,
}

fn main() {}
