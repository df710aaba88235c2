use playfield::prelude::*;

#[derive(Data, Clone)]
enum Nothing {}

fn main() {}
