//! A room reads the round trips of its players, as its host measured them.

use std::time::Duration;

use crate::support::Host;
use playfield_room::sim::Sim;
use playfield_room::{
    Context, Handle, LeaveReason, Message, Player, PlayerId, Result, Room, RoomType, Settings, room,
};
use playfield_state::{List, State};

/// The round trips noted, in microseconds; 0 is none.
#[derive(State, Default)]
struct Watch {
    noted: List<u64>,
}

#[derive(Message)]
#[reply(u64)]
struct Note(PlayerId);

#[room(messages(Note), round_trip_ms = 2_000)]
impl Room for Watch {
    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.note(player.id(), cx);
    }

    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.note(player.id(), cx);
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.note(player.id(), cx);
    }
}

impl Watch {
    fn note(&mut self, player: PlayerId, cx: &Context<Self>) -> u64 {
        let time = cx.round_trip(player).map_or(0, |time| time.as_micros() as u64);
        self.noted.push(time);
        time
    }
}

impl Handle<Note> for Watch {
    fn handle(&mut self, note: Note, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        Ok(self.note(note.0, cx))
    }
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn measurements_are_smoothed_for_each_player() -> Result<()> {
    let mut sim = Sim::<Watch>::new(1);
    let (ann, ben) = (sim.join("Ann")?, sim.join("Ben")?);
    assert_eq!(sim.request(ann, Note(ann))?, 0);
    sim.measure(ann, ms(80));
    assert_eq!(sim.request(ann, Note(ann))?, 80_000);
    sim.measure(ann, ms(160));
    sim.measure(ben, ms(3));
    assert_eq!(sim.request(ann, Note(ann))?, 90_000);
    assert_eq!(sim.request(ann, Note(ben))?, 3_000);
    assert_eq!(sim.request(ann, Note(PlayerId(9)))?, 0);
    sim.measure(PlayerId(9), ms(5));
    assert_eq!(sim.request(ann, Note(PlayerId(9)))?, 0, "nobody has this number");
    Ok(())
}

#[test]
fn who_leaves_is_forgotten() -> Result<()> {
    let mut sim = Sim::<Watch>::new(1);
    let (ann, ben) = (sim.join("Ann")?, sim.join("Ben")?);
    sim.measure(ann, ms(80));
    sim.leave(ann);
    assert_eq!(sim.request(ben, Note(ann))?, 0);
    assert_eq!(sim.room().noted, [0, 0].into(), "in `leave` too");
    Ok(())
}

/// Returns the reply of `Note`.
fn noted(host: &mut Host) -> u64 {
    let player = PlayerId(1);
    let mut payload = Vec::new();
    playfield_state::Data::encode(&Note(player), &mut payload);
    host.message(player, 0, &payload, Some(playfield_wire::RequestNumber(1)));
    match host.out.take().pop() {
        Some(crate::support::Output::Reply { payload, .. }) => {
            playfield_state::Data::read(playfield_state::Format::Packed, &payload).unwrap()
        }
        other => panic!("no reply: {other:?}"),
    }
}

#[test]
fn a_connection_that_is_lost_takes_its_measurements_along() {
    let mut host = Host::create::<Watch>(1, &[]).unwrap();
    let ann = host.join("Ann").unwrap();
    host.room.measured(host.at, ann, ms(80), &mut host.out);
    assert_eq!(noted(&mut host), 80_000);
    host.room.lost(host.at, ann, &mut host.out);
    assert_eq!(noted(&mut host), 0);
    host.room.measured(host.at, ann, ms(80), &mut host.out);
    assert_eq!(noted(&mut host), 0, "it has no connection");
    host.room.returned(host.at, ann, Duration::ZERO, &mut host.out);
    assert_eq!(noted(&mut host), 0);
    host.room.measured(host.at, ann, ms(200), &mut host.out);
    assert_eq!(noted(&mut host), 200_000, "the first on this connection");
}

#[test]
fn a_room_that_does_not_ask_has_none() {
    let usual = RoomType::of::<Watch>("test");
    let settings = Settings { round_trip_ms: 0, ..usual.settings };
    let mut host = Host::create_of(RoomType { settings, ..usual }, 1, &[]).unwrap();
    let ann = host.join("Ann").unwrap();
    host.room.measured(host.at, ann, ms(80), &mut host.out);
    assert_eq!(noted(&mut host), 0);
}

/// A room that measures nothing.
#[derive(State, Default)]
struct Blind {}

#[room()]
impl Room for Blind {}

#[test]
#[should_panic(expected = "round_trip_ms")]
fn a_simulation_measures_nothing_that_no_node_would() {
    let mut sim = Sim::<Blind>::new(1);
    let ann = sim.join("Ann").unwrap();
    sim.measure(ann, ms(80));
}
