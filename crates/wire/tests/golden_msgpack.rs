//! Every message, byte by byte in `msgpack`, and what is read that other senders may write.

use std::borrow::Cow;

use playfield_wire::client::{ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{RoomInfo, ServerMessage};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{ErrorCode, Format, TreeFormat};
use serde_json::{Value, json};

const MSGPACK: Format = Format::Msgpack;

fn client(message: &ClientMessage<'_>, golden: &[u8]) {
    let mut out = Vec::new();
    message.encode(MSGPACK, &mut out);
    assert_eq!(out.escape_ascii().to_string(), golden.escape_ascii().to_string());
    assert_eq!(ClientMessage::decode(MSGPACK, golden).as_ref(), Ok(message));
}

fn server(message: &ServerMessage<'_>, golden: &[u8]) {
    let mut out = Vec::new();
    message.encode(MSGPACK, &mut out);
    assert_eq!(out.escape_ascii().to_string(), golden.escape_ascii().to_string());
    assert_eq!(ServerMessage::decode(MSGPACK, golden).as_ref(), Ok(message));
}

fn named(name: &str) -> MessageRef<'_> {
    MessageRef::Name(Cow::Borrowed(name))
}

fn msgpack(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    TreeWriter::new(TreeFormat::Msgpack, &mut out).value(value);
    out
}

#[test]
fn what_clients_say() {
    client(
        &ClientMessage::Hello(Hello::new(MSGPACK)),
        b"\x86\xa4type\xa5hello\xa8protocol\x01\xa6format\x01\xa4name\xa0\xa5token\xc4\0\xa7schemas\x90",
    );
    client(
        &ClientMessage::Hello(Hello {
            name: "Ada".into(),
            token: Cow::Owned(vec![0xff, 0]),
            resume: Some(Resume {
                token: Cow::Owned(vec![1, 2, 3]),
                rooms: vec![ResumeRoom { room: 1, epoch: 300, version: 7, sequence: 0 }],
            }),
            schemas: vec![SchemaRef { room_type: "table".into(), fingerprint: u64::MAX }],
            ..Hello::new(MSGPACK)
        }),
        b"\x87\xa4type\xa5hello\xa8protocol\x01\xa6format\x01\xa4name\xa3Ada\xa5token\xc4\x02\xff\0\
          \xa6resume\x82\xa5token\xc4\x03\x01\x02\x03\
          \xa5rooms\x91\x84\xa4room\x01\xa5epoch\xcd\x01\x2c\xa7version\x07\xa8sequence\0\
          \xa7schemas\x91\x82\xa9room_type\xa5table\xabfingerprint\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    );
    client(
        &ClientMessage::Join { request: 1, room: "r7".into() },
        b"\x83\xa4type\xa4join\xa7request\x01\xa4room\xa2r7",
    );
    client(
        &ClientMessage::Create { request: 2, room_type: "table".into(), private: true, options: b"\x81\xa1a\xc4\x01\xff" },
        b"\x85\xa4type\xa6create\xa7request\x02\xa9room_type\xa5table\xa7private\xc3\xa7options\x81\xa1a\xc4\x01\xff",
    );
    client(
        &ClientMessage::JoinOrCreate { request: 3, room_type: "table".into(), options: b"" },
        b"\x84\xa4type\xaejoin_or_create\xa7request\x03\xa9room_type\xa5table\xa7options\xc0",
    );
    client(
        &ClientMessage::List {
            request: 4,
            room_type: Some("table".into()),
            filter: vec![("map".into(), "sea".into()), ("a\"b".into(), "".into())],
            limit: 20,
        },
        b"\x85\xa4type\xa4list\xa7request\x04\xa9room_type\xa5table\
          \xa6filter\x82\xa3map\xa3sea\xa3a\"b\xa0\xa5limit\x14",
    );
    client(
        &ClientMessage::Leave { request: 5, room: 1 },
        b"\x83\xa4type\xa5leave\xa7request\x05\xa4room\x01",
    );
    client(
        &ClientMessage::Request { room: 1, request: 128, message: named("draw"), payload: b"\x81\xa5count\x02" },
        b"\x85\xa4type\xa7request\xa4room\x01\xa7request\xcc\x80\xa7message\xa4draw\xa7payload\x81\xa5count\x02",
    );
    client(
        &ClientMessage::Send { room: 1, message: named("wave"), payload: b"" },
        b"\x84\xa4type\xa4send\xa4room\x01\xa7message\xa4wave\xa7payload\xc0",
    );
    client(
        &ClientMessage::Ack { room: 1, version: 300, sequence: 4 },
        b"\x84\xa4type\xa3ack\xa4room\x01\xa7version\xcd\x01\x2c\xa8sequence\x04",
    );
    client(&ClientMessage::Resync { room: 1 }, b"\x82\xa4type\xa6resync\xa4room\x01");
    client(
        &ClientMessage::Ping { nonce: 1 << 53 },
        b"\x82\xa4type\xa4ping\xa5nonce\xcf\0\x20\0\0\0\0\0\0",
    );
    client(&ClientMessage::Pong { nonce: 9 }, b"\x82\xa4type\xa4pong\xa5nonce\x09");
    client(&ClientMessage::Goodbye, b"\x81\xa4type\xa7goodbye");
}

#[test]
fn what_nodes_say() {
    server(
        &ServerMessage::Welcome {
            protocol: 1,
            session: 77,
            resume: Cow::Owned(vec![0xab, 0xcd]),
            heartbeat_ms: 10_000,
            max_message_bytes: 65_536,
        },
        b"\x86\xa4type\xa7welcome\xa8protocol\x01\xa7session\x4d\xa6resume\xc4\x02\xab\xcd\
          \xacheartbeat_ms\xcd\x27\x10\xb1max_message_bytes\xce\0\x01\0\0",
    );
    server(
        &ServerMessage::Joined {
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
        b"\x8a\xa4type\xa6joined\xa7request\x01\xa4room\x02\xa2id\xa2r7\xa9room_type\xa5table\xa6player\x03\
          \xa5epoch\x04\xa7tick_hz\x3c\xa7sync_hz\x14\xabfingerprint\xcf\xaf\x63\xdc\x4c\x86\x01\xec\x8c",
    );
    server(
        &ServerMessage::Listed {
            request: 4,
            rooms: vec![RoomInfo {
                id: "é".into(),
                room_type: "table".into(),
                players: 3,
                capacity: 200,
                locked: false,
                metadata: vec![("map".into(), "sea".into())],
            }],
        },
        b"\x83\xa4type\xa6listed\xa7request\x04\xa5rooms\x91\x86\xa2id\xa2\xc3\xa9\xa9room_type\xa5table\
          \xa7players\x03\xa8capacity\xcc\xc8\xa6locked\xc2\xa8metadata\x81\xa3map\xa3sea",
    );
    server(
        &ServerMessage::Left { request: Some(5), room: 1, code: ErrorCode::Left, text: "".into() },
        b"\x85\xa4type\xa4left\xa7request\x05\xa4room\x01\xa4code\xa4left\xa4text\xa0",
    );
    server(
        &ServerMessage::Left {
            request: None,
            room: 1,
            code: ErrorCode::Kicked,
            text: "bye".into(),
        },
        b"\x84\xa4type\xa4left\xa4room\x01\xa4code\xa6kicked\xa4text\xa3bye",
    );
    server(
        &ServerMessage::Reply { request: 6, payload: b"\x91\x01" },
        b"\x83\xa4type\xa5reply\xa7request\x06\xa7payload\x91\x01",
    );
    server(
        &ServerMessage::Event { room: 1, sequence: 2, version: 300, message: named("dealt"), payload: b"\x2a" },
        b"\x86\xa4type\xa5event\xa4room\x01\xa8sequence\x02\xa7version\xcd\x01\x2c\xa7message\xa5dealt\xa7payload\x2a",
    );
    server(
        &ServerMessage::Snapshot { room: 1, epoch: 2, version: 300, body: b"\x91\x92\x90\x80" },
        b"\x85\xa4type\xa8snapshot\xa4room\x01\xa5epoch\x02\xa7version\xcd\x01\x2c\xa3ops\x91\x92\x90\x80",
    );
    server(
        &ServerMessage::Patch { room: 1, base: 300, version: 302, body: b"\x90" },
        b"\x85\xa4type\xa5patch\xa4room\x01\xa4base\xcd\x01\x2c\xa7version\xcd\x01\x2e\xa3ops\x90",
    );
    server(
        &ServerMessage::Check { room: 1, version: 300, digest: 0x0102_0304_0506_0708 },
        b"\x84\xa4type\xa5check\xa4room\x01\xa7version\xcd\x01\x2c\xa6digest\xcf\x01\x02\x03\x04\x05\x06\x07\x08",
    );
    server(&ServerMessage::Ping { nonce: 8 }, b"\x82\xa4type\xa4ping\xa5nonce\x08");
    server(&ServerMessage::Pong { nonce: 8 }, b"\x82\xa4type\xa4pong\xa5nonce\x08");
    server(
        &ServerMessage::Error {
            request: Some(6),
            room: None,
            code: ErrorCode::RoomFull,
            text: "4 of 4".into(),
        },
        b"\x84\xa4type\xa5error\xa7request\x06\xa4code\xa9room_full\xa4text\xa64 of 4",
    );
    server(
        &ServerMessage::Error {
            request: None,
            room: Some(1),
            code: ErrorCode::Room(1001),
            text: "".into(),
        },
        b"\x84\xa4type\xa5error\xa4room\x01\xa4code\xcd\x03\xe9\xa4text\xa0",
    );
    server(
        &ServerMessage::Goodbye { code: ErrorCode::ShuttingDown, text: "".into() },
        b"\x83\xa4type\xa7goodbye\xa4code\xadshutting_down\xa4text\xa0",
    );
}

/// Each line of the examples in `docs/protocol.md`, in which texts stand in quotes between hex
/// digits.
fn documented() -> Vec<Vec<u8>> {
    let document = include_str!("../../../docs/protocol.md");
    let (_, block) = document.split_once("```msgpack\n").expect("the examples are there");
    let word = |word: &str| match word.strip_prefix('"') {
        Some(text) => text.trim_end_matches('"').as_bytes().to_vec(),
        None => vec![u8::from_str_radix(word, 16).unwrap()],
    };
    let lines = block.lines().take_while(|line| !line.starts_with("```"));
    lines.map(|line| line.split_whitespace().flat_map(word).collect()).collect()
}

#[test]
fn the_examples_of_the_document_are_true() {
    let [hello, join] = &documented()[..] else { panic!("two examples") };
    let expected = ClientMessage::Hello(Hello::new(MSGPACK));
    assert_eq!(ClientMessage::decode_first(hello), Ok((MSGPACK, expected)));
    client(&ClientMessage::Join { request: 1, room: "r7".into() }, join);
}

#[test]
fn other_forms_are_read_too() {
    // Integers in wider and in signed forms and as decimal texts, a text in a longer form, unknown
    // and repeated members, any order.
    let send =
        b"\xde\0\x06\xa5later\x91\x80\xa7payload\x92\x01\x02\xa4room\xcf\0\0\0\0\0\0\0\x01\xa4room\xd1\0\x03\
                 \xa7message\xd9\x04wave\xa4type\xa4send";
    let message = named("wave");
    assert_eq!(
        ClientMessage::decode(MSGPACK, send),
        Ok(ClientMessage::Send { room: 3, message, payload: b"\x92\x01\x02" })
    );
    let resync = msgpack(&json!({"type": "resync", "room": "7"}));
    assert_eq!(ClientMessage::decode(MSGPACK, &resync), Ok(ClientMessage::Resync { room: 7 }));
    let list = ClientMessage::List { request: 4, room_type: None, filter: vec![], limit: 0 };
    let absent = msgpack(&json!({"type": "list", "request": 4}));
    assert_eq!(ClientMessage::decode(MSGPACK, &absent), Ok(list.clone()));
    let nulls = msgpack(
        &json!({"type": "list", "request": 4, "room_type": null, "filter": null, "limit": null}),
    );
    assert_eq!(ClientMessage::decode(MSGPACK, &nulls), Ok(list));
    let token = msgpack(&json!({"type": "hello", "protocol": 1, "token": "/wA="}));
    let hello = Hello { token: Cow::Owned(vec![0xff, 0]), ..Hello::new(MSGPACK) };
    assert_eq!(ClientMessage::decode(MSGPACK, &token), Ok(ClientMessage::Hello(hello)));
    let other = msgpack(&json!({"type": "hello", "protocol": 2, "name": 7}));
    let hello = Hello { protocol: 2, ..Hello::new(MSGPACK) };
    assert_eq!(ClientMessage::decode(MSGPACK, &other), Ok(ClientMessage::Hello(hello)));
}

#[test]
fn what_is_wrong_is_refused_and_named() {
    let complaint = |body: &[u8]| ClientMessage::decode(MSGPACK, body).unwrap_err().to_string();
    let of = |value: Value| complaint(&msgpack(&value));
    assert_eq!(of(json!({"type": "join"})), r#"at byte 0: the member "request" is missing"#);
    assert_eq!(of(json!({"request": 1})), r#"at byte 0: the member "type" is missing"#);
    let integer =
        r#"the member "room" should be an integer from 0 to 2^64 - 1, or one as a decimal string"#;
    for wrong in [json!(-1), json!(1.0), json!("x"), json!(true), json!([1])] {
        assert!(of(json!({"room": wrong, "type": "resync"})).ends_with(integer), "{wrong}");
    }
    assert_eq!(
        of(json!({"room": 1_u64 << 32, "type": "resync"})),
        r#"at byte 6: the member "room" should be an integer from 0 to 2^32 - 1"#
    );
    assert_eq!(
        complaint(b"\x81\xa4type\xc4\x04join"),
        r#"at byte 6: the member "type" should be a string"#
    );
    assert_eq!(
        complaint(b"\x81\xa4type\xa1\xff"),
        r#"at byte 6: the member "type" should be a string"#
    );
    assert_eq!(
        of(json!({"protocol": 1, "token": "%", "type": "hello"})),
        r#"at byte 17: the member "token" should be bytes, or a string in base64 with padding"#
    );
    assert_eq!(
        of(json!({"filter": {"a": 1}, "request": 1, "type": "list"})),
        r#"at byte 8: the member "filter" should be an object of strings"#
    );
    assert_eq!(
        of(
            json!({"protocol": 1, "resume": {"rooms": [{"room": 1}], "token": ""}, "type": "hello"})
        ),
        r#"at byte 26: the member "epoch" is missing"#
    );
    assert_eq!(of(json!({"type": "jump"})), r#"at byte 6: no message has the type "jump""#);
    assert!(
        ClientMessage::decode(MSGPACK, &msgpack(&json!({"type": "jump"})))
            .unwrap_err()
            .is_unknown_kind()
    );
    assert_eq!(complaint(b"\x90"), "at byte 0: a message is a map, and another type came");
    assert_eq!(complaint(b"\x81\x01\x01"), "at byte 1: the name of a member is not a text");
    assert_eq!(
        complaint(b"\x81\xa4type\xa7goodbye\0"),
        "at byte 14: the end was expected, 1 bytes remain"
    );
    assert_eq!(complaint(b""), "at byte 0: a value was expected, 0 bytes remain");
    let extension = "at byte 3: 0xd4 begins an extension type, and none has a meaning here";
    assert_eq!(complaint(b"\x82\xa1x\xd4\0\0\xa4type\xa7goodbye"), extension);
}

#[test]
fn a_number_past_the_bytes_that_came_is_refused() {
    for (body, why) in [
        (
            &b"\xdf\xff\xff\xff\xff\xa1x"[..],
            "at byte 0: a map of 4294967295 members was announced, 2 remain",
        ),
        (
            b"\x81\xa1x\xdd\xff\xff\xff\xff\x01",
            "at byte 3: a list of 4294967295 elements was announced, 1 remain",
        ),
        (
            b"\x81\xa1x\xdb\xff\xff\xff\xff\x01",
            "at byte 3: a text of 4294967295 bytes was announced, 1 remain",
        ),
        (
            b"\x81\xa1x\xc6\xff\xff\xff\xff\x01",
            "at byte 3: a byte string of 4294967295 bytes was announced, 1 remain",
        ),
        (b"\x81\xa1x\x92\x92\x01\x01", "at byte 4: a tree of 3 values was announced, 2 remain"),
    ] {
        let error = ServerMessage::decode(MSGPACK, body).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert!(error.is_truncated());
    }
}

#[test]
fn deep_nesting_is_carried_without_recursion() {
    let deep = [vec![0x91; 200_000], vec![0xc0]].concat();
    let body = [b"\x84\xa1x", &deep[..], b"\xa4type\xa5reply\xa7request\x01\xa7payload", &deep[..]]
        .concat();
    assert_eq!(
        ServerMessage::decode(MSGPACK, &body),
        Ok(ServerMessage::Reply { request: 1, payload: &deep })
    );
}
