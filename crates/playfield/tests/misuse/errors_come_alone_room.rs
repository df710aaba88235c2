//! Errors are reported where they are, and nothing else where the types are used.
use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

#[derive(Message)]
#[message(rate = 0)]
#[reply(u32)]
struct Say;

#[derive(Message)]
struct Said;

#[derive(Message)]
enum Nothing {}

#[room(messages(Say, Say), capacity = 0, events(Said, Nothing), tick = 5, creation = me, asks(5))]
impl Room for Table {
    async fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        std::future::ready(player.id()).await;
        cx.emit(&Said);
        Ok(())
    }
}

impl Handle<Say> for Table {
    fn handle(&mut self, _: Say, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        cx.emit(&Said);
        Ok(1)
    }
}

fn main() {
    let _ = Server::new().room::<Table>("table");
}
