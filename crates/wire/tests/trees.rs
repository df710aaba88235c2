//! Messages in `json` and `msgpack`: what the vectors can't express, other accepted forms, and
//! error texts.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{Format, RequestNumber, RoomNumber, TreeFormat};
use serde_json::{Value, json};

const MSGPACK: Format = Format::Msgpack;

fn named(name: &str) -> MessageRef<'_> {
    MessageRef::Name(Cow::Borrowed(name))
}

fn msgpack(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    TreeWriter::new(TreeFormat::Msgpack, &mut out).value(value);
    out
}

/// The vectors store and compare JSON as a tree, whose members have no order.
#[test]
fn json_is_one_line_with_the_members_in_the_order_of_the_table() {
    let resume = Resume {
        token: Cow::Borrowed(&[1, 2, 3]),
        received: 9,
        rooms: vec![ResumeRoom { room: RoomNumber(1), epoch: 300, version: 7 }],
    };
    let hello = ClientMessage::Hello(Hello {
        name: "Ada \"A\"".into(),
        token: Cow::Borrowed(&[0xff, 0]),
        resume: Some(resume),
        schemas: vec![SchemaRef { room_type: "table".into(), fingerprint: u64::MAX }],
        ..Hello::new(Format::Json)
    });
    let mut out = Vec::new();
    hello.encode(Format::Json, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            r#"{"type":"hello","protocol":1,"format":2,"name":"Ada \"A\"","token":"/wA=","#,
            r#""resumable":false,"#,
            r#""resume":{"token":"AQID","received":9,"rooms":[{"room":1,"epoch":300,"version":7}]},"#,
            r#""schemas":[{"room_type":"table","fingerprint":"18446744073709551615"}],"#,
            r#""redirects":false}"#
        )
    );
}

/// Only in `packed`: after a hello in a tree format, messages use that format.
#[test]
fn a_hello_in_packed_may_name_another_format() {
    let hello = ClientMessage::Hello(Hello::new(Format::Json));
    let mut out = Vec::new();
    hello.encode(Format::Packed, &mut out);
    assert_eq!(out, [1, 1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ClientMessage::decode(Format::Packed, &out), Ok(hello));
}

/// Each line of the examples in `docs/protocol.md`, with texts in quotes between hex digits.
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
fn the_examples_of_the_document_are_correct() {
    let [hello, join] = &documented()[..] else { panic!("two examples") };
    let expected = ClientMessage::Hello(Hello::new(MSGPACK));
    assert_eq!(ClientMessage::decode_first(hello), Ok((MSGPACK, expected)));
    let expected =
        ClientMessage::Join(client::Join { request: RequestNumber(1), room: "r7".into() });
    assert_eq!(ClientMessage::decode(MSGPACK, join), Ok(expected));
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
        Ok(ClientMessage::Send(client::Send {
            room: RoomNumber(3),
            message,
            payload: b"\x92\x01\x02"
        }))
    );
    let resync = msgpack(&json!({"type": "resync", "room": "7"}));
    assert_eq!(
        ClientMessage::decode(MSGPACK, &resync),
        Ok(ClientMessage::Resync(client::Resync { room: RoomNumber(7) }))
    );
    let list = ClientMessage::List(client::List {
        request: RequestNumber(4),
        room_type: None,
        filter: vec![],
        limit: 0,
    });
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
fn errors_name_what_is_wrong() {
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
            json!({"protocol": 1, "resume": {"rooms": [{"room": 1}], "token": "", "received": 0}, "type": "hello"})
        ),
        r#"at byte 36: the member "epoch" is missing"#
    );
    assert_eq!(of(json!({"type": "jump"})), r#"at byte 6: no message has the type "jump""#);
    assert!(
        ClientMessage::decode(MSGPACK, &msgpack(&json!({"type": "jump"})))
            .unwrap_err()
            .is_unknown_kind()
    );
    assert_eq!(complaint(b"\x90"), "at byte 0: a message must be a map, but is another type");
    assert_eq!(complaint(b"\x81\x01\x01"), "at byte 1: the name of a member is not a text");
    assert_eq!(
        complaint(b"\x81\xa4type\xa7goodbye\0"),
        "at byte 14: the end was expected, 1 bytes remain"
    );
    assert_eq!(complaint(b""), "at byte 0: a value was expected, 0 bytes remain");
    let extension = "at byte 3: 0xd4 begins an extension type, which is not supported";
    assert_eq!(complaint(b"\x82\xa1x\xd4\0\0\xa4type\xa7goodbye"), extension);
}

#[test]
fn a_count_past_the_bytes_left_is_rejected() {
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
        Ok(ServerMessage::Reply(server::Reply {
            request: RequestNumber(1),
            payload: (&deep).into()
        }))
    );
}
