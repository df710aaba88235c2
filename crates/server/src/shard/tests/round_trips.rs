//! Round trips, measured for the rooms that ask for it.

use playfield_websocket::Opcode;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::speech::{encoded, text};
use super::wanderer::{Return, Wanderer};
use super::world::{Client, World};

const PACKED: Format = Format::Packed;

/// Creates a room of a type, and enters it. If it measures, the first ping comes at once, and is
/// answered.
fn enter(world: &mut World, client: Client, room_type: &str) -> (RoomNumber, String) {
    let create = ClientMessage::Create(client::Create {
        request: RequestNumber(1),
        room_type: room_type.into(),
        private: false,
        code: false,
        key: None,
        options: &[],
    });
    world.say(client, &encoded(PACKED, &create));
    settle(world, client);
    world.rooms_of(client).pop().expect("it has joined")
}

/// Waits until a client has joined its room, and its first ping is answered.
fn settle(world: &mut World, client: Client) {
    world.wait(200);
    for nonce in hear(world, client).0 {
        answer(world, client, nonce);
    }
    hear(world, client);
}

/// The nonces of the pings that the client has got, 0 for one without, and what rooms said of round
/// trips.
fn hear(world: &mut World, client: Client) -> (Vec<u64>, Vec<String>) {
    let (mut nonces, mut said) = (Vec::new(), Vec::new());
    for body in world.bodies(client) {
        match ServerMessage::decode(PACKED, &body).unwrap() {
            ServerMessage::Ping(server::Ping { nonce }) => nonces.push(nonce),
            ServerMessage::Event(server::Event { room, payload, .. }) => {
                let payload = text(PACKED, &payload);
                if let Some((what, _)) = payload.split_once(" ms at ") {
                    said.push(format!("room {room}: {what}"));
                }
            }
            _ => {}
        }
    }
    for payload in world.transport_pings(client) {
        nonces.push(payload.try_into().map_or(0, u64::from_le_bytes));
    }
    (nonces, said)
}

/// Waits for a ping that measures, within a period.
fn ping(world: &mut World, client: Client, within_ms: u64) -> u64 {
    for _ in 0..within_ms {
        if let Some(nonce) = hear(world, client).0.into_iter().find(|nonce| *nonce != 0) {
            return nonce;
        }
        world.wait(1);
    }
    panic!("no ping in {within_ms} ms");
}

fn answer(world: &mut World, client: Client, nonce: u64) {
    if world.is_websocket(client) {
        let mut frame = Vec::new();
        let payload = nonce.to_le_bytes();
        playfield_websocket::encode(&mut frame, Opcode::Pong, &payload, Some([9, 8, 7, 6]));
        world.bytes(client, &frame);
    } else {
        world.say(client, &encoded(PACKED, &ClientMessage::Pong(client::Pong { nonce })));
    }
}

/// Answers with this nonce, and returns what rooms say then.
fn said(world: &mut World, client: Client, nonce: u64) -> Vec<String> {
    answer(world, client, nonce);
    hear(world, client).1
}

/// Waits for a ping that measures, within 100 ms.
fn ping_of(world: &mut World, wanderer: &mut Wanderer) -> u64 {
    for _ in 0..100 {
        wanderer.listen(world);
        let transport = world.transport_pings(wanderer.client).into_iter();
        let mut nonces = std::mem::take(&mut wanderer.pings);
        nonces.extend(transport.map(|payload| payload.try_into().map_or(0, u64::from_le_bytes)));
        if let Some(nonce) = nonces.into_iter().find(|nonce| *nonce != 0) {
            return nonce;
        }
        world.wait(1);
    }
    panic!("no ping");
}

/// Returns whether the client's session is measured.
fn is_measured(world: &mut World, client: Client) -> bool {
    let (shard, key) = world.place_of(client);
    let session = world.shards[shard].sessions.get_mut(key);
    session.is_some_and(|session| session.round_trips().is_some())
}

#[test]
fn a_room_hears_how_long_an_answer_took() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client = if is_websocket { world.websocket_client(0, PACKED) } else { world.client(0) };
        enter(&mut world, client, "timed");
        let mut nonces = Vec::new();
        for (time, within) in [(40, 2_100), (700, 2_100), (0, 1_500)] {
            let nonce = ping(&mut world, client, within);
            world.wait(time);
            answer(&mut world, client, nonce);
            assert_eq!(hear(&mut world, client).1, [format!("room 1: 1 takes {time}")]);
            nonces.push(nonce);
        }
        nonces.dedup();
        assert_eq!(nonces.len(), 3, "each ping has a nonce of its own");
    }
}

#[test]
fn a_client_is_pinged_at_the_interval() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "timed");
    let mut pings = 0;
    for _ in 0..600 {
        world.wait(50);
        for nonce in hear(&mut world, client).0 {
            pings += 1;
            answer(&mut world, client, nonce);
        }
    }
    assert!((14..=15).contains(&pings), "in 30 seconds, one in 2 and a slot more: {pings}");
    let waiting = world.shards[0].links.timeouts.waiting();
    assert!(waiting <= 2, "one deadline for each connection: {waiting}");
}

#[test]
fn an_answer_to_what_was_not_sent_measures_nothing() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "timed");
    let nonce = ping(&mut world, client, 2_100);
    for forged in [0, nonce + 1, nonce - 1] {
        assert_eq!(said(&mut world, client, forged), [""; 0]);
    }
    assert_eq!(said(&mut world, client, nonce).len(), 1);
    assert_eq!(said(&mut world, client, nonce), [""; 0], "it was answered");
    let mut frame = Vec::new();
    let browser = world.websocket_client(0, PACKED);
    enter(&mut world, browser, "timed");
    let nonce = ping(&mut world, browser, 2_100).to_le_bytes();
    for payload in [&nonce[..7], &[], &[nonce, nonce].concat()] {
        playfield_websocket::encode(&mut frame, Opcode::Pong, payload, Some([9, 8, 7, 6]));
    }
    world.bytes(browser, &frame);
    assert_eq!(hear(&mut world, browser).1, [""; 0]);
    assert!(!world.is_over(browser));
}

#[test]
fn one_ping_is_under_way_until_it_is_late() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    enter(&mut world, client, "timed often");
    let first = ping(&mut world, client, 700);
    world.wait(9_900);
    assert!(hear(&mut world, client).0.is_empty(), "one is under way");
    let second = ping(&mut world, client, 1_000);
    assert_eq!(said(&mut world, client, first), [""; 0], "ten seconds are over");
    world.wait(5_000);
    assert!(hear(&mut world, client).0.is_empty());
    let heard = said(&mut world, client, second);
    assert!(heard[0].starts_with("room 1: 1 takes 500"), "slow, but not late: {heard:?}");
    ping(&mut world, client, 700);
}

#[test]
fn a_client_that_does_not_read_is_not_measured() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = enter(&mut world, client, "timed");
    let nonce = ping(&mut world, client, 2_100);
    // What it is sent next is stuck: the answer would tell how long that took.
    world.takes(client, 0);
    world.request(client, room, RequestNumber(5), "big", "20000");
    world.wait(100);
    answer(&mut world, client, nonce);
    world.wait(3_000);
    world.takes(client, usize::MAX);
    assert_eq!(hear(&mut world, client), (vec![], vec![]), "neither pinged nor measured");
    let nonce = ping(&mut world, client, 2_100);
    assert_eq!(said(&mut world, client, nonce), ["room 1: 1 takes 0"]);
}

#[test]
fn a_room_on_another_shard_hears_it_too() {
    let mut world = World::new(2, &[]);
    let (host, client) = (world.client(1), world.client(0));
    let (_, id) = enter(&mut world, host, "timed");
    enter(&mut world, client, "test");
    assert!(!is_measured(&mut world, client));
    world.join(client, RequestNumber(1), &id);
    settle(&mut world, client);
    assert_eq!((world.shard_of(client), world.shard_of(host)), (0, 1));
    let nonce = ping(&mut world, client, 2_100);
    world.wait(30);
    answer(&mut world, client, nonce);
    assert_eq!(hear(&mut world, client).1, ["room 2: 2 takes 30"]);
    // A mailbox that is full takes messages before measurements.
    let nonce = ping(&mut world, client, 2_100);
    world.space[1] = 0;
    world.request(client, RoomNumber(2), RequestNumber(5), "add", "");
    answer(&mut world, client, nonce);
    world.space[1] = usize::MAX;
    world.wait(100);
    assert_eq!(hear(&mut world, client).1, [""; 0]);
    let nonce = ping(&mut world, client, 2_100);
    assert_eq!(said(&mut world, client, nonce).len(), 1);
}

#[test]
fn a_connection_that_moves_to_its_room_is_measured_there() {
    let mut world = World::new(2, &[]);
    let (host, client) = (world.client(1), world.client(0));
    let (_, id) = enter(&mut world, host, "timed");
    world.join(client, RequestNumber(1), &id);
    settle(&mut world, client);
    assert_eq!(world.shard_of(client), 1);
    let nonce = ping(&mut world, client, 2_100);
    assert_eq!(said(&mut world, client, nonce), ["room 1: 2 takes 0"]);
}

#[test]
fn the_shortest_interval_counts_and_only_rooms_that_ask_hear_of_it() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let slow = enter(&mut world, client, "timed").0;
    enter(&mut world, client, "test");
    let fast = enter(&mut world, client, "timed often").0;
    let nonce = ping(&mut world, client, 700);
    let rooms = |heard: Vec<String>| heard.len();
    assert_eq!(rooms(said(&mut world, client, nonce)), 2);
    let nonce = ping(&mut world, client, 700);
    assert_eq!(rooms(said(&mut world, client, nonce)), 2);
    let leave = |world: &mut World, room| {
        let leave = ClientMessage::Leave(client::Leave { request: RequestNumber(9), room });
        world.say(client, &encoded(PACKED, &leave));
    };
    leave(&mut world, fast);
    let nonce = ping(&mut world, client, 2_200);
    assert_eq!(said(&mut world, client, nonce), ["room 1: 1 takes 0"]);
    world.wait(1_900);
    assert!(hear(&mut world, client).0.is_empty(), "every two seconds again");
    assert!(is_measured(&mut world, client));
    leave(&mut world, slow);
    assert!(!is_measured(&mut world, client), "it takes no memory");
    world.wait(5_000);
    assert!(hear(&mut world, client).0.is_empty());
}

#[test]
fn a_resumed_session_is_measured_again() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let mut ann = Wanderer::new(&mut world, 0, is_websocket, PACKED);
        let room = ann.room_of(&mut world, "timed", "");
        let before = ping_of(&mut world, &mut ann);
        ann.cut(&mut world, usize::MAX);
        world.wait(1_000);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        let after = ping_of(&mut world, &mut ann);
        assert_ne!(before, after);
        answer(&mut world, ann.client, before);
        answer(&mut world, ann.client, after);
        ann.listen(&mut world);
        let measured: Vec<_> = ann.heard.iter().filter(|heard| heard.contains("takes")).collect();
        assert_eq!(measured.len(), 1, "{measured:?}");
        assert!(measured[0].starts_with(&format!("{room}: 1 takes ")), "{measured:?}");
    }
}
