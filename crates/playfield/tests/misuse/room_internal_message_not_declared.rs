use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
struct Timeout;

#[room()]
impl Room for Table {
    fn tick(&mut self, cx: &mut Context<Self>) {
        cx.after(std::time::Duration::ZERO, Timeout);
    }
}

fn main() {}
