//! A whole session, whose node is written by hand from the specification: over both transports, and
//! with the bytes split at every place.

use std::time::Duration;

use playfield_client::session::{Event, Failure, Session, UpdateKind};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, RoomInfo};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::support::{Node, Said, config, polled};

/// A step of the client, and the node's answer.
struct Step {
    acts: fn(&mut Session),
    packed: &'static [&'static [u8]],
}

const STEPS: [Step; 3] = [
    Step {
        acts: |client| assert_eq!(client.join("r"), Ok(RequestNumber(1))),
        packed: &[
            b"\x41\x01\x07\x02tk\xe8\x07\x80\x08\x00\x00\x00",
            b"\x42\x01\x01\x01r\x05table\x00\x04\x03\x14\x0a\x63\x00\x90\x4e",
            b"\x47\x01\x03\x05\"s\"",
        ],
    },
    Step {
        acts: |client| {
            assert_eq!(client.request(RoomNumber(1), 0, b"1"), Ok(RequestNumber(2)));
            assert_eq!(client.request(RoomNumber(1), 0, b"2"), Ok(RequestNumber(3)));
            assert_eq!(client.list(Some("table"), &[("map", "sea")], 9), Ok(RequestNumber(4)));
            assert_eq!(client.ping(), Ok(2));
        },
        packed: &[
            b"\x48\x01\x05\x02[]",
            b"\x46\x01\x01\x07\x00{}",
            b"\x45\x0217",
            b"\x4b\x01\x03\x00\x0e\x02no\x00",
            b"\x43\x04\x01\x01r\x05table\x00\x02\x08\x01\x01\x03map\x03sea",
            b"\x4a\x02\x00",
            b"\x49\x2a",
            b"\x4b\x00\x01\x01\x0e\x05never\x00",
            b"\x48\x01\x07\x01[]",
        ],
    },
    Step {
        acts: |client| {
            client.send(RoomNumber(1), 2, b"3").unwrap();
            assert_eq!(client.leave(RoomNumber(1)), Ok(RequestNumber(5)));
            assert_eq!(client.list(None, &[], 0), Ok(RequestNumber(6)));
        },
        packed: &[b"\x44\x01\x05\x01\x1b\x00", b"\x4c\x17\x03bye"],
    },
];

fn expected_events() -> Vec<Event<'static>> {
    let update = |kind, version, body: &'static [u8]| Event::Update {
        room: RoomNumber(1),
        kind,
        version,
        body: body.into(),
    };
    let refused = |text: &str| Failure::Refused {
        code: ErrorCode::Refused,
        text: text.to_owned().into(),
        retry_after: None,
    };
    vec![
        Event::Welcome(server::Welcome {
            protocol: 1,
            session: 7,
            resume: b"tk".to_vec().into(),
            heartbeat_ms: 1000,
            max_message_bytes: 1024,
            ..server::Welcome::default()
        }),
        Event::Joined(server::Joined {
            request: RequestNumber(1),
            room: RoomNumber(1),
            id: "r".into(),
            room_type: "table".into(),
            player: 4,
            epoch: 3,
            tick_hz: 20,
            sync_hz: 10,
            fingerprint: 99,
            grace_ms: 10_000,
            ..server::Joined::default()
        }),
        update(UpdateKind::Snapshot, 5, b"\"s\""),
        update(UpdateKind::Patch, 7, b"[]"),
        Event::Event(server::Event {
            room: RoomNumber(1),
            sequence: 1,
            version: 7,
            message: MessageRef::Index(0),
            payload: b"{}".into(),
        }),
        Event::Reply(server::Reply { request: RequestNumber(2), payload: b"17".into() }),
        Event::Failed { request: RequestNumber(3), failure: refused("no") },
        Event::Listed(server::Listed {
            request: RequestNumber(4),
            rooms: vec![RoomInfo {
                id: "r".into(),
                room_type: "table".into(),
                players: 2,
                capacity: 8,
                locked: true,
                metadata: vec![("map".into(), "sea".into())],
                ..RoomInfo::default()
            }],
        }),
        Event::Pong { nonce: 2, round_trip: Duration::ZERO },
        Event::Error(server::Error {
            request: None,
            room: Some(RoomNumber(1)),
            code: ErrorCode::Refused,
            retry_after_ms: None,
            text: "never".into(),
        }),
        update(UpdateKind::Patch, 8, b"[]"),
        Event::Left(server::Left {
            room: RoomNumber(1),
            request: Some(RequestNumber(5)),
            code: ErrorCode::Left,
            text: "".into(),
        }),
        Event::Goodbye(server::Goodbye { code: ErrorCode::ShuttingDown, text: "bye".into() }),
        Event::Failed { request: RequestNumber(6), failure: Failure::Closed },
        Event::Closed { error: None },
    ]
}

fn expected_said() -> Vec<Said> {
    use playfield_wire::client::{self, ClientMessage as Message};
    let room_type = Some("table".into());
    let filter = vec![("map".into(), "sea".into())];
    [
        Message::Join(client::Join { request: RequestNumber(1), room: "r".into() }),
        Message::Ping(client::Ping { nonce: 1 }),
        Message::Request(client::Request {
            room: RoomNumber(1),
            request: RequestNumber(2),
            message: MessageRef::Index(0),
            payload: b"1",
        }),
        Message::Request(client::Request {
            room: RoomNumber(1),
            request: RequestNumber(3),
            message: MessageRef::Index(0),
            payload: b"2",
        }),
        Message::List(client::List { request: RequestNumber(4), room_type, filter, limit: 9 }),
        Message::Ping(client::Ping { nonce: 2 }),
        Message::Pong(client::Pong { nonce: 42 }),
        Message::Send(client::Send {
            room: RoomNumber(1),
            message: MessageRef::Index(2),
            payload: b"3",
        }),
        Message::Leave(client::Leave { request: RequestNumber(5), room: RoomNumber(1) }),
        Message::List(client::List {
            request: RequestNumber(6),
            room_type: None,
            filter: Vec::new(),
            limit: 0,
        }),
    ]
    .iter()
    .map(crate::support::said)
    .collect()
}

/// Runs the session, with each turn of the node split by `cut`. Returns the client's events and
/// messages.
fn converse(
    web_socket: bool,
    cut: impl Fn(usize, &[u8]) -> Vec<Vec<u8>>,
) -> (Vec<Event<'static>>, Vec<Said>) {
    let mut client = Session::new(config(web_socket)).unwrap();
    let mut node = Node::new(web_socket);
    let (mut events, mut said) = (Vec::new(), Vec::new());
    for (turn, step) in STEPS.iter().enumerate() {
        (step.acts)(&mut client);
        let mut out = Vec::new();
        client.take_output(&mut out);
        said.extend(node.read(&out));
        let bytes: Vec<_> = step.packed.iter().flat_map(|body| node.frame(body)).collect();
        for piece in cut(turn, &bytes) {
            client.received(&piece);
            events.extend(polled(&mut client));
        }
        let mut out = Vec::new();
        client.take_output(&mut out);
        said.extend(node.read(&out));
    }
    assert!(client.is_finished());
    (events, said)
}

fn check(web_socket: bool, how: &str, cut: impl Fn(usize, &[u8]) -> Vec<Vec<u8>>) {
    let (events, mut said) = converse(web_socket, cut);
    let way = format!("{}, {how}", if web_socket { "WebSocket" } else { "native" });
    assert_eq!(events, expected_events(), "{way}");
    assert_eq!(said.remove(0), Said::Hello { name: "Ann".to_owned() }, "{way}");
    if web_socket {
        assert_eq!(said.pop(), Some(Said::Close(Some(1000))), "{way}");
    }
    assert_eq!(said, expected_said(), "{way}");
}

#[test]
fn the_session_follows_the_specification() {
    for web_socket in [false, true] {
        check(web_socket, "whole", |_, bytes| vec![bytes.to_vec()]);
    }
}

#[test]
fn the_bytes_may_be_split_anywhere() {
    for web_socket in [false, true] {
        check(web_socket, "byte by byte", |_, bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect());
        for size in [2, 3, 5, 7, 64] {
            check(web_socket, &format!("every {size} bytes"), |_, bytes| {
                bytes.chunks(size).map(<[u8]>::to_vec).collect()
            });
        }
        for turn in 0..STEPS.len() {
            // The length of a turn is not known in advance, so continue until it is reached.
            for at in 1.. {
                let longer = std::cell::Cell::new(false);
                check(web_socket, &format!("turn {turn} at byte {at}"), |this, bytes| {
                    if this != turn || at >= bytes.len() {
                        return vec![bytes.to_vec()];
                    }
                    longer.set(true);
                    vec![bytes[..at].to_vec(), bytes[at..].to_vec()]
                });
                if !longer.get() {
                    break;
                }
            }
        }
    }
}

#[test]
fn nothing_follows_the_handshake_until_it_is_answered() {
    let mut client = Session::new(config(true)).unwrap();
    client.join("r").unwrap();
    let mut out = Vec::new();
    client.take_output(&mut out);
    assert!(out.ends_with(b"\r\n\r\n"), "only the request");
    assert!(client.output_bytes() > 0, "the hello and the join wait");

    let mut node = Node::new(true);
    assert!(node.read(&out).is_empty());
    client.received(&node.take_answer());
    assert_eq!(polled(&mut client), []);
    let mut out = Vec::new();
    client.take_output(&mut out);
    assert_eq!(node.read(&out).len(), 2);
}
