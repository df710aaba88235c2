//! Rates of messages and bytes: what comes faster is refused, and past a multiple the connection is
//! closed.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded, request, send};
use super::world::{Client, World};
use crate::shard::session::rates::ROOMS_MAX;

const PACKED: Format = Format::Packed;
const CODE: ErrorCode = ErrorCode::TooFast;

/// Ten messages a second, five at once, closed past three times that.
const MESSAGES: &[(&str, &str)] = &[
    ("limits.session.messages.per_second", "10"),
    ("limits.session.messages.burst", "5"),
    ("tuning.rate_multiple", "3"),
    ("timeouts.heartbeat", "600000ms"),
];

fn ping(nonce: u64) -> Vec<u8> {
    encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce }))
}

fn refusal(request: RequestNumber) -> Heard {
    Heard::Error { request: Some(request), room: None, code: CODE }
}

/// A client in a room with its rate untouched; both native and over WebSocket.
fn clients(world: &mut World) -> [(Client, RoomNumber); 2] {
    [world.client(0), world.websocket_client(0, PACKED)].map(|client| {
        let (room, _) = world.room(client, "");
        world.wait(2000);
        world.heard(client);
        (client, room)
    })
}

fn count(world: &mut World, client: Client, room: RoomNumber) -> String {
    let heard = world.ask(client, room, "add", "0");
    match &heard[..] {
        [Heard::Reply { payload, .. }] => payload.clone(),
        _ => panic!("{heard:?}"),
    }
}

#[test]
fn requests_past_the_burst_are_answered_with_an_error_and_not_applied() {
    let mut world = World::new(1, MESSAGES);
    for (client, room) in clients(&mut world) {
        for number in 1..=5 {
            world.request(client, room, RequestNumber(number), "add", "1");
        }
        assert_eq!(world.heard(client).len(), 5);
        for number in 6..=15 {
            world.request(client, room, RequestNumber(number), "add", "1");
            assert_eq!(world.heard(client), [refusal(RequestNumber(number))]);
        }
        world.wait(100);
        world.heard(client);
        assert_eq!(count(&mut world, client, room), "6", "one is taken again after a tenth");
    }
    let counters = world.counters(0);
    assert_eq!((counters.messages_too_fast, counters.closed_too_fast), (20, 0));
}

/// The errors that a client received, without the name of the setting.
fn refused(world: &mut World, client: Client) -> Vec<String> {
    let text = |body: Vec<u8>| match ServerMessage::decode(PACKED, &body).unwrap() {
        ServerMessage::Error(server::Error { request: None, code: CODE, text, .. }) => {
            Some(text.split_once("; ").unwrap().1.to_owned())
        }
        _ => None,
    };
    world.bodies(client).into_iter().filter_map(text).collect()
}

#[test]
fn sends_that_are_refused_share_an_error() {
    let mut world = World::new(1, MESSAGES);
    for (client, room) in clients(&mut world) {
        let all: Vec<u8> =
            (0..15).flat_map(|_| world.framed(client, &send(room, "add", "1"))).collect();
        world.bytes(client, &all);
        assert_eq!(refused(&mut world, client), ["1 message without an answer was refused"]);
        assert!(!world.is_over(client));
        // The others share another.
        world.wait(300);
        assert_eq!(refused(&mut world, client), ["9 messages without an answer were refused"]);
        assert_eq!(refused(&mut world, client), [""; 0]);
        assert_eq!(count(&mut world, client, room), "6");
    }
}

/// Returns the number of refused messages without an answer, by room.
fn refused_by_room(world: &mut World, client: Client) -> Vec<(Option<RoomNumber>, u64)> {
    let count = |body: Vec<u8>| match ServerMessage::decode(PACKED, &body).unwrap() {
        ServerMessage::Error(server::Error { request: None, room, code: CODE, text, .. }) => {
            let (_, count) = text.split_once("; ").unwrap();
            Some((room, count.split(' ').next().unwrap().parse().unwrap()))
        }
        _ => None,
    };
    world.bodies(client).into_iter().filter_map(count).collect()
}

#[test]
fn a_room_hears_of_its_sends_that_are_refused_also_with_a_ping_after_them() {
    let mut world = World::new(1, MESSAGES);
    for (client, room) in clients(&mut world) {
        let mut all: Vec<u8> =
            (0..13).flat_map(|_| world.framed(client, &send(room, "add", "1"))).collect();
        all.extend(world.framed(client, &ping(7)));
        world.bytes(client, &all);
        assert_eq!(refused_by_room(&mut world, client), [(Some(room), 1)]);
        world.wait(300);
        assert_eq!(refused_by_room(&mut world, client), [(Some(room), 7), (None, 1)]);
    }
}

#[test]
fn refusals_of_more_rooms_than_are_counted_share_an_error() {
    let mut world = World::new(1, MESSAGES);
    let [(client, _), _] = clients(&mut world);
    let all: Vec<u8> = (0..15)
        .flat_map(|number| world.framed(client, &send(RoomNumber(100 + number), "add", "1")))
        .collect();
    world.bytes(client, &all);
    world.wait(300);
    let refused = refused_by_room(&mut world, client);
    // The first is heard of at once.
    assert_eq!(refused.len(), 1 + ROOMS_MAX + 1, "{refused:?}");
    assert_eq!(refused.last(), Some(&(None, 1)));
}

#[test]
fn past_the_multiple_the_connection_is_closed() {
    let mut world = World::new(1, MESSAGES);
    for (client, room) in clients(&mut world) {
        for number in 1..=15 {
            world.request(client, room, RequestNumber(number), "add", "1");
        }
        world.heard(client);
        assert!(!world.is_over(client));
        world.request(client, room, RequestNumber(16), "add", "1");
        assert_eq!(world.heard(client), [Heard::Goodbye { code: CODE }]);
        world.wait(3000);
        assert!(world.is_over(client));
    }
    let counters = world.counters(0);
    assert_eq!((counters.closed_too_fast, counters.sessions), (2, 0));
}

#[test]
fn who_stays_below_the_multiple_stays() {
    let mut world = World::new(1, MESSAGES);
    let [(client, room), _] = clients(&mut world);
    for number in 0..600 {
        world.request(client, room, RequestNumber(1000 + number), "add", "1");
        world.wait(34);
    }
    assert!(!world.is_over(client));
    world.wait(1000);
    world.heard(client);
    let taken: u32 = count(&mut world, client, room).parse().unwrap();
    assert!((203..=210).contains(&taken), "{taken} of ten a second in 20 seconds");
}

#[test]
fn joins_lists_and_pings_count_too() {
    let mut world = World::new(1, MESSAGES);
    let [(client, _), _] = clients(&mut world);
    for nonce in 0..5 {
        world.say(client, &ping(nonce));
    }
    world.heard(client);
    world.say(client, &ping(5));
    assert_eq!(world.heard(client), [Heard::Error { request: None, room: None, code: CODE }]);
    let list = ClientMessage::List(client::List {
        request: RequestNumber(1),
        room_type: None,
        filter: Vec::new(),
        limit: 0,
    });
    world.say(client, &encoded(PACKED, &list));
    assert_eq!(world.heard(client), [refusal(RequestNumber(1))]);
    world.create(client, RequestNumber(2), false, "");
    assert_eq!(world.heard(client), [refusal(RequestNumber(2))]);
    let (room_type, key) = ("test".into(), "7".into());
    let by_key =
        ClientMessage::JoinByKey(client::JoinByKey { request: RequestNumber(3), room_type, key });
    world.say(client, &encoded(PACKED, &by_key));
    assert_eq!(world.heard(client), [refusal(RequestNumber(3))]);
    let channel = "chat".into();
    let members = ClientMessage::Members(client::Members { request: RequestNumber(4), channel });
    world.say(client, &encoded(PACKED, &members));
    assert_eq!(world.heard(client), [refusal(RequestNumber(4))]);
    assert_eq!(world.rooms_of(client).len(), 1);
}

#[test]
fn what_ends_something_is_taken_but_counts() {
    let mut world = World::new(1, MESSAGES);
    let [(client, room), (other, _)] = clients(&mut world);
    for nonce in 0..6 {
        world.say(client, &ping(nonce));
    }
    world.heard(client);
    world.say(
        client,
        &encoded(PACKED, &ClientMessage::Leave(client::Leave { request: RequestNumber(1), room })),
    );
    let heard = world.heard(client);
    assert!(matches!(&heard[..], [Heard::Left { .. }]), "{heard:?}");
    // Acknowledgements alone: none is refused.
    let ack = encoded(PACKED, &ClientMessage::Ack(client::Ack { received: 0 }));
    for _ in 0..15 {
        world.say(other, &ack);
    }
    assert_eq!(world.heard(other), []);
    world.say(other, &ack);
    assert_eq!(world.heard(other), [Heard::Goodbye { code: CODE }]);
}

#[test]
fn pings_of_the_transport_count() {
    let mut world = World::new(1, MESSAGES);
    let [_, (client, _)] = clients(&mut world);
    world.raw(client);
    for _ in 0..5 {
        world.bytes(client, b"\x89\x80\0\0\0\0");
    }
    assert_eq!(world.raw(client), b"\x8A\0".repeat(5));
    for _ in 0..5 {
        world.bytes(client, b"\x89\x80\0\0\0\0");
        world.bytes(client, b"\x8A\x80\0\0\0\0");
    }
    assert_eq!(world.heard(client), [Heard::Error { request: None, room: None, code: CODE }]);
    world.bytes(client, b"\x89\x80\0\0\0\0");
    assert_eq!(world.heard(client), [Heard::Goodbye { code: CODE }]);
}

#[test]
fn bytes_count_as_messages_do() {
    let settings = &[
        ("limits.session.bytes.per_second", "1000"),
        ("limits.session.bytes.burst", "2000"),
        ("limits.message_bytes", "2000"),
        ("tuning.rate_multiple", "2"),
    ];
    let mut world = World::new(1, settings);
    for (client, room) in clients(&mut world) {
        let padding = "x".repeat(980);
        let message = |number| request(PACKED, room, RequestNumber(number), "secret", &padding);
        let bytes = message(1).len();
        assert!((980..=1000).contains(&bytes), "two fit in a burst, three do not: {bytes}");
        world.say(client, &message(1));
        world.say(client, &message(2));
        assert_eq!(world.heard(client).len(), 2);
        world.say(client, &message(3));
        world.say(client, &message(4));
        assert_eq!(world.heard(client), [refusal(RequestNumber(3)), refusal(RequestNumber(4))]);
        world.wait(1000);
        world.heard(client);
        world.say(client, &message(5));
        assert!(matches!(&world.heard(client)[..], [Heard::Reply { .. }]));
    }
}

#[test]
fn the_largest_message_may_be_sent_whatever_the_burst() {
    let settings = &[
        ("limits.session.bytes.per_second", "100"),
        ("limits.session.bytes.burst", "1"),
        ("limits.message_bytes", "2000"),
    ];
    let mut world = World::new(1, settings);
    let client = world.client(0);
    world.say(client, &request(PACKED, RoomNumber(1), RequestNumber(1), "add", &"x".repeat(1900)));
    let not_joined = ErrorCode::NotJoined;
    let expected = Heard::Error { request: Some(RequestNumber(1)), room: None, code: not_joined };
    assert_eq!(world.heard(client), [expected]);
}

#[test]
fn zero_turns_the_rates_off() {
    let settings = &[
        ("limits.session.messages.per_second", "0"),
        ("limits.session.bytes.per_second", "0"),
        ("limits.session.messages.burst", "1"),
        ("limits.session.bytes.burst", "1"),
        ("tuning.rate_multiple", "1"),
    ];
    let mut world = World::new(1, settings);
    let client = world.client(0);
    let all: Vec<u8> = (0..10_000).flat_map(|nonce| world.framed(client, &ping(nonce))).collect();
    world.bytes(client, &all);
    assert_eq!(world.heard(client).len(), 10_000);
}

#[test]
fn the_rate_goes_with_a_connection_to_another_shard() {
    let mut world = World::new(2, MESSAGES);
    let host = world.client(1);
    let (_, id) = world.room(host, "");
    world.wait(2000);
    let client = world.client(0);
    for nonce in 0..4 {
        world.say(client, &ping(nonce));
    }
    world.heard(client);
    world.join(client, RequestNumber(1), &id);
    world.say(client, &ping(9));
    assert_eq!(world.shard_of(client), 1);
    let heard = world.heard(client);
    let refused = Heard::Error { request: None, room: None, code: CODE };
    assert!(heard.contains(&refused), "{heard:?}");
}

#[test]
fn who_exceeds_a_multiple_of_a_message_s_rate_is_disconnected() {
    let mut world = World::new(2, &[]);
    let (here, elsewhere, host) = (world.client(0), world.client(0), world.client(1));
    let (_, id) = world.room(host, "");
    let (room, _) = world.room(here, "");
    // Who is in a room already stays on that room's shard.
    world.room(elsewhere, "");
    world.join(elsewhere, RequestNumber(1), &id);
    let (far_room, _) = world.joined(elsewhere);
    assert_eq!((world.shard_of(here), world.shard_of(elsewhere), world.shard_of(host)), (0, 0, 1));
    for (client, room, shard) in [(here, room, 0), (elsewhere, far_room, 1)] {
        let before = world.counters(shard).messages_too_fast;
        world.request(client, room, RequestNumber(5), "flood", "");
        assert_eq!(world.heard(client), [refusal(RequestNumber(5))]);
        world.request(client, room, RequestNumber(6), "flood", "past");
        let left = Heard::Left { request: None, room, code: CODE };
        let expected = [refusal(RequestNumber(6)), left, Heard::Goodbye { code: CODE }];
        assert_eq!(world.heard(client), expected);
        assert_eq!(world.counters(shard).messages_too_fast - before, 2);
        world.wait(3000);
        assert!(world.is_over(client));
    }
    assert_eq!(world.counters(0).closed_too_fast, 2);
}
