//! Effects of time: hello, signs of life, ticks, closing.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded, hello, send};
use super::wanderer::Wanderer;
use super::world::{Client, SLOW_TOKEN, World};

const CODE: ErrorCode = ErrorCode::Timeout;
const TIMED_OUT: [Heard; 2] =
    [Heard::Error { request: None, room: None, code: CODE }, Heard::Goodbye { code: CODE }];

#[test]
fn hello_must_come_in_time() {
    for opening in [&b""[..], b"PF1\n", b"PF1\n\x05\0\0"] {
        let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
        let client = world.connect(0);
        world.wait(900);
        world.bytes(client, opening);
        world.wait(90);
        assert_eq!(world.heard(client), [], "bytes that are not a hello make it no later");
        assert_eq!(world.counters(0).hello_timeouts, 0);
        world.wait(100);
        assert_eq!(world.heard(client), TIMED_OUT);
        assert_eq!(world.counters(0).hello_timeouts, 1);
    }
    let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
    let client = world.connect(0);
    world.upgrade(client, Format::Packed);
    world.wait(1100);
    assert_eq!(world.heard(client), TIMED_OUT);
}

#[test]
fn a_silent_client_is_asked_for_a_sign_of_life_and_then_let_go() {
    for websocket in [false, true] {
        let mut world = World::new(1, &[("timeouts.heartbeat", "1000ms")]);
        let client =
            if websocket { world.websocket_client(0, Format::Packed) } else { world.client(0) };
        world.wait(490);
        assert_eq!(world.heard(client), []);
        world.wait(60);
        assert_eq!(world.heard(client), [Heard::Ping], "after half of the heartbeat");
        world.wait(1440);
        assert_eq!(world.heard(client), [], "it is asked once");
        world.wait(100);
        assert_eq!(world.heard(client), TIMED_OUT, "after twice the heartbeat");
    }
}

#[test]
fn a_client_that_answers_stays() {
    let mut world = World::new(1, &[("timeouts.heartbeat", "1000ms")]);
    let client = world.client(0);
    let mut pings = 0;
    for _ in 0..100 {
        world.wait(100);
        if world.heard(client) == [Heard::Ping] {
            pings += 1;
            world.say(
                client,
                &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })),
            );
        }
    }
    assert!((10..=20).contains(&pings), "in 10 seconds: {pings}");
    assert!(!world.is_over(client));
}

#[test]
fn a_client_that_speaks_is_not_asked() {
    let mut world = World::new(1, &[("timeouts.heartbeat", "1000ms")]);
    let client = world.client(0);
    for _ in 0..100 {
        world.wait(100);
        world
            .say(client, &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })));
        assert_eq!(world.heard(client), []);
    }
}

/// Enters a new room of a type.
pub(super) fn enter(world: &mut World, client: Client, room_type: &str) -> RoomNumber {
    let (request, room_type) = (RequestNumber(1), room_type.into());
    let create = ClientMessage::Create(client::Create {
        request,
        room_type,
        private: false,
        code: false,
        key: None,
        options: &[],
    });
    world.say(client, &encoded(Format::Packed, &create));
    world.joined(client).0
}

/// Lets time pass while the client answers pings, and counts them.
fn answer_pings(world: &mut World, client: Client, ms: u64) -> usize {
    let mut pings = 0;
    for _ in 0..ms / 50 {
        world.wait(50);
        let heard = world.heard(client);
        let count = heard.iter().filter(|heard| **heard == Heard::Ping).count();
        if count > 0 {
            world.say(
                client,
                &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })),
            );
        }
        pings += count;
    }
    pings
}

/// Returns the time until the node has given up a client that is silent from here on, in
/// milliseconds, and the number of pings that came before.
fn silence(world: &mut World, client: Client) -> (u64, usize) {
    let mut pings = 0;
    for passed in 1..2000 {
        world.wait(50);
        let heard = world.heard(client);
        pings += heard.iter().filter(|heard| **heard == Heard::Ping).count();
        if heard.contains(&TIMED_OUT[1]) {
            return (passed * 50, pings);
        }
    }
    panic!("the client is never given up");
}

#[test]
fn a_room_notices_a_silent_client_as_soon_as_it_wants() {
    for websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client =
            if websocket { world.websocket_client(0, Format::Packed) } else { world.client(0) };
        enter(&mut world, client, "brisk");
        let spoke = encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 }));
        world.say(client, &spoke);
        let other = world.client(0);
        world.wait(2900);
        assert!(!world.is_over(client));
        let (rest, pings) = silence(&mut world, client);
        assert!((2900 + rest) <= 3300, "three seconds, and two slots of the wheel: {rest}");
        assert_eq!(pings, 1);
        assert_eq!(world.counters(0).rooms, 1, "an empty room stays for a while");
        assert!(!world.is_over(other), "who is in no such room has the node's time");
    }
}

#[test]
fn a_client_is_told_how_long_it_may_be_silent_in_a_room_and_how_long_it_keeps_its_seat() {
    for (room_type, expected) in [
        ("test", (3_600_000, 10_000)),
        ("ticking", (5000, 10_000)),
        ("brisk", (3000, 10_000)),
        ("brisker", (1000, 2000)),
    ] {
        let mut world = World::new(1, &[]);
        let client = world.client(0);
        let create = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: room_type.into(),
            key: None,
            options: &[],
        });
        world.say(client, &encoded(Format::Packed, &create));
        world.wait(60);
        let bodies = world.bodies(client);
        let joined = ServerMessage::decode(Format::Packed, &bodies[0]).unwrap();
        let ServerMessage::Joined(server::Joined { silence_ms, grace_ms, .. }) = joined else {
            panic!("{joined:?}")
        };
        assert_eq!((silence_ms, grace_ms), expected, "{room_type}");
    }
}

#[test]
fn a_room_with_ticks_notices_a_silent_client_after_five_seconds() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "ticking");
    let (passed, pings) = silence(&mut world, client);
    assert!((4700..=5400).contains(&passed), "{passed}");
    assert_eq!(pings, 1);
}

/// Gives a shard more input than it has time for: of many connections that have some, it serves
/// one in each turn of 50 ms. This client's message comes last.
pub(super) fn says_last(world: &mut World, client: Client, others: &[Client]) {
    let spoke = spoken(world, client);
    leaves_last(world, client, &spoke, others);
}

fn spoken(world: &World, client: Client) -> Vec<u8> {
    let pong = encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 }));
    world.framed(client, &pong)
}

/// The same with these bytes of the client, which came last.
pub(super) fn leaves_last(world: &mut World, client: Client, bytes: &[u8], others: &[Client]) {
    for &other in others {
        let spoke = spoken(world, other);
        world.leave(other, &spoke);
    }
    world.leave(client, bytes);
    let before = world.counters(0).messages_in;
    world.each_look_takes(Duration::from_millis(3));
    for _ in 0..others.len() - 5 {
        world.oversleep(50);
        world.turn_once(0);
    }
    let read = (world.counters(0).messages_in - before) as usize;
    assert!((others.len() - 20..=others.len()).contains(&read), "only the last wait: {read}");
    world.each_look_takes(Duration::ZERO);
}

#[test]
fn a_client_whose_input_waits_is_not_silent() {
    let mut world = World::new(1, &[]);
    let others: Vec<Client> = (0..120).map(|_| world.client(0)).collect();
    let player = world.client(0);
    enter(&mut world, player, "ticking");
    says_last(&mut world, player, &others);
    world.run();
    assert!(!world.is_over(player), "what it said was not read for longer than it may be silent");
    let (passed, _) = silence(&mut world, player);
    assert!((4700..=5400).contains(&passed), "it says nothing more: {passed}");
}

#[test]
fn a_hello_is_in_time_that_waits_to_be_read() {
    let mut world = World::new(1, &[("timeouts.hello", "2000ms")]);
    let others: Vec<Client> = (0..120).map(|_| world.client(0)).collect();
    let connect = |world: &mut World, websocket| {
        let client = world.connect(0);
        if websocket {
            world.upgrade(client, Format::Packed);
        }
        let hello = world.framed(client, &hello(Format::Packed));
        (client, if websocket { hello } else { [&PREAMBLE[..], &hello[..]].concat() })
    };
    for websocket in [false, true] {
        let (client, hello) = connect(&mut world, websocket);
        leaves_last(&mut world, client, &hello, &others);
        world.run();
        assert!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]), "{websocket}");

        let (client, hello) = connect(&mut world, websocket);
        leaves_last(&mut world, client, &hello[..hello.len() - 1], &others);
        assert_eq!(world.heard(client), []);
        world.run();
        assert_eq!(world.heard(client), TIMED_OUT, "it was not whole");
    }
    assert_eq!(world.counters(0).hello_timeouts, 2);
}

#[test]
fn who_has_to_decide_about_a_hello_that_waited_to_be_read_has_the_whole_time() {
    let mut world = World::new(1, &[("timeouts.hello", "2000ms")]);
    let others: Vec<Client> = (0..120).map(|_| world.client(0)).collect();
    let client = world.connect(0);
    let hello = Hello { token: SLOW_TOKEN.into(), ..Hello::new(Format::Packed) };
    let hello = world.framed(client, &encoded(Format::Packed, &ClientMessage::Hello(hello)));
    leaves_last(&mut world, client, &[&PREAMBLE[..], &hello[..]].concat(), &others);
    world.run();
    world.wait(1900);
    assert_eq!(world.heard(client), []);
    // What comes meanwhile is not read, and changes nothing.
    world.leave(client, &hello);
    world.wait(250);
    assert_eq!(world.heard(client), TIMED_OUT);
}

#[test]
fn a_message_is_complete_in_time_whose_end_waits_to_be_read() {
    let mut world = World::new(1, &[("timeouts.message", "2000ms")]);
    let others: Vec<Client> = (0..120).map(|_| world.client(0)).collect();
    for is_whole in [true, false] {
        let client = world.client(0);
        let spoke = spoken(&world, client);
        world.bytes(client, &spoke[..1]);
        let end = if is_whole { spoke.len() } else { spoke.len() - 1 };
        leaves_last(&mut world, client, &spoke[1..end], &others);
        assert_eq!(world.heard(client), []);
        world.run();
        let expected = if is_whole { &[][..] } else { &TIMED_OUT };
        assert_eq!(world.heard(client), expected);
    }
    assert_eq!(world.counters(0).closed_unfinished, 1);
}

/// However long the silence is after which a connection counts as lost, the player then has the
/// whole grace to come back.
#[test]
fn the_grace_counts_from_when_the_silence_was_noticed() {
    let mut world = World::new(1, &[("timeouts.reconnect", "2000ms")]);
    let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
    ann.room_of(&mut world, "brisk", "");
    world.wait(3200);
    assert_eq!(world.sessions(), (1, 1), "it is noticed");
    world.wait(9_600);
    assert_eq!((world.members(), world.sessions()), (1, (1, 1)));
    world.wait(500);
    assert_eq!((world.members(), world.sessions()), (0, (0, 0)));
}

#[test]
fn its_player_leaves_for_the_others() {
    let mut world = World::new(1, &[]);
    let (client, other) = (world.client(0), world.client(0));
    enter(&mut world, client, "brisk");
    let id = world.rooms_of(client)[0].1.clone();
    world.join(other, RequestNumber(1), &id);
    world.joined(other);
    let mut left = false;
    for _ in 0..70 {
        world.wait(50);
        world.say(other, &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })));
        left |= world.heard(other).iter().any(
            |heard| matches!(heard, Heard::Event { payload, .. } if payload.ends_with("leaves")),
        );
    }
    assert!(left && world.is_over(client) && !world.is_over(other));
}

#[test]
fn a_client_that_answers_stays_and_gets_one_ping_in_a_period() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "brisk");
    let pings = answer_pings(&mut world, client, 30_000);
    assert!((15..=20).contains(&pings), "one in 1.5 seconds, and a slot more: {pings}");
}

#[test]
fn the_smallest_wish_counts_and_leaving_restores_the_others() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "brisk");
    let brisker = enter(&mut world, client, "brisker");
    let pings = answer_pings(&mut world, client, 10_000);
    assert!((15..=20).contains(&pings), "one in half a second: {pings}");
    let leave = |world: &mut World, room| {
        let leave = ClientMessage::Leave(client::Leave { request: RequestNumber(9), room });
        world.say(client, &encoded(Format::Packed, &leave));
        assert!(matches!(world.heard(client)[..], [.., Heard::Left { .. }]));
    };
    leave(&mut world, brisker);
    let pings = answer_pings(&mut world, client, 30_000);
    assert!((15..=21).contains(&pings), "one in 1.5 seconds: {pings}");
    leave(&mut world, RoomNumber(1));
    let pings = answer_pings(&mut world, client, 60_000);
    assert!((3..=4).contains(&pings), "one in 15 seconds: {pings}");
    let (passed, _) = silence(&mut world, client);
    assert!((45_000..=61_000).contains(&passed), "{passed}");
}

#[test]
fn a_room_on_another_shard_notices_as_soon() {
    let mut world = World::new(2, &[]);
    let (host, client) = (world.client(1), world.client(0));
    enter(&mut world, host, "brisk");
    let id = world.rooms_of(host)[0].1.clone();
    enter(&mut world, client, "test");
    world.join(client, RequestNumber(1), &id);
    world.joined(client);
    assert_eq!((world.shard_of(client), world.shard_of(host)), (0, 1));
    let (passed, pings) = silence(&mut world, client);
    assert!((2800..=3300).contains(&passed), "{passed}");
    assert_eq!(pings, 1);
}

#[test]
fn a_connection_that_moves_to_its_room_is_watched_there() {
    let mut world = World::new(2, &[]);
    let (host, client) = (world.client(1), world.client(0));
    enter(&mut world, host, "brisk");
    let id = world.rooms_of(host)[0].1.clone();
    world.join(client, RequestNumber(1), &id);
    world.joined(client);
    assert_eq!(world.shard_of(client), 1);
    let (passed, pings) = silence(&mut world, client);
    assert!((2800..=3300).contains(&passed), "{passed}");
    assert_eq!(pings, 1);
}

#[test]
fn joining_and_leaving_leave_one_deadline() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    for number in 1..=50 {
        enter(&mut world, client, "brisk");
        let room = RoomNumber(number);
        let leave = ClientMessage::Leave(client::Leave { request: RequestNumber(9), room });
        world.say(client, &encoded(Format::Packed, &leave));
        world.heard(client);
    }
    answer_pings(&mut world, client, 20_000);
    assert_eq!(world.shards[0].links.timeouts.waiting(), 1);
}

#[test]
fn a_shard_that_was_held_up_takes_nobody_for_silent() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "brisk");
    for _ in 0..5 {
        world.now += std::time::Duration::from_secs(5);
        world.run();
        assert!(!world.is_over(client), "it was not asked in time");
        if world.heard(client).contains(&Heard::Ping) {
            world.say(
                client,
                &encoded(Format::Packed, &ClientMessage::Pong(client::Pong { nonce: 0 })),
            );
        }
    }
}

#[test]
fn a_client_that_reads_slowly_but_reads_is_not_silent() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let room = enter(&mut world, client, "brisk");
    world.takes(client, 0);
    world.request(client, room, RequestNumber(5), "big", "200000");
    for _ in 0..20 {
        world.wait(1000);
        world.takes(client, 1000);
    }
    assert!(!world.is_over(client));
    world.wait(3300);
    assert_eq!(world.counters(0).sessions, 0, "it reads nothing any more");
}

#[test]
fn a_connection_that_ends_waits_for_its_client_but_not_for_long() {
    let mut world = World::new(1, &[("timeouts.close", "1000ms")]);
    let client = world.client(0);
    world.takes(client, 0);
    world.say(client, &[0xFF]);
    world.wait(900);
    assert_eq!(world.counters(0).connections, 1);
    world.wait(500);
    assert_eq!(world.counters(0).connections, 0);
}

#[test]
fn rooms_tick_and_sync_at_their_rates() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.room(client, "tick=50 sync=10");
    let before = world.counters(0);
    world.wait(10_000);
    let after = world.counters(0);
    assert_eq!((after.ticks - before.ticks, after.syncs - before.syncs), (500, 100));
    assert_eq!((after.ticks_skipped, after.syncs_missed), (0, 0));
    assert!(after.lateness_us_max <= 2);
}

#[test]
fn a_shard_that_was_held_up_makes_up_for_some_ticks_and_skips_the_rest() {
    let mut world = World::new(1, &[("tuning.catch_up_ticks", "5")]);
    let client = world.client(0);
    world.room(client, "tick=50 sync=50");
    let before = world.counters(0);
    world.now += std::time::Duration::from_secs(2);
    world.run();
    let after = world.counters(0);
    assert_eq!((after.ticks - before.ticks, after.syncs - before.syncs), (5, 1));
    assert_eq!(after.ticks_skipped, 95);
    assert_eq!(after.syncs_missed, 99, "a sync that was due and not made is counted");
}

#[test]
fn versions_follow_the_clock_even_if_syncs_were_missed() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.room(client, "sync=50");
    world.heard(client);
    // How late a room is may depend on another player's secret act, so no version tells of it.
    let version = |world: &mut World| {
        world.say(client, &send(RoomNumber(1), "add", "1"));
        world.wait(20);
        let heard = world.heard(client);
        heard.iter().find_map(|heard| match heard {
            Heard::Patch { version, .. } => Some(*version),
            _ => None,
        })
    };
    let before = version(&mut world).unwrap();
    world.now += std::time::Duration::from_secs(2);
    world.run();
    let after = version(&mut world).unwrap();
    assert_eq!(after - before, 101);
}

#[test]
fn an_empty_shard_has_nothing_to_wait_for() {
    let world = World::new(1, &[]);
    assert_eq!(world.shards[0].next_deadline(), None);
}
