use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
struct Draw;

#[derive(Message)]
struct Timeout;

#[derive(Message)]
struct Price;

#[room()]
impl Room for Table {}

impl Handle<Draw> for Table {
    fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl On<Timeout> for Table {
    fn on(&mut self, _: Timeout, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Answer<Price> for Table {
    fn answer(&mut self, _: AskId, _: Result<()>, _: &mut Context<Self>) {}
}

fn main() {}
