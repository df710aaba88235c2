//! `#[room(…)]` before what a macro of the user's made.

use playfield_room::sim::Sim;
use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
use playfield_state::State;

#[derive(State, Default)]
struct Counter {
    count: u32,
}

#[derive(Message)]
#[reply(u32)]
struct Add;

macro_rules! counting {
    ($room:ty, $message:path, $hz:literal, $self:ident, $tick:block, $join:item) => {
        #[room(messages($message), tick_hz = $hz)]
        impl Room for $room {
            $join

            fn tick(&mut $self, _: &mut Context<Self>) {
                if $self.count > 1_000 $tick
                $tick
                $tick
            }
        }
    };
}

counting!(
    Counter,
    Add,
    10,
    self,
    {
        self.count += 100;
    },
    fn join(&mut self, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
);

impl Handle<Add> for Counter {
    fn handle(&mut self, _: Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.count += 1;
        Ok(self.count)
    }
}

#[test]
fn a_room_may_be_written_by_a_macro() {
    let mut sim = Sim::<Counter>::new(1);
    let ann = sim.join("Ann").unwrap();
    sim.advance(std::time::Duration::from_millis(200));
    assert_eq!(sim.request(ann, Add), Ok(401));
}
