//! What runs when a room ends, and what does not.

use std::sync::Mutex;
use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{Context, Handle, Message, On, Player, Result, Room, room};
use playfield_state::State;
use playfield_wire::ErrorCode;

/// The callbacks that ran, of the one room here.
static CALLED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

fn called(what: &'static str) {
    CALLED.lock().unwrap().push(what);
}

#[derive(State, Default)]
struct Mortal {
    /// It is not a player's copy.
    #[sync(hidden)]
    is_room: bool,
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if self.is_room {
            called("drop");
        }
    }
}

#[derive(Message)]
struct End;

#[derive(Message)]
struct Ring;

#[room(messages(End), internal(Ring))]
impl Room for Mortal {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { is_room: true })
    }

    fn leave(&mut self, _: &Player, _: &mut Context<Self>) {
        called("leave");
    }
}

impl Handle<End> for Mortal {
    fn handle(&mut self, _: End, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.after(Duration::from_millis(1), Ring);
        cx.compute(|| Ring)?;
        cx.close("over");
        Ok(())
    }
}

impl On<Ring> for Mortal {
    fn on(&mut self, _: Ring, _: &mut Context<Self>) -> Result<()> {
        called("on");
        Ok(())
    }
}

#[test]
fn when_a_room_ends_its_state_is_dropped_and_no_callback_runs_any_more() {
    let mut sim = Sim::<Mortal>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.request(ann, End).unwrap();
    assert!(sim.is_closed());
    assert_eq!(sim.why_gone(bob).unwrap().code(), ErrorCode::RoomClosed);
    sim.run_background();
    sim.advance(Duration::from_secs(60));
    assert_eq!(*CALLED.lock().unwrap(), ["drop"]);
}
