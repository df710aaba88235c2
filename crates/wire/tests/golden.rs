//! Every message, byte by byte in `packed` and as its text in JSON: what other implementations must agree with.

use std::borrow::Cow;

use playfield_wire::client::{ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{RoomInfo, ServerMessage};
use playfield_wire::{ErrorCode, Format};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// The message is written as these bytes, and they are read as the message.
macro_rules! golden {
    ($message:expr, packed $hex:expr $(,)?) => {{
        let message = $message;
        let golden = bytes($hex);
        let mut out = Vec::new();
        message.encode(Format::Packed, &mut out);
        assert_eq!(hex(&out), hex(&golden), "{message:?}");
        assert_eq!(decode_like(&message, Format::Packed, &golden), message);
    }};
    ($message:expr, json $text:expr $(,)?) => {{
        let message = $message;
        let mut out = Vec::new();
        message.encode(Format::Json, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), $text);
        assert_eq!(decode_like(&message, Format::Json, $text.as_bytes()), message);
    }};
    ($message:expr, packed $hex:expr, json $text:expr $(,)?) => {{
        golden!($message, packed $hex);
        golden!($message, json $text);
    }};
}

/// One `decode` for both directions, so that the table above needs only one form.
trait Decode<'a>: Sized {
    fn decode(format: Format, body: &'a [u8]) -> Self;
}

impl<'a> Decode<'a> for ClientMessage<'a> {
    fn decode(format: Format, body: &'a [u8]) -> Self {
        Self::decode(format, body).unwrap()
    }
}

impl<'a> Decode<'a> for ServerMessage<'a> {
    fn decode(format: Format, body: &'a [u8]) -> Self {
        Self::decode(format, body).unwrap()
    }
}

fn decode_like<'a, M: Decode<'a>>(_: &M, format: Format, body: &'a [u8]) -> M {
    M::decode(format, body)
}

fn named(name: &str) -> MessageRef<'_> {
    MessageRef::Name(Cow::Borrowed(name))
}

#[test]
fn hello() {
    golden!(
        ClientMessage::Hello(Hello::new(Format::Packed)),
        packed "01 01 00 00 00 00 00",
    );
    golden!(
        ClientMessage::Hello(Hello::new(Format::Json)),
        packed "01 01 02 00 00 00 00",
        json r#"{"type":"hello","protocol":1,"format":2,"name":"","token":"","schemas":[]}"#,
    );
    let full = |format| {
        ClientMessage::Hello(Hello {
            name: "Ada".into(),
            token: Cow::Owned(vec![0xff, 0]),
            resume: Some(Resume {
                token: Cow::Owned(vec![1, 2, 3]),
                rooms: vec![ResumeRoom { room: 1, epoch: 300, version: 7, sequence: 0 }],
            }),
            schemas: vec![SchemaRef { room_type: "table".into(), fingerprint: u64::MAX }],
            ..Hello::new(format)
        })
    };
    golden!(
        full(Format::Packed),
        packed "01 01 00 03416461 02ff00 01 03010203 01 01ac020700 01 057461626c65 ffffffffffffffffff01",
    );
    golden!(
        full(Format::Json),
        json concat!(
            r#"{"type":"hello","protocol":1,"format":2,"name":"Ada","token":"/wA=","#,
            r#""resume":{"token":"AQID","rooms":[{"room":1,"epoch":300,"version":7,"sequence":0}]},"#,
            r#""schemas":[{"room_type":"table","fingerprint":"18446744073709551615"}]}"#
        ),
    );
}

#[test]
fn join_and_create() {
    golden!(
        ClientMessage::Join { request: 1, room: "r7".into() },
        packed "02 01 027237",
        json r#"{"type":"join","request":1,"room":"r7"}"#,
    );
    golden!(
        ClientMessage::Create { request: 2, room_type: "table".into(), private: true, options: b"" },
        packed "03 02 057461626c65 01",
        json r#"{"type":"create","request":2,"room_type":"table","private":true,"options":null}"#,
    );
    golden!(
        ClientMessage::Create { request: 2, room_type: "table".into(), private: false, options: b"{}" },
        packed "03 02 057461626c65 00 7b7d",
        json r#"{"type":"create","request":2,"room_type":"table","private":false,"options":{}}"#,
    );
    golden!(
        ClientMessage::JoinOrCreate { request: 3, room_type: "table".into(), options: b"[4]" },
        packed "04 03 057461626c65 5b345d",
        json r#"{"type":"join_or_create","request":3,"room_type":"table","options":[4]}"#,
    );
}

#[test]
fn list_and_leave() {
    golden!(
        ClientMessage::List { request: 4, room_type: None, filter: vec![], limit: 0 },
        packed "05 04 00 00 00",
        json r#"{"type":"list","request":4,"filter":{},"limit":0}"#,
    );
    golden!(
        ClientMessage::List {
            request: 4,
            room_type: Some("table".into()),
            filter: vec![("map".into(), "sea".into()), ("a\"b".into(), "".into())],
            limit: 20,
        },
        packed "05 04 01 057461626c65 02 036d6170 03736561 03612262 00 14",
        json concat!(
            r#"{"type":"list","request":4,"room_type":"table","#,
            r#""filter":{"map":"sea","a\"b":""},"limit":20}"#
        ),
    );
    golden!(
        ClientMessage::Leave { request: 5, room: 1 },
        packed "06 05 01",
        json r#"{"type":"leave","request":5,"room":1}"#,
    );
}

#[test]
fn request_and_send() {
    golden!(
        ClientMessage::Request { room: 1, request: 128, message: MessageRef::Index(2), payload: b"\x09" },
        packed "07 01 8001 02 09",
    );
    golden!(
        ClientMessage::Request { room: 1, request: 128, message: named("draw"), payload: br#"{"count":2}"# },
        json r#"{"type":"request","room":1,"request":128,"message":"draw","payload":{"count":2}}"#,
    );
    golden!(
        ClientMessage::Send { room: 1, message: MessageRef::Index(0), payload: b"" },
        packed "08 01 00",
    );
    golden!(
        ClientMessage::Send { room: 1, message: named("wave"), payload: b"" },
        json r#"{"type":"send","room":1,"message":"wave","payload":null}"#,
    );
}

#[test]
fn the_small_client_messages() {
    golden!(
        ClientMessage::Ack { room: 1, version: 300, sequence: 4 },
        packed "09 01 ac02 04",
        json r#"{"type":"ack","room":1,"version":300,"sequence":4}"#,
    );
    golden!(
        ClientMessage::Resync { room: 1 },
        packed "0a 01",
        json r#"{"type":"resync","room":1}"#,
    );
    golden!(
        ClientMessage::Ping { nonce: 1 << 53 },
        packed "0b 8080808080808010",
        json r#"{"type":"ping","nonce":"9007199254740992"}"#,
    );
    golden!(
        ClientMessage::Pong { nonce: 9 },
        packed "0c 09",
        json r#"{"type":"pong","nonce":9}"#,
    );
    golden!(ClientMessage::Goodbye, packed "0d", json r#"{"type":"goodbye"}"#);
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
        packed "41 01 4d 02abcd 904e 808004",
        json concat!(
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
        packed "42 01 02 027237 057461626c65 03 04 3c 14 8cd987b0c889f7b1af01",
        json concat!(
            r#"{"type":"joined","request":1,"room":2,"id":"r7","room_type":"table","player":3,"epoch":4,"#,
            r#""tick_hz":60,"sync_hz":20,"fingerprint":"12638187200555641996"}"#
        ),
    );
}

#[test]
fn listed() {
    golden!(
        ServerMessage::Listed { request: 4, rooms: vec![] },
        packed "43 04 00",
        json r#"{"type":"listed","request":4,"rooms":[]}"#,
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
        packed "43 04 02 027237 057461626c65 03 c801 00 01 036d6170 03736561 02c3a9 0174 00 01 01 00",
        json concat!(
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
        packed "44 01 05 01 1b 00",
        json r#"{"type":"left","request":5,"room":1,"code":"left","text":""}"#,
    );
    golden!(
        ServerMessage::Left { request: None, room: 1, code: ErrorCode::Kicked, text: "bye".into() },
        packed "44 00 01 14 03627965",
        json r#"{"type":"left","room":1,"code":"kicked","text":"bye"}"#,
    );
    golden!(
        ServerMessage::Reply { request: 6, payload: b"[1]" },
        packed "45 06 5b315d",
        json r#"{"type":"reply","request":6,"payload":[1]}"#,
    );
    golden!(
        ServerMessage::Reply { request: 6, payload: b"" },
        packed "45 06",
        json r#"{"type":"reply","request":6,"payload":null}"#,
    );
}

#[test]
fn event_snapshot_and_patch() {
    golden!(
        ServerMessage::Event {
            room: 1,
            sequence: 2,
            version: 300,
            message: MessageRef::Index(3),
            payload: b"\x2a",
        },
        packed "46 01 02 ac02 03 2a",
    );
    golden!(
        ServerMessage::Event { room: 1, sequence: 2, version: 300, message: named("dealt"), payload: b"42" },
        json r#"{"type":"event","room":1,"sequence":2,"version":300,"message":"dealt","payload":42}"#,
    );
    golden!(
        ServerMessage::Snapshot { room: 1, epoch: 2, version: 300, body: b"[[[],{}]]" },
        packed "47 01 02 ac02 5b5b5b5d2c7b7d5d5d",
        json r#"{"type":"snapshot","room":1,"epoch":2,"version":300,"ops":[[[],{}]]}"#,
    );
    golden!(
        ServerMessage::Patch { room: 1, base: 300, version: 302, body: b"[]" },
        packed "48 01 ac02 02 5b5d",
        json r#"{"type":"patch","room":1,"base":300,"version":302,"ops":[]}"#,
    );
}

#[test]
fn the_small_server_messages() {
    golden!(ServerMessage::Ping { nonce: 8 }, packed "49 08", json r#"{"type":"ping","nonce":8}"#);
    golden!(
        ServerMessage::Check { room: 1, version: 300, digest: 0x0102_0304_0506_0708 },
        packed "4d 01 ac02 0807060504030201",
        json r#"{"type":"check","room":1,"version":300,"digest":"72623859790382856"}"#,
    );
    golden!(ServerMessage::Pong { nonce: 8 }, packed "4a 08", json r#"{"type":"pong","nonce":8}"#);
    golden!(
        ServerMessage::Error {
            request: Some(6),
            room: None,
            code: ErrorCode::RoomFull,
            text: "4 of 4".into(),
        },
        packed "4b 01 06 00 0c 0634206f662034",
        json r#"{"type":"error","request":6,"code":"room_full","text":"4 of 4"}"#,
    );
    golden!(
        ServerMessage::Error { request: None, room: Some(1), code: ErrorCode::Room(1001), text: "".into() },
        packed "4b 00 01 01 e907 00",
        json r#"{"type":"error","room":1,"code":1001,"text":""}"#,
    );
    golden!(
        ServerMessage::Goodbye { code: ErrorCode::ShuttingDown, text: "".into() },
        packed "4c 17 00",
        json r#"{"type":"goodbye","code":"shutting_down","text":""}"#,
    );
}

#[test]
fn schemas() {
    golden!(
        ClientMessage::Schema { request: 3, room_type: "table".into() },
        packed "0e 03 057461626c65",
        json r#"{"type":"schema","request":3,"room_type":"table"}"#,
    );
    golden!(
        ServerMessage::Schema { request: Some(3), room_type: "table".into(), schema: b"{}" },
        packed "4e 0103 057461626c65 7b7d",
        json r#"{"type":"schema","request":3,"room_type":"table","schema":{}}"#,
    );
    golden!(
        ServerMessage::Schema { request: None, room_type: "table".into(), schema: b"{}" },
        packed "4e 00 057461626c65 7b7d",
        json r#"{"type":"schema","room_type":"table","schema":{}}"#,
    );
}
