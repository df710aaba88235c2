use playfield::prelude::*;

#[derive(Key, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32, u32);

fn main() {}
