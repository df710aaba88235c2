use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

mod cards {
    #[derive(playfield::Message)]
    pub struct Draw;
}

use cards::Draw as DrawCard;

#[derive(Message)]
struct Draw;

#[room(messages(Draw, DrawCard))]
impl Room for Table {}

impl Handle<Draw> for Table {
    fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Handle<DrawCard> for Table {
    fn handle(&mut self, _: DrawCard, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
