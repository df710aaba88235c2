//! The course of a conversation: transports, hello, pages, goodbye.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::{Format, RequestNumber};

use super::speech::{Heard, encoded, hello};
use super::world::World;

#[test]
fn all_transports_and_formats_say_the_same() {
    let mut world = World::new(1, &[]);
    let native = world.client(0);
    let binary = world.websocket_client(0, Format::Packed);
    let msgpack = world.websocket_client(0, Format::Msgpack);
    let text = world.websocket_client(0, Format::Json);
    for client in [native, binary, msgpack, text] {
        let (room, _) = world.room(client, "");
        let heard = world.ask(client, room, "add", "");
        assert_eq!(heard, [Heard::Reply { request: RequestNumber(77), payload: "1".into() }]);
        world.wait(50);
        let heard = world.heard(client);
        assert!(matches!(&heard[..], [Heard::Patch { body, .. }] if body == "c=1 "), "{heard:?}");
    }
}

#[test]
fn a_hello_in_packed_may_name_msgpack() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    let mut bytes = b"PF1\n".to_vec();
    bytes.extend(world.framed(client, &[1, 1, 1, 0, 0, 0, 0, 0, 0]));
    world.bytes(client, &bytes);
    let answer = world.raw(client);
    assert!(answer[4..].starts_with(b"\x88\xa4type\xa7welcome"), "{answer:?}");
}

#[test]
fn native_framing_carries_json_too() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    let mut bytes = b"PF1\n".to_vec();
    bytes.extend(world.framed(client, &hello(Format::Json)));
    world.bytes(client, &bytes);
    let answer = world.raw(client);
    assert!(answer[4..].starts_with(br#"{"type":"welcome""#), "{answer:?}");
}

#[test]
fn a_conversation_may_come_one_byte_at_a_time() {
    for format in Format::ALL {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.upgrade(client, format);
        let mut bytes = world.framed(client, &hello(format));
        bytes.extend(
            world.framed(client, &encoded(format, &ClientMessage::Ping(client::Ping { nonce: 5 }))),
        );
        for byte in bytes {
            world.bytes(client, &[byte]);
        }
        let heard = world.heard(client);
        assert!(
            matches!(heard[..], [Heard::Welcome { .. }, Heard::Pong { nonce: 5 }]),
            "{heard:?}"
        );
    }
}

#[test]
fn a_preamble_a_hello_and_more_may_come_at_once() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    let mut bytes = b"PF1\n".to_vec();
    bytes.extend(world.framed(client, &hello(Format::Packed)));
    bytes.extend(
        world.framed(
            client,
            &encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 1 })),
        ),
    );
    let last = bytes.pop().unwrap();
    world.bytes(client, &bytes);
    assert!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]));
    world.bytes(client, &[last]);
    assert_eq!(world.heard(client), [Heard::Pong { nonce: 1 }]);
}

#[test]
fn a_websocket_ping_is_answered_and_a_close_too() {
    let mut world = World::new(1, &[]);
    let client = world.websocket_client(0, Format::Packed);
    world.bytes(client, b"\x89\x82\0\0\0\0hi");
    assert_eq!(world.raw(client), b"\x8A\x02hi");
    world.bytes(client, b"\x88\x82\0\0\0\0\x03\xE8");
    assert_eq!(world.raw(client), b"\x88\x02\x03\xE8");
    assert!(world.is_over(client));
}

#[test]
fn a_fragmented_websocket_message_is_one_message() {
    let mut world = World::new(1, &[]);
    let client = world.websocket_client(0, Format::Packed);
    let ping = encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 9 }));
    let (front, back) = ping.split_at(1);
    let mut bytes = vec![0x02, 0x81, 0, 0, 0, 0];
    bytes.extend(front);
    bytes.extend([0x80, 0x81, 0, 0, 0, 0]);
    bytes.extend(back);
    world.bytes(client, &bytes);
    assert_eq!(world.heard(client), [Heard::Pong { nonce: 9 }]);
}

#[test]
fn after_goodbye_the_session_is_gone_from_its_rooms() {
    let mut world = World::new(1, &[]);
    let (one, other) = (world.client(0), world.websocket_client(0, Format::Packed));
    let (room, id) = world.room(one, "");
    world.join(other, RequestNumber(1), &id);
    world.joined(other);
    world.say(other, &encoded(Format::Packed, &ClientMessage::Goodbye(client::Goodbye {})));
    assert_eq!(world.heard(other), []);
    assert!(world.is_over(other));
    let heard = world.heard(one);
    assert!(
        heard.iter().any(|heard| matches!(heard, Heard::Event { room: at, payload, .. }
            if *at == room && payload.ends_with("leaves"))),
        "{heard:?}"
    );
    assert_eq!(world.counters(0).sessions, 1);
}

#[test]
fn who_closes_its_half_still_gets_what_it_asked_for() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.takes(client, 0);
    world.request(client, room, RequestNumber(1), "add", "");
    world.hang_up(client);
    assert!(!world.is_over(client));
    world.takes(client, usize::MAX);
    assert_eq!(
        world.heard(client),
        [Heard::Reply { request: RequestNumber(1), payload: "1".into() }]
    );
    assert!(world.is_over(client));
    assert_eq!(world.counters(0).connections, 0);
}

#[test]
fn session_numbers_do_not_tell_how_many_sessions_there_were() {
    let mut world = World::new(1, &[]);
    let numbers = [(); 4].map(|()| {
        let client = world.connect(0);
        world.bytes(client, &PREAMBLE);
        world.say(client, &hello(Format::Packed));
        let [Heard::Welcome { session }] = world.heard(client)[..] else { panic!("no welcome") };
        session
    });
    assert!(numbers.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1 << 32), "{numbers:?}");
    assert!(numbers.iter().all(|number| *number < 1 << 53), "JavaScript reads them exactly");
}
