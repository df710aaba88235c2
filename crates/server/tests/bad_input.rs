//! Invalid input: its sender gets a typed error, the connection is closed where its stream can't be
//! trusted, and nobody else is disturbed.

use crate::plain as common;

use std::io::{Read, Write};

use common::{Client, Do, Transport, connect, server};
use playfield_server::Running;
use playfield_wire::client::{self, ClientMessage, Hello, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

/// Someone who plays on whatever others do.
struct Bystander(Client);

impl Bystander {
    fn new(server: &Running) -> Self {
        Self(Client::seated(server, "Bystander"))
    }

    fn is_undisturbed(&mut self) {
        assert!(self.0.count() > 0);
    }
}

/// The error that a raw native connection gets, before it is closed.
fn raw(server: &Running, bytes: &[u8]) -> Option<ErrorCode> {
    let mut stream = connect(server);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let length = u32::from_le_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    match ServerMessage::decode(Format::Packed, answer.get(4..4 + length)?).ok()? {
        ServerMessage::Error(server::Error { code, .. }) => Some(code),
        _ => None,
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"PF1\n".to_vec();
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn garbage_instead_of_a_protocol_is_a_bad_preamble() {
    let server = server(|_| {});
    let mut bystander = Bystander::new(&server);
    for garbage in [&b"PF2\n"[..], b"hello", &[0; 64], &[0xFF; 3]] {
        assert_eq!(raw(&server, garbage), Some(ErrorCode::BadPreamble), "{garbage:?}");
    }
    bystander.is_undisturbed();
}

#[test]
fn what_is_no_http_request_is_refused_as_one() {
    let server = server(|_| {});
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "GET \r\n\r\n",
    ] {
        let mut stream = connect(&server);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let long = "x".repeat(9_000);
    for (head, expected) in [
        (format!("GET /{long} HTTP/1.1\r\n"), "HTTP/1.1 414"),
        (format!("GET / HTTP/1.1\r\nX: {long}"), "HTTP/1.1 431"),
    ] {
        let mut stream = connect(&server);
        let _ = stream.write_all(head.as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(expected), "{answer}");
    }
}

#[test]
fn frames_that_are_empty_or_too_large_end_the_connection() {
    let server = server(|config| config.limits.message_bytes = 1_000);
    let mut bystander = Bystander::new(&server);
    assert_eq!(raw(&server, b"PF1\n\0\0\0\0"), Some(ErrorCode::BadMessage));
    assert_eq!(
        raw(&server, b"PF1\n\xE9\x03\0\0"),
        Some(ErrorCode::TooLarge),
        "1001 bytes announced"
    );
    assert_eq!(raw(&server, b"PF1\n\xFF\xFF\xFF\xFF"), Some(ErrorCode::TooLarge));
    let mut ann = Client::seated(&server, "Ann");
    // 1000 bytes in all are taken: the request's prefix is four bytes, the message is not one.
    ann.say_bytes(&[&[7, 1, 9, 0][..], &[0; 996]].concat());
    let refused = ann.expect(|message| match message {
        ServerMessage::Error(server::Error { request: Some(RequestNumber(9)), code, .. }) => {
            Some(*code)
        }
        _ => None,
    });
    assert_eq!(refused, ErrorCode::BadPayload);
    let mut websocket = Client::hello(&server, Transport::WebSocket, Format::Packed, "Web");
    websocket.say_bytes(&[0; 1_001]);
    assert_eq!(websocket.ending().0, Some(ErrorCode::TooLarge));
    bystander.is_undisturbed();
}

#[test]
fn a_conversation_begins_with_one_hello() {
    let server = server(|_| {});
    assert_eq!(raw(&server, &framed(&[0x0B, 1])), Some(ErrorCode::HelloExpected));
    assert_eq!(
        raw(&server, &framed(b"{\"type\":\"ping\",\"nonce\":1}")),
        None,
        "the error is JSON, too"
    );
    let mut ann = Client::guest(&server, "Ann");
    ann.say(&ClientMessage::Hello(Hello::new(Format::Packed)));
    assert_eq!(ann.ending(), (Some(ErrorCode::HelloExpected), Some(ErrorCode::HelloExpected)));
}

#[test]
fn other_versions_and_formats_are_refused() {
    let server = server(|_| {});
    assert_eq!(raw(&server, &framed(&[0x01, 2])), Some(ErrorCode::UnsupportedProtocol));
    assert_eq!(
        raw(&server, &framed(&[0x01, 1, 3, 0, 0, 0, 0])),
        Some(ErrorCode::WrongFormat),
        "no format has the number 3"
    );
    let mut ann = Client::hello(&server, Transport::WebSocket, Format::Packed, "Ann");
    ann.format = Format::Json;
    ann.say_bytes(b"{\"type\":\"ping\",\"nonce\":1}");
    ann.format = Format::Packed;
    assert_eq!(ann.ending().0, Some(ErrorCode::WrongFormat));
}

#[test]
fn truncated_unknown_and_trailing_messages_end_the_connection() {
    let server = server(|_| {});
    let mut bystander = Bystander::new(&server);
    for message in [
        &[0x07, 1][..],
        &[0xEE],
        &[0x0B, 1, 1],
        &[0x02, 1, 5, b'a'],
        &[0x03, 1, 0, 7],
        &[0x02, 1, 1, 0xFF],
    ] {
        let mut ann = Client::guest(&server, "Ann");
        ann.say_bytes(message);
        assert_eq!(
            ann.ending(),
            (Some(ErrorCode::BadMessage), Some(ErrorCode::BadMessage)),
            "{message:?}"
        );
    }
    for message in [
        "{",
        "{}",
        "[]",
        "{\"type\":\"nonsense\"}",
        "{\"type\":\"ping\"}",
        "{\"type\":\"ping\",\"nonce\":-1}",
    ] {
        let mut ann = Client::hello(&server, Transport::WebSocket, Format::Json, "Ann");
        ann.say_bytes(message.as_bytes());
        assert_eq!(ann.ending().0, Some(ErrorCode::BadMessage), "{message}");
    }
    bystander.is_undisturbed();
}

#[test]
fn a_join_to_a_room_that_is_gone_full_or_locked_is_refused_and_the_session_goes_on() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::guest(&server, "Bob");
    assert_eq!(bob.join("nowhere").unwrap_err().0, ErrorCode::RoomNotFound);
    ann.have("lock").unwrap();
    assert_eq!(bob.join(&ann.room_id.clone()).unwrap_err().0, ErrorCode::RoomLocked);

    let mut cid = Client::guest(&server, "Cid");
    cid.join_or_create().unwrap();
    assert_ne!(cid.room_id, ann.room_id, "a locked room is not matched");
    let _others = ["d", "e"].map(|name| {
        let mut other = Client::guest(&server, name);
        other.join(&cid.room_id).unwrap();
        other
    });
    assert_eq!(bob.join(&cid.room_id).unwrap_err().0, ErrorCode::RoomFull);
    ann.have("close").unwrap_or_default();
    while bob.join(&ann.room_id).unwrap_err().0 != ErrorCode::RoomNotFound {}
    let mut mallory = Client::guest(&server, "Mallory");
    assert_eq!(mallory.join_or_create().unwrap_err(), (ErrorCode::Refused, "not you".into()));
    bob.join_or_create().unwrap();
    bob.count();
}

#[test]
fn a_room_type_that_is_none_and_options_that_are_none_are_refused() {
    let server = server(|_| {});
    let mut ann = Client::guest(&server, "Ann");
    let mut create = |room_type: &str, options: &[u8]| {
        let request = ann.request_number();
        ann.say(&ClientMessage::Create(client::Create {
            request: RequestNumber(request),
            room_type: room_type.into(),
            private: false,
            code: false,
            key: None,
            options,
        }));
        ann.joined(RequestNumber(request)).unwrap_err().0
    };
    assert_eq!(create("chess", &[]), ErrorCode::UnknownRoomType);
    assert_eq!(create("table", &[7]), ErrorCode::BadPayload);
    assert_eq!(create("table", &[1]), ErrorCode::Refused);
    ann.join_or_create().unwrap();
}

#[test]
fn a_client_built_with_another_schema_is_told_the_nodes() {
    let server = server(|_| {});
    for format in [Format::Packed, Format::Json] {
        let mut ann = Client::open(&server, Transport::Native, format);
        let mut hello = Hello::new(format);
        hello.schemas = vec![SchemaRef { room_type: "table".into(), fingerprint: 1 }];
        ann.say(&ClientMessage::Hello(hello));
        let text = ann.expect(|message| match message {
            ServerMessage::Schema(server::Schema { request: None, schema, .. }) => {
                Some(schema.to_vec())
            }
            _ => None,
        });
        RoomSchema::from_json(&text).unwrap();
        ann.join_or_create().unwrap();
    }
}

#[test]
fn messages_for_a_room_not_joined_are_answered_and_change_nothing() {
    let server = server(|_| {});
    let mut ann = Client::guest(&server, "Ann");
    ann.room = RoomNumber(7);
    assert_eq!(ann.have("x").unwrap_err().0, ErrorCode::NotJoined);
    ann.send(1, &Do { what: "x".into() });
    let room = ann.expect(|message| match message {
        ServerMessage::Error(server::Error {
            request: None,
            room,
            code: ErrorCode::NotJoined,
            ..
        }) => Some(*room),
        _ => None,
    });
    assert_eq!(room, Some(RoomNumber(7)));
    for message in [
        ClientMessage::Leave(client::Leave { request: RequestNumber(90), room: RoomNumber(7) }),
        ClientMessage::Resync(client::Resync { room: RoomNumber(7) }),
    ] {
        ann.say(&message);
        ann.expect(|message| {
            matches!(
                message,
                ServerMessage::Error(server::Error { code: ErrorCode::NotJoined, .. })
            )
            .then_some(())
        });
    }
    ann.join_or_create().unwrap();
    ann.count();
}

#[test]
fn unknown_messages_and_bad_payloads_are_answered() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    for (index, payload, code) in [
        (9, &[0][..], ErrorCode::UnknownMessage),
        (1, &[0xFF], ErrorCode::BadPayload),
        (0, &[0, 0], ErrorCode::BadPayload),
    ] {
        let request = ann.request_number();
        ann.say(&ClientMessage::Request(client::Request {
            room: ann.room,
            request: RequestNumber(request),
            message: MessageRef::Index(index),
            payload,
        }));
        let refused = ann.expect(|message| match message {
            ServerMessage::Error(server::Error { request: Some(of), code, .. })
                if *of == RequestNumber(request) =>
            {
                Some(*code)
            }
            _ => None,
        });
        assert_eq!(refused, code);
    }
    assert_eq!(ann.have("nonsense").unwrap_err(), (ErrorCode::Refused, "what?".into()));
    ann.count();
}

#[test]
fn a_panic_in_a_room_ends_that_room_and_no_other() {
    let server = server(|config| config.shards = 1);
    let mut bystander = Bystander::new(&server);
    let mut ann = Client::guest(&server, "Ann");
    let request = ann.request_number();
    ann.say(&ClientMessage::Create(client::Create {
        request: RequestNumber(request),
        room_type: "table".into(),
        private: false,
        code: false,
        key: None,
        options: &[],
    }));
    ann.joined(RequestNumber(request)).unwrap();
    ann.send(1, &Do { what: "panic".into() });
    let code = ann.expect(|message| match message {
        ServerMessage::Left(server::Left { code, .. }) => Some(*code),
        _ => None,
    });
    assert_eq!(code, ErrorCode::RoomFailed);
    ann.join_or_create().unwrap();
    ann.count();
    bystander.is_undisturbed();
}

#[test]
fn one_who_is_kicked_may_join_again() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::seated(&server, "Bob");
    ann.have(&format!("kick {}", bob.player)).unwrap();
    let why = bob.expect(|message| match message {
        ServerMessage::Left(server::Left { code, text, .. }) => Some((*code, text.to_string())),
        _ => None,
    });
    assert_eq!(why, (ErrorCode::Kicked, "out".into()));
    bob.join(&ann.room_id).unwrap();
    assert_ne!(bob.player.0, 2, "a player's number is not used again");
}

#[test]
fn one_who_never_reads_is_let_go_when_events_overflow_and_holds_no_memory() {
    let server = server(|config| {
        config.limits.session.outbox_bytes.max = 100_000;
        config.shards = 1;
    });
    let mut bystander = Bystander::new(&server);
    let mut deaf = Client::seated(&server, "Deaf");
    // Sends are handled until events for the sender overflow; then the connection ends, whatever is
    // still on its way.
    let noise = Do { what: "noise 90000".into() };
    for _ in 0..400 {
        let (mut payload, mut body) = (Vec::new(), Vec::new());
        playfield_state::Data::encode(&noise, &mut payload);
        playfield_wire::client::write_send(Format::Packed, &mut body, deaf.room, 1, "Do", &payload);
        let frame = deaf.frame(&body);
        if deaf.stream.write_all(&frame).is_err() {
            break;
        }
    }
    bystander.0.until(|table| table.players.len() == 1);
    bystander.is_undisturbed();
}

#[test]
fn a_slow_reader_gets_the_present_and_not_the_past() {
    let server = server(|config| {
        config.shards = 1;
        config.limits.session.messages.count = 0;
    });
    let mut ann = Client::seated(&server, "Ann");
    let mut slow = Client::seated(&server, "Slow");
    assert_eq!(ann.room_id, slow.room_id);
    // Ann makes the state large again and again, until the server has left patches out for the one
    // who does not read.
    let mut rounds = 0;
    while server.stats().total().conflated < 3 {
        ann.count();
        ann.have("grow 500000").unwrap();
        rounds += 1;
        assert!(rounds < 10_000, "nothing was ever left out");
    }
    let count = ann.count();
    let blob = format!("{}{}", count - 1, "x".repeat(500_000));
    for client in [&mut ann, &mut slow] {
        client.until(|table| table.count == count);
        assert!(client.mirror.state().blob == blob, "the copy is not the present");
    }
}

#[test]
fn limits_hold_at_one_past_them() {
    let server = server(|config| {
        config.limits.session.rooms = 2;
        config.limits.rooms = 3;
        config.limits.name_bytes.player = 8;
        config.limits.connections.total = 8;
        config.shards = 2;
    });
    let mut ann = Client::guest(&server, "Ann");
    for expected in [None, None, Some(ErrorCode::Limit)] {
        let request = ann.request_number();
        ann.say(&ClientMessage::Create(client::Create {
            request: RequestNumber(request),
            room_type: "table".into(),
            private: true,
            code: false,
            key: None,
            options: &[],
        }));
        assert_eq!(ann.joined(RequestNumber(request)).err().map(|(code, _)| code), expected);
        ann.version = 0;
    }
    let mut bob = Client::guest(&server, "Bob");
    for expected in [None, Some(ErrorCode::Limit)] {
        let request = bob.request_number();
        bob.say(&ClientMessage::Create(client::Create {
            request: RequestNumber(request),
            room_type: "table".into(),
            private: true,
            code: false,
            key: None,
            options: &[],
        }));
        assert_eq!(
            bob.joined(RequestNumber(request)).err().map(|(code, _)| code),
            expected,
            "limits.rooms"
        );
    }
    let mut long = Client::open(&server, Transport::Native, Format::Packed);
    let mut hello = Hello::new(Format::Packed);
    hello.name = "123456789".into();
    long.say(&ClientMessage::Hello(hello));
    assert_eq!(long.ending().0, Some(ErrorCode::Limit));
    // Connections past the limit are closed at once.
    let mut crowd: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    let closed = crowd.iter_mut().filter_map(|stream| {
        stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let ended = |result: std::io::Result<usize>| match result {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        ended(stream.read(&mut [0; 1])).then_some(())
    });
    assert!(closed.count() >= 12);
}

#[test]
fn those_who_say_nothing_are_asked_and_then_let_go() {
    let server = server(|config| {
        config.timeouts.hello = std::time::Duration::from_millis(1_500);
        config.timeouts.heartbeat = std::time::Duration::from_millis(500);
    });
    let mut silent = connect(&server);
    silent.read_to_end(&mut Vec::new()).unwrap();
    let mut mute = Client::open(&server, Transport::Native, Format::Packed);
    assert_eq!(mute.ending().0, Some(ErrorCode::Timeout));
    let mut ann = Client::guest(&server, "Ann");
    ann.expect(|message| matches!(message, ServerMessage::Ping(_)).then_some(()));
    assert_eq!(ann.ending().0, Some(ErrorCode::Timeout));
}

#[test]
fn one_who_vanishes_in_the_middle_of_a_frame_disturbs_nobody() {
    let server = server(|_| {});
    let mut bystander = Bystander::new(&server);
    for cut in 1..12 {
        let mut ann = Client::guest(&server, "Ann");
        let frame = ann.encoded(&ClientMessage::Join(client::Join {
            request: RequestNumber(1),
            room: "somewhere".into(),
        }));
        ann.stream.write_all(&frame[..cut]).unwrap();
    }
    bystander.is_undisturbed();
    while server.stats().total().connections > 1 {}
    bystander.is_undisturbed();
}

#[test]
fn every_cut_of_a_conversation_is_the_same_conversation() {
    let server = server(|_| {});
    for transport in [Transport::Native, Transport::WebSocket] {
        let mut ann = Client::open(&server, transport, Format::Packed);
        let hello = Hello::new(Format::Packed);
        let mut bytes = ann.encoded(&ClientMessage::Hello(hello));
        bytes.extend(ann.encoded(&ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "table".into(),
            key: None,
            options: &[],
        })));
        bytes.extend(ann.encoded(&ClientMessage::Ping(client::Ping { nonce: 77 })));
        for byte in bytes {
            ann.stream.write_all(&[byte]).unwrap();
        }
        ann.expect(|message| matches!(message, ServerMessage::Joined(_)).then_some(()));
        if transport == Transport::Native {
            // The pong may come before the join's answer: across a move, both orders are right.
            continue;
        }
        ann.say(&ClientMessage::Ping(client::Ping { nonce: 78 }));
        ann.expect(|message| {
            matches!(message, ServerMessage::Pong(server::Pong { nonce: 78, .. })).then_some(())
        });
    }
}
