use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
struct Dealt;

#[room()]
impl Room for Table {
    fn tick(&mut self, cx: &mut Context<Self>) {
        cx.emit(&Dealt);
    }
}

fn main() {}
