use playfield::prelude::*;

#[derive(Data)]
enum Term {
    Number(i64),
    Sum(Vec<Term>),
}

#[derive(Message)]
struct Reply {
    text: String,
    to: Option<Box<Reply>>,
}

fn main() {}
