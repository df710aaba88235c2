//! The sharing of a shard's time: a connection is served for a while, and then waits for its next
//! turn; rooms run and write snapshots for a while, and then others come.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::speech::{self, Heard, encoded};
use super::wanderer::{Return, Wanderer};
use super::world::{Client, World};
use crate::shard::frames::Frame;
use crate::shard::mail::ShardMail;
use crate::shard::mail::member::ToMember;
use crate::shard::work::{Line, Work};

const LONG: Duration = Duration::from_millis(1);

fn pings(world: &World, client: usize, count: u64) -> Vec<u8> {
    let ping = |nonce| encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce }));
    (0..count).flat_map(|nonce| world.framed(client, &ping(nonce))).collect()
}

#[test]
fn who_was_served_for_long_enough_waits_and_goes_on_where_it_stopped() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client = world.named_client(0, is_websocket, Format::Packed, "");
        world.heard(client);
        let flood = pings(&world, client, 100);
        let mut visits = 1;
        let mut comes_back = world.visit(client, &flood, LONG);
        let mut heard = world.heard(client);
        assert!(comes_back && heard.len() < 100, "{} pongs at once", heard.len());
        while comes_back {
            comes_back = world.visit(client, &[], Duration::ZERO);
            heard.extend(world.heard(client));
            visits += 1;
        }
        let expected: Vec<_> = (0..100).map(|nonce| Heard::Pong { nonce }).collect();
        assert_eq!((heard, visits), (expected, 2));
    }
}

#[test]
fn who_takes_little_is_never_among_those_who_take_much() {
    let mut world = World::new(1, &[]);
    let (busy, calm) = (world.client(0), world.client(0));
    for _ in 0..10 {
        let ping = pings(&world, busy, 1);
        world.visit(busy, &ping, LONG);
        let ping = pings(&world, calm, 1);
        world.visit(calm, &ping, Duration::from_micros(10));
    }
    assert!(world.takes_much(busy) && !world.takes_much(calm));
    world.wait(10_000);
    assert!(!world.takes_much(busy), "that was long ago");
}

/// Long for a snapshot: a client that is charged for one counts as busy.
const LONG_SNAPSHOT: Duration = Duration::from_millis(3);

#[test]
fn a_snapshot_is_charged_to_the_client_that_joins_or_asks_wherever_the_room_is() {
    for shard in [0, 1] {
        let mut world = World::new(2, &[("limits.session.snapshots.per_second", "1")]);
        let (host, guest) = (world.client(shard), world.client(0));
        let (_, id) = world.room(host, "");
        // From here on its session stays on shard 0.
        world.room(guest, "");
        world.join(guest, RequestNumber(1), &id);
        assert!(!world.takes_much(guest));
        world.each_look_takes(LONG_SNAPSHOT);
        let (room, _) = world.joined(guest);
        world.each_look_takes(Duration::ZERO);
        assert!(world.takes_much(guest) && !world.takes_much(host), "shard {shard}");

        // One that has to wait is charged when it is sent.
        for _ in 0..30 {
            world.wait(2000);
            for client in [host, guest] {
                world.say(
                    client,
                    &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })),
                );
                world.heard(client);
            }
        }
        let resync = encoded(Format::Packed, &ClientMessage::Resync(client::Resync { room }));
        for _ in 0..2 {
            world.say(guest, &resync);
        }
        assert!(!world.takes_much(guest));
        world.each_look_takes(LONG_SNAPSHOT);
        world.wait(1000);
        world.each_look_takes(Duration::ZERO);
        let heard = world.heard(guest);
        let snapshots = heard.iter().filter(|heard| matches!(heard, Heard::Snapshot { .. }));
        assert_eq!(snapshots.count(), 2);
        assert!(world.takes_much(guest) && !world.takes_much(host), "shard {shard}");
    }
}

#[test]
fn what_brings_a_client_up_to_date_that_came_back_is_charged_to_it() {
    for shard in [0, 1] {
        let mut world = World::new(2, &[]);
        let mut host = Wanderer::new(&mut world, shard, false, Format::Packed);
        let there = host.room(&mut world, "");
        let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
        ann.room(&mut world, "");
        ann.join(&mut world, &host.rooms[&there].id.clone());
        ann.cut(&mut world, usize::MAX);
        assert!(!world.takes_much(host.client));
        world.each_look_takes(LONG_SNAPSHOT);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        world.each_look_takes(Duration::ZERO);
        assert!(world.takes_much(ann.client) && !world.takes_much(host.client));
    }
}

/// The room's shard knows no connection of the client.
#[test]
fn what_a_client_of_another_shard_causes_is_charged_to_its_address() {
    let mut world = World::new(2, &[]);
    let host = world.client(1);
    let (_, id) = world.room(host, "");
    let guest = world.client_from([10, 0, 0, 1], 0);
    world.heard(guest);
    world.room(guest, "");
    world.join(guest, RequestNumber(2), &id);
    let (number, _) = world.joined(guest);
    let waiting = [1, 2].map(|last| world.client_from([10, 0, 0, last], 1));
    let waiting = waiting.map(|client| Work::Input(world.place_of(client).1));
    let (_, key) = world.place_of(guest);
    let session = world.shards[0].sessions.get_mut(key).unwrap();
    let seat = session.room_mut(number).unwrap().seat.unwrap();
    let mut frames = Vec::new();
    Frame::Member(seat, ToMember::Measured(LONG)).append(&mut frames);
    for (mail, first) in [(None, 0), (Some(ShardMail::Frames(frames)), 1)] {
        for work in waiting {
            let Work::Input(key) = work else { unreachable!() };
            world.shards[1].links.line_up(key, Line::Input, work);
        }
        world.each_look_takes(LONG);
        mail.into_iter().for_each(|mail| world.shards[1].mail(mail));
        world.each_look_takes(Duration::ZERO);
        let work = &mut world.shards[1].links.work;
        assert_eq!(work.next(), Some(waiting[first]));
        assert!(work.next().is_some() && work.next().is_none());
    }
}

/// Rooms may do much when a client is lost or back: it pays even if it takes nothing that it is
/// sent, and wherever its rooms are.
#[test]
fn being_lost_and_coming_back_are_charged_to_the_client() {
    let mut world = World::new(2, &[]);
    let mut host = Wanderer::new(&mut world, 1, false, Format::Packed);
    let there = host.room(&mut world, "");
    let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
    ann.room(&mut world, "");
    ann.join(&mut world, &host.rooms[&there].id.clone());
    let calm = |world: &mut World, ann: &mut Wanderer| {
        world.each_look_takes(Duration::ZERO);
        for _ in 0..6 {
            world.wait(5000);
            ann.resync_if_welcome(world, RoomNumber(1));
            ann.listen(world);
        }
        assert!(!world.takes_much(ann.client));
    };

    world.each_look_takes(LONG_SNAPSHOT);
    ann.cut(&mut world, usize::MAX);
    world.each_look_takes(Duration::ZERO);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    assert!(world.takes_much(ann.client));

    calm(&mut world, &mut ann);
    ann.cut(&mut world, usize::MAX);
    let shard = world.shard_of(host.client);
    world.each_look_takes(LONG_SNAPSHOT);
    // There is no time for snapshots when Ann comes.
    let mut other = Wanderer::new(&mut world, 0, false, Format::Packed);
    other.room(&mut world, "");
    ann.begin_return(&mut world, 0);
    ann.listen(&mut world);
    assert_eq!(ann.returned, Return::Resumed);
    assert!(world.takes_much(ann.client));

    // What the room on the other shard did.
    let (home, key) = world.place_of(ann.client);
    let seats = world.shards[home].by_outlet(|out| out.seats(key));
    let seat = seats.into_iter().find(|seat| usize::from(seat.shard) == shard).unwrap();
    let address = world.node.addresses.at([10, 0, 0, 1].into(), world.now).name();
    let back = ToMember::Resumed { away: Duration::ZERO, address };
    for what in [ToMember::Lost, back] {
        calm(&mut world, &mut ann);
        world.each_look_takes(LONG_SNAPSHOT);
        world.post(seat.shard, ShardMail::Member(seat, what));
        world.run();
        assert!(world.takes_much(ann.client));
    }
}

#[test]
fn snapshots_for_many_who_join_at_once_are_written_a_few_at_a_time() {
    let mut world = World::new(1, &[]);
    let host = world.client(0);
    let (_, id) = world.room(host, "capacity=20");
    let guests: Vec<_> = (0..10).map(|_| world.client(0)).collect();
    for guest in &guests {
        world.join(*guest, RequestNumber(1), &id);
        world.heard(*guest);
    }
    world.oversleep(60);
    // One of them by the sync, and one of those that wait.
    world.each_look_takes(Duration::from_millis(1));
    let mut joined = Vec::new();
    for _ in 0..20 {
        world.turn_once(0);
        world.oversleep(2);
        let heard = guests.iter().map(|guest| world.heard(*guest));
        let is_joined = |heard: &Vec<Heard>| {
            heard.iter().any(|heard| matches!(heard, Heard::Joined { .. }))
                && heard.iter().any(|heard| matches!(heard, Heard::Snapshot { .. }))
        };
        joined.push(heard.filter(is_joined).count());
    }
    assert_eq!(joined.iter().sum::<usize>(), 10, "{joined:?}");
    assert!(joined.iter().all(|count| *count <= 2), "{joined:?}");
}

#[test]
fn rooms_that_are_always_overdue_starve_neither_input_nor_each_other() {
    const ROOMS: usize = 12;
    let mut world = World::new(1, &[]);
    let clients: Vec<_> = (0..ROOMS)
        .map(|_| {
            let client = world.client(0);
            let (room, _) = world.room(client, "tick=0");
            world.heard(client);
            (client, room)
        })
        .collect();
    // A room takes longer than the time for all rooms of a turn, and more than one becomes due
    // meanwhile.
    world.each_look_takes(Duration::from_millis(4));
    let mut patched = [0; ROOMS];
    let mut pongs = [0; ROOMS];
    // Syncs from before are not counted below.
    for key in world.shards[0].host.rooms.keys() {
        let shard = &mut world.shards[0];
        shard.host.make_up_for_syncs(&mut below!(shard), key);
    }
    for turn in 0..5 * ROOMS as u64 {
        world.oversleep(20);
        let mut syncs = world.counters(0).syncs;
        let (pinging, _) = clients[turn as usize % ROOMS];
        let ping = encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: turn }));
        let ping = world.framed(pinging, &ping);
        world.leave(pinging, &ping);
        for (client, room) in &clients {
            let index = RequestNumber(10 + turn as u32);
            let add = speech::request(Format::Packed, *room, index, "add", "");
            let add = world.framed(*client, &add);
            world.leave(*client, &add);
        }
        world.turn_once(0);
        syncs = world.counters(0).syncs - syncs;
        assert!((1..=3).contains(&syncs), "some rooms, and not all: {syncs}");
        for (number, (client, _)) in clients.iter().enumerate() {
            let heard = world.heard(*client);
            patched[number] +=
                usize::from(heard.iter().any(|it| matches!(it, Heard::Patch { .. })));
            pongs[number] += heard.iter().filter(|it| matches!(it, Heard::Pong { .. })).count();
        }
    }
    assert!(!pongs.contains(&0), "each is served in its turn: {pongs:?}");
    let (least, most) = (patched.iter().min().unwrap(), patched.iter().max().unwrap());
    // Rooms take turns, so they are run as often as each other, or once more. The first ones also
    // ran before all were overdue; and a room has nothing to say whose client was not served since.
    assert!(*least > 0 && most - least <= 3, "each has its turn: {patched:?}");
}

/// A shard whose rooms are always late, and clients from two addresses, of which the first has
/// many.
fn overloaded(many: usize) -> (World, Vec<Client>, Client) {
    let mut world = World::new(1, &[]);
    for _ in 0..4 {
        let client = world.client(0);
        world.room(client, "");
    }
    let many = (0..many).map(|_| world.client(0)).collect();
    let alone = world.connect_from([10, 9, 9, 9], 0);
    (world, many, alone)
}

/// A turn of 20 ms in which all of these say something. How many were answered.
fn overloaded_turn(world: &mut World, many: &[Client]) -> usize {
    world.oversleep(20);
    world.works(Duration::from_millis(20));
    for client in many {
        let ping = encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 0 }));
        let ping = world.framed(*client, &ping);
        world.leave(*client, &ping);
    }
    world.turn_once(0);
    many.iter().filter(|client| !world.heard(**client).is_empty()).count()
}

#[test]
fn input_has_a_share_of_the_time_even_if_rooms_are_always_late() {
    let (mut world, many, _) = overloaded(60);
    world.each_look_takes(Duration::from_micros(50));
    let answered: Vec<_> = (0..20).map(|_| overloaded_turn(&mut world, &many)).collect();
    // A tenth of the time, and what serving one takes.
    assert!(answered.iter().all(|count| (8..=24).contains(count)), "{answered:?}");
}

#[test]
fn one_that_comes_while_rooms_are_late_does_not_wait_for_a_crowd() {
    let (mut world, many, alone) = overloaded(60);
    world.each_look_takes(Duration::from_millis(1));
    for _ in 0..5 {
        assert!(overloaded_turn(&mut world, &many) <= 2);
    }
    let opening = [&PREAMBLE[..], &world.framed(alone, &speech::hello(Format::Packed))].concat();
    world.leave(alone, &opening);
    for turn in 0.. {
        overloaded_turn(&mut world, &many);
        if matches!(world.heard(alone)[..], [Heard::Welcome { .. }]) {
            break;
        }
        assert!(turn < 2, "it is at its address alone");
    }
}

#[test]
fn what_is_said_after_a_hello_waits_apart_from_hellos() {
    let (mut world, many, alone) = overloaded(60);
    world.each_look_takes(Duration::from_millis(1));
    for _ in 0..5 {
        overloaded_turn(&mut world, &many);
    }
    let hello = world.framed(alone, &speech::hello(Format::Packed));
    let opening = [&PREAMBLE[..], &hello, &pings(&world, alone, 3)].concat();
    world.leave(alone, &opening);
    let (mut heard, mut turns) = (Vec::new(), 0);
    while heard.len() < 4 {
        overloaded_turn(&mut world, &many);
        let before = heard.len();
        heard.extend(world.heard(alone));
        assert!(before > 0 || heard.len() <= 1, "the welcome alone: {heard:?}");
        turns += 1;
        assert!(turns < 20, "{heard:?}");
    }
}

#[test]
fn one_that_comes_while_rooms_are_late_does_not_wait_for_strangers_at_many_addresses() {
    for turns_before in [1, 100] {
        let (mut world, _, alone) = overloaded(0);
        let many = (0..100).map(|number| world.client_from([10, 1, 0, number], 0));
        let many: Vec<_> = many.collect();
        for client in &many {
            world.heard(*client);
        }
        world.each_look_takes(Duration::from_micros(300));
        // All came at once, and then each of them always has something to say.
        for _ in 0..turns_before {
            let answered = overloaded_turn(&mut world, &many);
            assert!(answered <= 10, "{answered}");
        }
        let hello = world.framed(alone, &speech::hello(Format::Packed));
        world.leave(alone, &[&PREAMBLE[..], &hello].concat());
        for turn in 0.. {
            overloaded_turn(&mut world, &many);
            if matches!(world.heard(alone)[..], [Heard::Welcome { .. }]) {
                break;
            }
            assert!(turn < 2, "it took nothing lately, and needs little: {turns_before}");
        }
    }
}
