//! Rejected input, tolerated input, and the error texts.

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{DecodeError, ErrorCode, Format, RequestNumber, RoomNumber};

fn from_json(text: &str) -> Result<ClientMessage<'_>, DecodeError> {
    ClientMessage::decode(Format::Json, text.as_bytes())
}

fn complaint(text: &str) -> String {
    from_json(text).unwrap_err().to_string()
}

#[test]
fn the_first_message_determines_the_format() {
    let packed = ClientMessage::decode_first(&[1, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(packed, Ok((Format::Packed, ClientMessage::Hello(Hello::new(Format::Packed)))));
    let packed_naming_json = ClientMessage::decode_first(&[1, 1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        packed_naming_json,
        Ok((Format::Json, ClientMessage::Hello(Hello::new(Format::Json))))
    );
    let packed_naming_msgpack = ClientMessage::decode_first(&[1, 1, 1, 0, 0, 0, 0, 0, 0]);
    let msgpack_hello = ClientMessage::Hello(Hello::new(Format::Msgpack));
    assert_eq!(packed_naming_msgpack, Ok((Format::Msgpack, msgpack_hello.clone())));
    for head in [&[0x82][..], &[0xde, 0, 2], &[0xdf, 0, 0, 0, 2]] {
        let hello = [head, b"\xa8protocol\x01\xa4type\xa5hello"].concat();
        assert_eq!(
            ClientMessage::decode_first(&hello),
            Ok((Format::Msgpack, msgpack_hello.clone()))
        );
    }
    let json = ClientMessage::decode_first(br#"{"protocol":1,"type":"hello"}"#);
    assert_eq!(json, Ok((Format::Json, ClientMessage::Hello(Hello::new(Format::Json)))));
    let no_hello = ClientMessage::decode_first(&[0x0d]);
    assert_eq!(no_hello, Ok((Format::Packed, ClientMessage::Goodbye(client::Goodbye {}))));
}

#[test]
fn an_unsupported_format_has_its_own_error() {
    let packed = ClientMessage::decode_first(&[1, 1, 3, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(packed.unspoken_format(), Some(3));
    assert_eq!(packed.to_string(), "at byte 2: the format 3 is not supported here");
    let json = from_json(r#"{"type":"hello","protocol":1,"format":0}"#).unwrap_err();
    assert_eq!(json.unspoken_format(), Some(0));
    let msgpack =
        ClientMessage::decode_first(b"\x83\xa8protocol\x01\xa4type\xa5hello\xa6format\x02")
            .unwrap_err();
    assert_eq!(msgpack.unspoken_format(), Some(2));
    assert_eq!(msgpack.to_string(), "at byte 29: the format 2 is not supported here");
    assert_eq!(ClientMessage::decode_first(&[1, 1]).unwrap_err().unspoken_format(), None);
}

#[test]
fn a_hello_of_another_protocol_version_is_read() {
    let hello = |format| ClientMessage::Hello(Hello { protocol: 2, ..Hello::new(format) });
    let packed = ClientMessage::decode_first(&[1, 2, 0xee, 0xee]);
    assert_eq!(packed, Ok((Format::Packed, hello(Format::Packed))));
    let json =
        ClientMessage::decode_first(br#"{"type":"hello","protocol":2,"name":{"first":"Ada"}}"#);
    assert_eq!(json, Ok((Format::Json, hello(Format::Json))));
}

#[test]
fn unknown_kinds_have_their_own_error() {
    for body in [&[0x00][..], &[0x18], &[0x41, 1], &[0xff]] {
        let error = ClientMessage::decode(Format::Packed, body).unwrap_err();
        assert!(error.is_unknown_kind(), "{error}");
    }
    let error = ServerMessage::decode(Format::Packed, &[0x01]).unwrap_err();
    assert_eq!(error.to_string(), "at byte 0: no message has the kind 0x01");
    let error = from_json(r#"{"type":"jump"}"#).unwrap_err();
    assert!(error.is_unknown_kind());
    assert_eq!(error.to_string(), r#"at byte 8: no message has the type "jump""#);
    assert!(!ClientMessage::decode(Format::Packed, &[]).unwrap_err().is_unknown_kind());
}

#[test]
fn json_members_come_in_any_order_and_the_last_of_a_name_counts() {
    let send = from_json(
        "\t{\"later\": [{}], \"payload\": [1, 2] , \"room\": 1, \"room\" : \"3\",\n \
         \"message\": \"w\\u0061ve\", \"type\": \"send\"}\r\n",
    );
    let message = MessageRef::Name("wave".into());
    assert_eq!(
        send,
        Ok(ClientMessage::Send(client::Send { room: RoomNumber(3), message, payload: b"[1, 2]" }))
    );
}

#[test]
fn json_members_that_may_be_absent_may_also_be_null() {
    let list = ClientMessage::List(client::List {
        request: RequestNumber(4),
        room_type: None,
        filter: vec![],
        limit: 0,
    });
    assert_eq!(from_json(r#"{"type":"list","request":4}"#), Ok(list.clone()));
    let nulls = r#"{"type":"list","request":4,"room_type":null,"filter":null,"limit":null}"#;
    assert_eq!(from_json(nulls), Ok(list));
    let create = from_json(r#"{"type":"create","request":4,"room_type":"t","options":null}"#);
    let expected = ClientMessage::Create(client::Create {
        request: RequestNumber(4),
        room_type: "t".into(),
        private: false,
        code: false,
        key: None,
        options: b"",
    });
    assert_eq!(create, Ok(expected));
}

#[test]
fn json_errors_name_the_member_and_the_place() {
    assert_eq!(
        complaint(r#"{"type":"join","room":"x"}"#),
        r#"at byte 0: the member "request" is missing"#
    );
    assert_eq!(
        complaint(r#"{"type":"join","request":-1,"room":"x"}"#),
        r#"at byte 25: the member "request" should be an integer from 0 to 2^64 - 1, or one as a decimal string"#
    );
    assert_eq!(
        complaint(r#"{"type":"leave","request":4294967296,"room":1}"#),
        r#"at byte 26: the member "request" should be an integer from 0 to 2^32 - 1"#
    );
    assert_eq!(
        complaint(r#"{"type":"join","request":1,"room":7}"#),
        r#"at byte 34: the member "room" should be a string"#
    );
    assert_eq!(
        complaint(r#"{"type":"hello","protocol":1,"token":"%"}"#),
        r#"at byte 37: the member "token" should be a string in base64 with padding"#
    );
    assert_eq!(
        complaint(
            r#"{"type":"hello","protocol":1,"resume":{"token":"","received":0,"rooms":[{"room":1}]}}"#
        ),
        r#"at byte 72: the member "epoch" is missing"#
    );
    assert_eq!(
        complaint(r#"{"type":"list","request":1,"filter":{"a":1}}"#),
        r#"at byte 36: the member "filter" should be an object of strings"#
    );
    assert_eq!(complaint(r#"{"request":1}"#), r#"at byte 0: the member "type" is missing"#);
}

#[test]
fn invalid_json_is_rejected_at_the_first_wrong_byte() {
    assert_eq!(complaint("{\"type\":\n\"ping\",}"), "at byte 16: trailing comma");
    assert_eq!(
        complaint("[]"),
        "at byte 0: invalid type: sequence, expected a message as an object"
    );
    assert_eq!(complaint(r#"{"type":"goodbye"} x"#), "at byte 19: trailing characters");
    let not_utf8 = ClientMessage::decode(Format::Json, b"{\"type\":\"\xff\"}").unwrap_err();
    assert_eq!(not_utf8.to_string(), "at byte 9: a text is not UTF-8");
}

#[test]
fn deep_nesting_is_carried_without_recursion() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let text = format!(r#"{{"x":{deep},"type":"reply","request":1,"payload":{deep}}}"#);
    let reply = ServerMessage::decode(Format::Json, text.as_bytes());
    assert_eq!(
        reply,
        Ok(ServerMessage::Reply(server::Reply {
            request: RequestNumber(1),
            payload: deep.as_bytes().into()
        }))
    );
}

#[test]
fn lists_longer_than_the_message_are_rejected() {
    let listed = [0x43, 4, 0xff, 0xff, 0xff, 0xff, 0x0f];
    let error = ServerMessage::decode(Format::Packed, &listed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "at byte 2: a list of 4294967295 elements was announced, 0 remain"
    );
}

#[test]
fn codes_are_names_and_a_rooms_own_are_numbers() {
    let goodbye = |code: &str| {
        let text = format!(r#"{{"type":"goodbye","code":{code},"text":""}}"#);
        match ServerMessage::decode(Format::Json, text.as_bytes()) {
            Ok(ServerMessage::Goodbye(server::Goodbye { code, .. })) => Ok(code),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    };
    assert_eq!(goodbye(r#""busy""#), Ok(ErrorCode::Busy));
    assert_eq!(goodbye("1000"), Ok(ErrorCode::Room(1000)));
    assert_eq!(goodbye(r#""1000""#), Ok(ErrorCode::Room(1000)));
    let refusal = r#"at byte 25: the member "code" should be the name of a code, or a number from 1000 to 65535"#;
    for code in ["16", "999", "65536", r#""busier""#, "[]"] {
        assert_eq!(goodbye(code), Err(refusal.to_owned()), "{code}");
    }
    assert_eq!(goodbye("null"), Err(r#"at byte 0: the member "code" is missing"#.to_owned()));
    let packed = ServerMessage::decode(Format::Packed, &[0x4c, 100, 0]).unwrap_err();
    assert_eq!(packed.to_string(), "at byte 1: no code has the number 100");
}

#[test]
fn a_patch_must_not_lead_back() {
    let text = br#"{"type":"patch","room":1,"base":3,"version":2,"ops":[]}"#;
    let error = ServerMessage::decode(Format::Json, text).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"at byte 44: the member "version" should be at least the base, 3"#
    );
    let mut packed = vec![0x48, 1];
    packed.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1]);
    let error = ServerMessage::decode(Format::Packed, &packed).unwrap_err();
    assert_eq!(error.to_string(), "at byte 12: the patch's version is past 2^64 - 1");
}
