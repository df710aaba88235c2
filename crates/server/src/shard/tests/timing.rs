//! What happens with time: hello, signs of life, ticks, closing.

use playfield_wire::client::ClientMessage;
use playfield_wire::{ErrorCode, Format, RoomNumber};

use super::speech::{Heard, encoded, send};
use super::world::World;

const CODE: ErrorCode = ErrorCode::Timeout;
const TIMED_OUT: [Heard; 2] =
    [Heard::Error { request: None, room: None, code: CODE }, Heard::Goodbye { code: CODE }];

#[test]
fn hello_must_come_in_time() {
    for opening in [&b""[..], b"PF1\n", b"PF1\n\x05\0\0"] {
        let mut world = World::new(1, &[("hello_timeout_ms", "1000")]);
        let client = world.connect(0);
        world.wait(900);
        world.bytes(client, opening);
        world.wait(90);
        assert_eq!(world.heard(client), [], "bytes that are no hello make it no later");
        world.wait(100);
        assert_eq!(world.heard(client), TIMED_OUT);
    }
    let mut world = World::new(1, &[("hello_timeout_ms", "1000")]);
    let client = world.connect(0);
    world.upgrade(client, Format::Packed);
    world.wait(1100);
    assert_eq!(world.heard(client), TIMED_OUT);
}

#[test]
fn a_silent_client_is_asked_for_a_sign_of_life_and_then_let_go() {
    for websocket in [false, true] {
        let mut world = World::new(1, &[("heartbeat_ms", "1000")]);
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
    let mut world = World::new(1, &[("heartbeat_ms", "1000")]);
    let client = world.client(0);
    let mut pings = 0;
    for _ in 0..100 {
        world.wait(100);
        if world.heard(client) == [Heard::Ping] {
            pings += 1;
            world.say(client, &encoded(Format::Packed, &ClientMessage::Pong { nonce: 0 }));
        }
    }
    assert!((10..=20).contains(&pings), "in 10 seconds: {pings}");
    assert!(!world.is_over(client));
}

#[test]
fn a_client_that_speaks_is_not_asked() {
    let mut world = World::new(1, &[("heartbeat_ms", "1000")]);
    let client = world.client(0);
    for _ in 0..100 {
        world.wait(100);
        world.say(client, &encoded(Format::Packed, &ClientMessage::Pong { nonce: 0 }));
        assert_eq!(world.heard(client), []);
    }
}

#[test]
fn a_connection_that_ends_waits_for_its_client_but_not_for_long() {
    let mut world = World::new(1, &[("close_timeout_ms", "1000")]);
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
    let mut world = World::new(1, &[("catch_up_ticks_max", "5")]);
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
