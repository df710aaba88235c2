//! Every message as its text in JSON, member by member. The vectors in `conformance/` hold JSON as
//! a tree, in which members have no order; `packed` and `msgpack` stand there byte by byte, and
//! `protocol_vectors.rs` holds this crate to them.

use std::borrow::Cow;

use playfield_wire::client::{ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{RoomInfo, ServerMessage};
use playfield_wire::{ErrorCode, Format};

/// The message is written as this text, and the text is read as the message.
macro_rules! golden {
    ($message:expr, $text:expr $(,)?) => {{
        let message = $message;
        let mut out = Vec::new();
        message.encode(Format::Json, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), $text);
        assert_eq!(decode_like(&message, $text.as_bytes()), message);
    }};
}

/// One `decode` for both directions, so that the table above needs only one form.
trait Decode<'a>: Sized {
    fn read(body: &'a [u8]) -> Self;
}

impl<'a> Decode<'a> for ClientMessage<'a> {
    fn read(body: &'a [u8]) -> Self {
        Self::decode(Format::Json, body).unwrap()
    }
}

impl<'a> Decode<'a> for ServerMessage<'a> {
    fn read(body: &'a [u8]) -> Self {
        Self::decode(Format::Json, body).unwrap()
    }
}

fn decode_like<'a, M: Decode<'a>>(_: &M, body: &'a [u8]) -> M {
    M::read(body)
}

fn named(name: &str) -> MessageRef<'_> {
    MessageRef::Name(Cow::Borrowed(name))
}

#[test]
fn hello() {
    golden!(
        ClientMessage::Hello(Hello::new(Format::Json)),
        r#"{"type":"hello","protocol":1,"format":2,"name":"","token":"","schemas":[]}"#,
    );
    golden!(
        ClientMessage::Hello(Hello {
            name: "Ada".into(),
            token: Cow::Owned(vec![0xff, 0]),
            resume: Some(Resume {
                token: Cow::Owned(vec![1, 2, 3]),
                rooms: vec![ResumeRoom { room: 1, epoch: 300, version: 7, sequence: 0 }],
            }),
            schemas: vec![SchemaRef { room_type: "table".into(), fingerprint: u64::MAX }],
            ..Hello::new(Format::Json)
        }),
        concat!(
            r#"{"type":"hello","protocol":1,"format":2,"name":"Ada","token":"/wA=","#,
            r#""resume":{"token":"AQID","rooms":[{"room":1,"epoch":300,"version":7,"sequence":0}]},"#,
            r#""schemas":[{"room_type":"table","fingerprint":"18446744073709551615"}]}"#
        ),
    );
}

/// Alone among the formats it may: a tree is in the format that it comes in.
#[test]
fn a_hello_in_packed_may_name_another_format() {
    let hello = ClientMessage::Hello(Hello::new(Format::Json));
    let mut out = Vec::new();
    hello.encode(Format::Packed, &mut out);
    assert_eq!(out, [1, 1, 2, 0, 0, 0, 0]);
    assert_eq!(ClientMessage::decode(Format::Packed, &out), Ok(hello));
}

#[test]
fn join_and_create() {
    golden!(
        ClientMessage::Join { request: 1, room: "r7".into() },
        r#"{"type":"join","request":1,"room":"r7"}"#,
    );
    golden!(
        ClientMessage::Create {
            request: 2,
            room_type: "table".into(),
            private: true,
            options: b""
        },
        r#"{"type":"create","request":2,"room_type":"table","private":true,"options":null}"#,
    );
    golden!(
        ClientMessage::Create {
            request: 2,
            room_type: "table".into(),
            private: false,
            options: b"{}"
        },
        r#"{"type":"create","request":2,"room_type":"table","private":false,"options":{}}"#,
    );
    golden!(
        ClientMessage::JoinOrCreate { request: 3, room_type: "table".into(), options: b"[4]" },
        r#"{"type":"join_or_create","request":3,"room_type":"table","options":[4]}"#,
    );
}

#[test]
fn list_and_leave() {
    golden!(
        ClientMessage::List { request: 4, room_type: None, filter: vec![], limit: 0 },
        r#"{"type":"list","request":4,"filter":{},"limit":0}"#,
    );
    golden!(
        ClientMessage::List {
            request: 4,
            room_type: Some("table".into()),
            filter: vec![("map".into(), "sea".into()), ("a\"b".into(), "".into())],
            limit: 20,
        },
        concat!(
            r#"{"type":"list","request":4,"room_type":"table","#,
            r#""filter":{"map":"sea","a\"b":""},"limit":20}"#
        ),
    );
    golden!(
        ClientMessage::Leave { request: 5, room: 1 },
        r#"{"type":"leave","request":5,"room":1}"#,
    );
}

#[test]
fn request_and_send() {
    golden!(
        ClientMessage::Request {
            room: 1,
            request: 128,
            message: named("draw"),
            payload: br#"{"count":2}"#
        },
        r#"{"type":"request","room":1,"request":128,"message":"draw","payload":{"count":2}}"#,
    );
    golden!(
        ClientMessage::Send { room: 1, message: named("wave"), payload: b"" },
        r#"{"type":"send","room":1,"message":"wave","payload":null}"#,
    );
}

#[test]
fn the_small_client_messages() {
    golden!(
        ClientMessage::Ack { room: 1, version: 300, sequence: 4 },
        r#"{"type":"ack","room":1,"version":300,"sequence":4}"#,
    );
    golden!(ClientMessage::Resync { room: 1 }, r#"{"type":"resync","room":1}"#,);
    golden!(
        ClientMessage::Ping { nonce: 1 << 53 },
        r#"{"type":"ping","nonce":"9007199254740992"}"#,
    );
    golden!(ClientMessage::Pong { nonce: 9 }, r#"{"type":"pong","nonce":9}"#,);
    golden!(ClientMessage::Goodbye, r#"{"type":"goodbye"}"#);
}

#[test]
fn welcome_and_joined() {
    golden!(
        ServerMessage::Welcome {
            protocol: 1,
            session: 77,
            resume: Cow::Owned(vec![0xab, 0xcd]),
            heartbeat_ms: 10_000,
            max_message_bytes: 65_536,
        },
        concat!(
            r#"{"type":"welcome","protocol":1,"session":77,"resume":"q80=","#,
            r#""heartbeat_ms":10000,"max_message_bytes":65536}"#
        ),
    );
    golden!(
        ServerMessage::Joined {
            request: 1,
            room: 2,
            id: "r7".into(),
            room_type: "table".into(),
            player: 3,
            epoch: 4,
            tick_hz: 60,
            sync_hz: 20,
            fingerprint: 0xaf63_dc4c_8601_ec8c,
        },
        concat!(
            r#"{"type":"joined","request":1,"room":2,"id":"r7","room_type":"table","player":3,"epoch":4,"#,
            r#""tick_hz":60,"sync_hz":20,"fingerprint":"12638187200555641996"}"#
        ),
    );
}

#[test]
fn listed() {
    golden!(
        ServerMessage::Listed { request: 4, rooms: vec![] },
        r#"{"type":"listed","request":4,"rooms":[]}"#,
    );
    golden!(
        ServerMessage::Listed {
            request: 4,
            rooms: vec![
                RoomInfo {
                    id: "r7".into(),
                    room_type: "table".into(),
                    players: 3,
                    capacity: 200,
                    locked: false,
                    metadata: vec![("map".into(), "sea".into())],
                },
                RoomInfo {
                    id: "é".into(),
                    room_type: "t".into(),
                    players: 0,
                    capacity: 1,
                    locked: true,
                    metadata: vec![],
                },
            ],
        },
        concat!(
            r#"{"type":"listed","request":4,"rooms":["#,
            r#"{"id":"r7","room_type":"table","players":3,"capacity":200,"locked":false,"metadata":{"map":"sea"}},"#,
            r#"{"id":"é","room_type":"t","players":0,"capacity":1,"locked":true,"metadata":{}}]}"#
        ),
    );
}

#[test]
fn left_and_reply() {
    golden!(
        ServerMessage::Left { request: Some(5), room: 1, code: ErrorCode::Left, text: "".into() },
        r#"{"type":"left","request":5,"room":1,"code":"left","text":""}"#,
    );
    golden!(
        ServerMessage::Left { request: None, room: 1, code: ErrorCode::Kicked, text: "bye".into() },
        r#"{"type":"left","room":1,"code":"kicked","text":"bye"}"#,
    );
    golden!(
        ServerMessage::Reply { request: 6, payload: b"[1]" },
        r#"{"type":"reply","request":6,"payload":[1]}"#,
    );
    golden!(
        ServerMessage::Reply { request: 6, payload: b"" },
        r#"{"type":"reply","request":6,"payload":null}"#,
    );
}

#[test]
fn event_snapshot_and_patch() {
    golden!(
        ServerMessage::Event {
            room: 1,
            sequence: 2,
            version: 300,
            message: named("dealt"),
            payload: b"42"
        },
        r#"{"type":"event","room":1,"sequence":2,"version":300,"message":"dealt","payload":42}"#,
    );
    golden!(
        ServerMessage::Snapshot { room: 1, epoch: 2, version: 300, body: b"[[[],{}]]" },
        r#"{"type":"snapshot","room":1,"epoch":2,"version":300,"ops":[[[],{}]]}"#,
    );
    golden!(
        ServerMessage::Patch { room: 1, base: 300, version: 302, body: b"[]" },
        r#"{"type":"patch","room":1,"base":300,"version":302,"ops":[]}"#,
    );
}

#[test]
fn the_small_server_messages() {
    golden!(ServerMessage::Ping { nonce: 8 }, r#"{"type":"ping","nonce":8}"#);
    golden!(
        ServerMessage::Check { room: 1, version: 300, digest: 0x0102_0304_0506_0708 },
        r#"{"type":"check","room":1,"version":300,"digest":"72623859790382856"}"#,
    );
    golden!(ServerMessage::Pong { nonce: 8 }, r#"{"type":"pong","nonce":8}"#);
    golden!(
        ServerMessage::Error {
            request: Some(6),
            room: None,
            code: ErrorCode::RoomFull,
            text: "4 of 4".into(),
        },
        r#"{"type":"error","request":6,"code":"room_full","text":"4 of 4"}"#,
    );
    golden!(
        ServerMessage::Error {
            request: None,
            room: Some(1),
            code: ErrorCode::Room(1001),
            text: "".into()
        },
        r#"{"type":"error","room":1,"code":1001,"text":""}"#,
    );
    golden!(
        ServerMessage::Goodbye { code: ErrorCode::ShuttingDown, text: "".into() },
        r#"{"type":"goodbye","code":"shutting_down","text":""}"#,
    );
}

#[test]
fn schemas() {
    golden!(
        ClientMessage::Schema { request: 3, room_type: "table".into() },
        r#"{"type":"schema","request":3,"room_type":"table"}"#,
    );
    golden!(
        ServerMessage::Schema { request: Some(3), room_type: "table".into(), schema: b"{}" },
        r#"{"type":"schema","request":3,"room_type":"table","schema":{}}"#,
    );
    golden!(
        ServerMessage::Schema { request: None, room_type: "table".into(), schema: b"{}" },
        r#"{"type":"schema","room_type":"table","schema":{}}"#,
    );
}
