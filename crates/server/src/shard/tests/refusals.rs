//! Refusals: a client that does what it must not is sent an error, and nobody else is disturbed.

use playfield_wire::client::{self, ClientMessage, Hello, SchemaRef};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded, hello, request, send};
use super::world::{Client, PANIC_TOKEN, World};

const PACKED: Format = Format::Packed;

/// The client is sent this, and then goodbye; the connection ends.
fn assert_closed(world: &mut World, client: Client, code: ErrorCode) {
    let heard = world.heard(client);
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(heard, expected);
    assert!(world.is_over(client));
    // It may wait for the client to hang up, but not for ever.
    world.wait(10_000);
    assert_eq!(world.counters(0).connections, 0);
}

/// A hello as it came, on a connection that was not greeted.
fn first(world: &mut World, body: &[u8]) -> Client {
    let client = world.connect(0);
    world.bytes(client, b"PF1\n");
    world.say(client, body);
    client
}

/// The client is answered with this code, and goes on.
fn assert_refused(world: &mut World, client: Client, request: RequestNumber, code: ErrorCode) {
    assert_eq!(world.heard(client), [Heard::Error { request: Some(request), room: None, code }]);
    world.say(client, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
    assert_eq!(world.heard(client), [Heard::Pong { nonce: 1 }]);
}

#[test]
fn garbage_instead_of_a_protocol() {
    for garbage in [&b"\x16\x03\x01\x02"[..], b"POKE / HTTP/1.1\r\n", b"PF2\n", b"hello", &[0; 300]]
    {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.bytes(client, garbage);
        assert_closed(&mut world, client, ErrorCode::BadPreamble);
    }
}

#[test]
fn a_client_without_tls_where_only_tls_is_accepted() {
    for (first, is_http) in
        [(&b"PF1\n"[..], false), (b"\0\0", false), (b"GET / HTTP/1.1\r\n", true), (b"G", true)]
    {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.without_tls(client, first);
        if is_http {
            let response = String::from_utf8(world.raw(client)).unwrap();
            assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
            assert!(response.contains("tls.only"), "{response}");
            assert!(world.is_over(client));
        } else {
            assert_closed(&mut world, client, ErrorCode::UnsupportedProtocol);
        }
    }
}

#[test]
fn something_before_hello_and_a_second_hello() {
    let mut world = World::new(1, &[]);
    let client =
        first(&mut world, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
    assert_closed(&mut world, client, ErrorCode::HelloExpected);
    let client = world.client(0);
    world.say(client, &hello(PACKED));
    assert_closed(&mut world, client, ErrorCode::HelloExpected);
}

#[test]
fn a_panic_of_the_authenticator_ends_one_connection() {
    let mut world = World::new(1, &[]);
    let other = world.client(0);
    let hello = Hello { token: PANIC_TOKEN.into(), ..Hello::new(PACKED) };
    let client = first(&mut world, &encoded(PACKED, &ClientMessage::Hello(hello)));
    let code = ErrorCode::Internal;
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(world.heard(client), expected);
    assert!(world.is_over(client));
    world.say(other, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
    assert_eq!(world.heard(other), [Heard::Pong { nonce: 1 }]);
}

#[test]
fn another_protocol() {
    let mut world = World::new(1, &[]);
    let hello = ClientMessage::Hello(Hello { protocol: 2, ..Hello::new(PACKED) });
    let client = first(&mut world, &encoded(PACKED, &hello));
    assert_closed(&mut world, client, ErrorCode::UnsupportedProtocol);
}

#[test]
fn a_format_that_is_not_spoken() {
    let mut world = World::new(1, &[]);
    let client = first(&mut world, &[1, 1, 3, 0, 0, 0, 0]);
    assert_closed(&mut world, client, ErrorCode::WrongFormat);
}

#[test]
fn text_where_binary_was_agreed_and_the_reverse() {
    for format in Format::ALL {
        let mut world = World::new(1, &[]);
        let client = world.websocket_client(0, format);
        let opcode = if format.is_text() { 0x82 } else { 0x81 };
        world.bytes(client, &[opcode, 0x82, 0, 0, 0, 0, b'{', b'}']);
        assert_closed(&mut world, client, ErrorCode::WrongFormat);
    }
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.upgrade(client, Format::Packed);
    world.bytes(client, &[0x81, 0x82, 0, 0, 0, 0, 1, 1]);
    assert_closed(&mut world, client, ErrorCode::WrongFormat);
}

#[test]
fn messages_that_are_none() {
    let ping = encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 300 }));
    let truncated = &ping[..ping.len() - 1];
    let trailing = [&ping[..], &[0]].concat();
    for body in [truncated, &trailing, &[0x7F], &[0x00], &[0x42, 1], &[0x0B, 0x80, 0x00]] {
        let mut world = World::new(1, &[]);
        let client = world.client(0);
        world.say(client, body);
        assert_closed(&mut world, client, ErrorCode::BadMessage);
    }
    for body in ["", "{", "[]", "{\"type\":\"dance\"}", "{\"type\":\"ping\"}"] {
        let mut world = World::new(1, &[]);
        let client = world.websocket_client(0, Format::Json);
        world.say(client, body.as_bytes());
        assert_closed(&mut world, client, ErrorCode::BadMessage);
    }
}

#[test]
fn messages_in_messagepack_that_are_none() {
    let deep = [vec![0x91; 200_000], vec![0xc0]].concat();
    let bomb = [b"\x81\xa4type", &deep[..]].concat();
    let bodies = [
        &b""[..],
        b"\x80",
        b"\x90",
        b"\x81\xa4type",
        b"\x81\xa4type\xa5dance",
        b"\xdf\xff\xff\xff\xff",
        &bomb,
    ];
    for body in bodies {
        let mut world = World::new(1, &[("limits.message_bytes", "1000000")]);
        let client = world.websocket_client(0, Format::Msgpack);
        world.say(client, body);
        assert_closed(&mut world, client, ErrorCode::BadMessage);
    }
}

#[test]
fn frames_that_are_none() {
    let mut world = World::new(1, &[("limits.message_bytes", "100")]);
    let client = world.client(0);
    world.bytes(client, &0_u32.to_le_bytes());
    assert_closed(&mut world, client, ErrorCode::BadMessage);
    // Only the header came: nothing is waited for, or kept.
    let client = world.client(0);
    world.bytes(client, &101_u32.to_le_bytes());
    assert_closed(&mut world, client, ErrorCode::TooLarge);
    let client = world.websocket_client(0, PACKED);
    world.bytes(client, &[0x82, 0x80 | 101]);
    assert_closed(&mut world, client, ErrorCode::TooLarge);
    let client = world.websocket_client(0, PACKED);
    world.bytes(client, &[0x82, 1, 0]);
    assert_closed(&mut world, client, ErrorCode::BadMessage);
}

#[test]
fn a_message_of_the_longest_length_is_taken() {
    let mut world = World::new(1, &[("limits.message_bytes", "100")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    let overhead = send(room, "shout", "").len();
    let text = "x".repeat(100 - overhead);
    world.say(client, &send(room, "shout", &text));
    assert!(matches!(&world.heard(client)[..], [Heard::Event { payload, .. }] if *payload == text));
    world.say(client, &send(room, "shout", &format!("{text}x")));
    assert_closed(&mut world, client, ErrorCode::TooLarge);
}

#[test]
fn names_that_are_not_taken() {
    for (name, code) in
        [("x".repeat(65), ErrorCode::Limit), ("a\nb".into(), ErrorCode::Unauthorized)]
    {
        let mut world = World::new(1, &[]);
        let hello = ClientMessage::Hello(Hello { name: name.into(), ..Hello::new(PACKED) });
        let client = first(&mut world, &encoded(PACKED, &hello));
        assert_closed(&mut world, client, code);
    }
}

#[test]
fn rooms_that_are_not_there() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    for id in ["", "aaaaaaaaaaaaaaaa", "not an id at all", "../../etc/passwd"] {
        world.join(client, RequestNumber(1), id);
        assert_refused(&mut world, client, RequestNumber(1), ErrorCode::RoomNotFound);
    }
    let (room, id) = world.room(client, "");
    world.ask(client, room, "close", "");
    world.join(client, RequestNumber(2), &id);
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::RoomNotFound);
}

#[test]
fn rooms_that_let_nobody_in() {
    let mut world = World::new(1, &[]);
    let (host, client) = (world.client(0), world.client(0));
    let (_, full) = world.room(host, "capacity=1");
    world.join(client, RequestNumber(1), &full);
    assert_refused(&mut world, client, RequestNumber(1), ErrorCode::RoomFull);

    let (room, locked) = world.room(host, "");
    world.ask(host, room, "lock", "");
    world.join(client, RequestNumber(2), &locked);
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::RoomLocked);

    world.create(client, RequestNumber(3), false, "refuse");
    assert_refused(&mut world, client, RequestNumber(3), ErrorCode::Room(1001));
    assert_eq!(world.counters(0).rooms, 2, "a room that refused its founder does not stay");

    world.join(host, RequestNumber(4), &locked);
    assert_refused(&mut world, host, RequestNumber(4), ErrorCode::AlreadyJoined);
}

#[test]
fn rooms_that_cannot_be_made() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.create(client, RequestNumber(1), false, "nonsense");
    assert_refused(&mut world, client, RequestNumber(1), ErrorCode::BadPayload);
    world.create(client, RequestNumber(2), false, "panic");
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::RoomFailed);
    let message = ClientMessage::Create(client::Create {
        request: RequestNumber(3),
        room_type: "other".into(),
        private: false,
        code: false,
        key: None,
        options: &[],
    });
    world.say(client, &encoded(PACKED, &message));
    assert_refused(&mut world, client, RequestNumber(3), ErrorCode::UnknownRoomType);
    // Nothing of them is left, and numbers are not used up by them.
    assert_eq!(world.counters(0).rooms, 0);
    let (room, _) = world.room(client, "");
    assert_eq!(room, RoomNumber(1));
}

#[test]
fn schemas_are_sent_on_request() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let ask = |request, room_type: &'static str| {
        encoded(
            PACKED,
            &ClientMessage::Schema(client::Schema { request, room_type: room_type.into() }),
        )
    };
    world.say(client, &ask(RequestNumber(1), "test"));
    let schema = Heard::Schema {
        request: Some(RequestNumber(1)),
        room_type: "test".into(),
        schema: r#"{"fingerprint":7}"#.into(),
    };
    assert_eq!(world.heard(client), [schema]);
    world.say(client, &ask(RequestNumber(2), "other"));
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::UnknownRoomType);
}

#[test]
fn a_client_built_for_another_schema_gets_the_nodes_schema_and_is_welcome() {
    let mut world = World::new(1, &[]);
    let schema = |room_type: &'static str, fingerprint| SchemaRef {
        room_type: room_type.into(),
        fingerprint,
    };
    for (schemas, is_told) in [
        (vec![schema("test", 7)], false),
        (vec![schema("test", 8), schema("test", 9)], true),
        (vec![schema("other", 8)], false),
    ] {
        let hello = ClientMessage::Hello(Hello { schemas, ..Hello::new(PACKED) });
        let client = first(&mut world, &encoded(PACKED, &hello));
        let told: Vec<_> = world
            .heard(client)
            .into_iter()
            .filter(|heard| matches!(heard, Heard::Schema { .. }))
            .collect();
        let schema = Heard::Schema {
            request: None,
            room_type: "test".into(),
            schema: r#"{"fingerprint":7}"#.into(),
        };
        assert_eq!(told, if is_told { vec![schema] } else { Vec::new() });
        world.join_or_create(client, RequestNumber(1), "");
        world.joined(client);
    }
}

#[test]
fn messages_for_a_room_that_was_not_joined() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.request(client, RoomNumber(1), RequestNumber(5), "add", "");
    assert_refused(&mut world, client, RequestNumber(5), ErrorCode::NotJoined);
    world.say(
        client,
        &encoded(
            PACKED,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(6), room: RoomNumber(1) }),
        ),
    );
    assert_refused(&mut world, client, RequestNumber(6), ErrorCode::NotJoined);
    for message in [
        send(RoomNumber(1), "add", ""),
        encoded(PACKED, &ClientMessage::Resync(client::Resync { room: RoomNumber(1) })),
    ] {
        world.say(client, &message);
        let code = ErrorCode::NotJoined;
        assert_eq!(
            world.heard(client),
            [Heard::Error { request: None, room: Some(RoomNumber(1)), code }]
        );
    }
}

#[test]
fn messages_that_cross_a_left_are_dropped() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.say(
        client,
        &encoded(PACKED, &ClientMessage::Leave(client::Leave { request: RequestNumber(1), room })),
    );
    assert_eq!(
        world.heard(client),
        [Heard::Left { request: Some(RequestNumber(1)), room, code: ErrorCode::Left }]
    );
    world.say(client, &send(room, "add", ""));
    assert_eq!(world.heard(client), []);
    world.request(client, room, RequestNumber(2), "add", "");
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::NotJoined);
}

#[test]
fn messages_before_joined_are_not_for_the_room_yet() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.join_or_create(client, RequestNumber(1), "");
    world.request(client, RoomNumber(1), RequestNumber(2), "add", "");
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::NotJoined);
    world.joined(client);
}

#[test]
fn what_a_room_refuses() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.request(client, room, RequestNumber(1), "refuse", "");
    assert_refused(&mut world, client, RequestNumber(1), ErrorCode::Refused);
    world.say(client, &send(room, "refuse", ""));
    let code = ErrorCode::Refused;
    assert_eq!(world.heard(client), [Heard::Error { request: None, room: Some(room), code }]);
}

#[test]
fn request_numbers_that_are_still_unanswered() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.request(client, room, RequestNumber(1), "later", "");
    world.request(client, room, RequestNumber(1), "add", "");
    assert_refused(&mut world, client, RequestNumber(1), ErrorCode::DuplicateRequest);
    let heard = world.ask(client, room, "answer", "");
    assert!(
        heard.contains(&Heard::Reply { request: RequestNumber(1), payload: "at last".into() }),
        "{heard:?}"
    );
    world.request(client, room, RequestNumber(1), "refuse", "");
    assert_refused(&mut world, client, RequestNumber(1), ErrorCode::Refused);

    world.join_or_create(client, RequestNumber(2), "");
    world.join_or_create(client, RequestNumber(2), "");
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::DuplicateRequest);
    world.request(client, room, RequestNumber(2), "add", "");
    assert_refused(&mut world, client, RequestNumber(2), ErrorCode::DuplicateRequest);
}

#[test]
fn who_vanishes_in_the_middle_of_a_frame_or_floods_disturbs_nobody() {
    let mut world = World::new(1, &[("limits.session.messages.per_second", "0")]);
    let (bystander, vandal, flood) = (world.client(0), world.client(0), world.client(0));
    let (room, id) = world.room(bystander, "");
    for client in [vandal, flood] {
        world.join(client, RequestNumber(1), &id);
        world.joined(client);
    }
    world.bytes(vandal, &[200, 0, 0, 0, 8, 1, 0]);
    world.vanish(vandal);
    let message = world.framed(flood, &request(PACKED, RoomNumber(1), RequestNumber(9), "add", ""));
    world.bytes(flood, &message.repeat(5000));
    let replies =
        world.heard(flood).into_iter().filter(|heard| matches!(heard, Heard::Reply { .. })).count();
    assert_eq!(replies, 5000);
    world.wait(100);
    let heard = world.heard(bystander);
    assert!(
        heard.iter().any(|heard| matches!(heard, Heard::Patch { body, .. } if body == "c=5000 "))
    );
    assert_eq!(
        world.ask(bystander, room, "add", "")[0],
        Heard::Reply { request: RequestNumber(77), payload: "5001".into() }
    );
}

/// Any bytes at all: the node answers or closes, and goes on.
#[test]
fn noise_of_every_kind() {
    let mut state = 1_u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let mut world = World::new(1, &[("limits.address.trusted", "10.0.0.0/8")]);
    let bystander = world.client(0);
    let (room, id) = world.room(bystander, "");
    for round in 0..2000 {
        let client = match round % 5 {
            0 => world.connect(0),
            1 => world.client(0),
            2 => world.websocket_client(0, Format::Packed),
            3 => world.websocket_client(0, Format::Msgpack),
            _ => world.websocket_client(0, Format::Json),
        };
        if round % 5 == 1 {
            world.join(client, RequestNumber(1), &id);
        }
        let mut bytes: Vec<u8> = (0..random()).map(|_| random()).collect();
        if round % 3 == 0 {
            // Framed well, so that the noise is in the message; its kind is often one that exists.
            if let Some(kind) = bytes.first_mut() {
                *kind %= 16;
            }
            bytes = world.framed(client, &bytes);
        }
        world.bytes(client, &bytes);
        world.vanish(client);
    }
    world.heard(bystander);
    assert!(matches!(world.ask(bystander, room, "add", "")[..], [Heard::Reply { .. }]));
    assert_eq!(world.counters(0).connections, 1);
}
