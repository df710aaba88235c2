use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
struct Price;

#[room()]
impl Room for Table {
    fn tick(&mut self, cx: &mut Context<Self>) {
        cx.ask("market", &Price);
    }
}

fn main() {}
