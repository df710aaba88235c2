use playfield::prelude::*;

#[derive(State, Default)]
struct Node {
    name: String,
    children: List<Node>,
}

#[derive(State, Default)]
struct Part {
    parts: Map<u32, Self>,
}

fn main() {}
