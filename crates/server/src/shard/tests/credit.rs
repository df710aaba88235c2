//! Input that waited with a client while it was away is within all rates, wherever its rooms are.

use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_state::{Data, State};
use playfield_wire::{Format, RoomNumber};

use super::wanderer::{Return, Wanderer};
use super::world::World;

/// A room whose message has a rate.
#[derive(State, Default)]
struct Metered {}

#[derive(Message)]
#[message(rate = 10, burst = 10)]
struct Tap;

#[room(messages(Tap))]
impl Room for Metered {}

impl Handle<Tap> for Metered {
    fn handle(&mut self, _: Tap, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Metered>("metered")
}

/// A client in a room of this type: of its own shard, or of another.
fn guest(world: &mut World, room_type: &str, elsewhere: bool) -> (Wanderer, RoomNumber) {
    let mut ann = Wanderer::new(world, 0, false, Format::Packed);
    if !elsewhere {
        let room = ann.room_of(world, room_type, "");
        return (ann, room);
    }
    // Who is in a room already stays on that room's shard.
    ann.room(world, "");
    let mut host = Wanderer::new(world, 1, false, Format::Packed);
    let room = host.room_of(world, room_type, "");
    let room = ann.join(world, &host.rooms[&room].id.clone());
    assert_eq!((world.shard_of(ann.client), world.shard_of(host.client)), (0, 1));
    (ann, room)
}

/// Sends requests, and counts those that were carried out.
fn tap(world: &mut World, ann: &mut Wanderer, room: RoomNumber, numbers: [u32; 2]) -> usize {
    // The message of either room type is its first, and this is a `Tap`.
    let mut payload = Vec::new();
    Tap.encode(&mut payload);
    let payload = String::from_utf8(payload).unwrap();
    for number in numbers[0]..numbers[1] {
        ann.request(world, room, number, "add", &payload);
    }
    if !ann.is_welcome() {
        assert_eq!(ann.come_back(world, 0), Return::Resumed);
    }
    for _ in 0..5 {
        world.wait(20);
        ann.listen(world);
    }
    let is_done = |number: &u32| {
        let reply = format!("{number} = ");
        ann.heard.iter().any(|heard| heard.starts_with(&reply))
    };
    (numbers[0]..numbers[1]).filter(is_done).count()
}

#[test]
fn what_waited_is_within_the_rates_of_the_session_and_of_a_room_wherever_that_is() {
    let of_session = [
        ("limits.session.messages.per_second", "10"),
        ("limits.session.messages.burst", "10"),
        ("tuning.rate_multiple", "100"),
    ];
    for (room_type, settings) in [("test", &of_session[..]), ("metered", &[])] {
        for elsewhere in [false, true] {
            let mut world = World::new(2, settings);
            let (mut ann, room) = guest(&mut world, room_type, elsewhere);
            world.wait(2000);
            let past_burst = tap(&mut world, &mut ann, room, [1, 31]);
            assert!((10..=12).contains(&past_burst), "{room_type} {elsewhere}: {past_burst}");
            world.wait(2000);
            ann.cut(&mut world, usize::MAX);
            world.wait(8000);
            // More than may be on their way to another shard at once.
            let waited = tap(&mut world, &mut ann, room, [101, 181]);
            assert_eq!(waited, 80, "{room_type} {elsewhere}");
            // The credit is for that burst.
            let after = tap(&mut world, &mut ann, room, [201, 231]);
            assert!(after <= 24, "{room_type} {elsewhere}: {after}");
        }
    }
}
