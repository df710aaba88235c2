//! The id of a timer is kept in the state, and means nothing in another room.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{Context, Handle, Message, On, Player, PlayerId, Result, Room, TimerId, room};
use playfield_state::{Map, State, load, save};

#[derive(State, Default)]
struct Turn {
    ended: u32,
    #[sync(hidden)]
    timer: TimerId,
    #[sync(hidden)]
    alarms: Map<PlayerId, Option<TimerId>>,
}

#[derive(Message)]
struct Over;

#[derive(Message)]
struct Begin;

#[derive(Message)]
#[reply(bool)]
struct Stop;

#[room(messages(Begin, Stop), internal(Over))]
impl Room for Turn {}

impl Handle<Begin> for Turn {
    fn handle(&mut self, _: Begin, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.cancel(self.timer);
        self.timer = cx.after(Duration::from_secs(10), Over);
        self.alarms.insert(player.id(), Some(self.timer));
        Ok(())
    }
}

impl Handle<Stop> for Turn {
    fn handle(&mut self, _: Stop, _: &Player, cx: &mut Context<Self>) -> Result<bool> {
        Ok(cx.cancel(self.timer))
    }
}

impl On<Over> for Turn {
    fn on(&mut self, _: Over, _: &mut Context<Self>) -> Result<()> {
        self.ended += 1;
        Ok(())
    }
}

#[test]
fn a_timer_is_canceled_by_an_id_in_the_state() {
    let mut sim = Sim::<Turn>::new(1);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.request(ann, Stop), Ok(false), "the default is no timer");
    sim.send(ann, Begin).unwrap();
    sim.advance(Duration::from_secs(9));
    sim.send(ann, Begin).unwrap();
    sim.advance(Duration::from_secs(9));
    assert_eq!(sim.room().ended, 0);
    assert_eq!(sim.request(ann, Stop), Ok(true));
    assert_eq!(sim.request(ann, Stop), Ok(false));
    sim.advance(Duration::from_secs(20));
    assert_eq!(sim.room().ended, 0);
}

#[test]
fn an_id_of_an_earlier_room_cancels_nothing() {
    let mut old = Sim::<Turn>::new(1);
    let ann = old.join("Ann").unwrap();
    old.send(ann, Begin).unwrap();
    let saved = save(old.room());

    let mut new = Sim::<Turn>::new(2);
    let bob = new.join("Bob").unwrap();
    new.send(bob, Begin).unwrap();
    new.room_mut().timer = load::<Turn>(&saved).unwrap().timer;
    assert_eq!(new.request(bob, Stop), Ok(false));
    new.advance(Duration::from_secs(10));
    assert_eq!(new.room().ended, 1);
}
