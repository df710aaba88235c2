//! The messages in the vectors, and bytes that are not messages.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage, Hello, Position, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{
    self, Lost, MemberInfo, PastPublication, Resumed, RoomInfo, ServerMessage,
};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

/// A payload, in each format.
fn payload(format: Format) -> &'static [u8] {
    match format {
        Format::Packed => b"\x02\xff",
        Format::Msgpack => b"\x81\xa5count\x02",
        Format::Json => br#"{"count":2}"#,
    }
}

/// A JSON value: its text in `packed`.
fn value(format: Format) -> &'static [u8] {
    match format {
        Format::Packed | Format::Json => br#"{"count":2}"#,
        Format::Msgpack => b"\x81\xa5count\x02",
    }
}

/// Bytes, not a JSON value.
fn blob(format: Format) -> &'static [u8] {
    match format {
        Format::Packed => b"\x02\xff",
        Format::Msgpack => b"\xc4\x02\x02\xff",
        Format::Json => br#""Av8=""#,
    }
}

/// The payload of a type without fields.
fn nothing(format: Format) -> &'static [u8] {
    match format {
        Format::Packed => b"\0",
        Format::Msgpack | Format::Json => b"",
    }
}

/// A user message: named by its index in the schema in `packed`, by its name in trees.
fn which(format: Format) -> MessageRef<'static> {
    match format {
        Format::Packed => MessageRef::Index(2),
        Format::Msgpack | Format::Json => MessageRef::Name(Cow::Borrowed("draw")),
    }
}

/// The messages of a client, each with a description.
pub(crate) fn client(format: Format) -> Vec<(&'static str, ClientMessage<'static>)> {
    let own = payload(format);
    let resume = Resume {
        token: Cow::Borrowed(&[1, 2, 3]),
        received: 130,
        rooms: vec![ResumeRoom { room: RoomNumber(1), epoch: 300, version: 7 }],
    };
    vec![
        ("a hello of a guest", ClientMessage::Hello(Hello::new(format))),
        (
            "a hello with all its parts",
            ClientMessage::Hello(Hello {
                name: "Ada".into(),
                token: Cow::Borrowed(&[0xFF, 0]),
                resumable: true,
                resume: Some(resume),
                schemas: vec![SchemaRef { room_type: "table".into(), fingerprint: u64::MAX }],
                ..Hello::new(format)
            }),
        ),
        (
            "join",
            ClientMessage::Join(client::Join { request: RequestNumber(1), room: "r7".into() }),
        ),
        (
            "create, without options",
            ClientMessage::Create(client::Create {
                request: RequestNumber(2),
                room_type: "table".into(),
                private: true,
                code: false,
                key: None,
                options: b"",
            }),
        ),
        (
            "create, with options",
            ClientMessage::Create(client::Create {
                request: RequestNumber(2),
                room_type: "table".into(),
                private: false,
                code: false,
                key: None,
                options: own,
            }),
        ),
        (
            "create, with a key",
            ClientMessage::Create(client::Create {
                request: RequestNumber(2),
                room_type: "table".into(),
                private: false,
                code: false,
                key: Some("döcument 42".into()),
                options: own,
            }),
        ),
        (
            "create, with a code",
            ClientMessage::Create(client::Create {
                request: RequestNumber(2),
                room_type: "table".into(),
                private: true,
                code: true,
                key: None,
                options: b"",
            }),
        ),
        (
            "join by key",
            ClientMessage::JoinByKey(client::JoinByKey {
                request: RequestNumber(5),
                room_type: "table".into(),
                key: "K7WQ4C".into(),
            }),
        ),
        (
            "join or create",
            ClientMessage::JoinOrCreate(client::JoinOrCreate {
                request: RequestNumber(3),
                room_type: "täble".into(),
                key: None,
                options: own,
            }),
        ),
        (
            "join or create, with a key",
            ClientMessage::JoinOrCreate(client::JoinOrCreate {
                request: RequestNumber(3),
                room_type: "table".into(),
                key: Some("document 42".into()),
                options: own,
            }),
        ),
        (
            "list, of all",
            ClientMessage::List(client::List {
                request: RequestNumber(4),
                room_type: None,
                filter: vec![],
                limit: 0,
            }),
        ),
        (
            "list, of some",
            ClientMessage::List(client::List {
                request: RequestNumber(4),
                room_type: Some("table".into()),
                filter: vec![("map".into(), "sea".into()), ("a\"b".into(), "".into())],
                limit: 20,
            }),
        ),
        (
            "schema",
            ClientMessage::Schema(client::Schema {
                request: RequestNumber(3),
                room_type: "table".into(),
            }),
        ),
        (
            "leave",
            ClientMessage::Leave(client::Leave {
                request: RequestNumber(u32::MAX),
                room: RoomNumber(1),
            }),
        ),
        (
            "request",
            ClientMessage::Request(client::Request {
                room: RoomNumber(1),
                request: RequestNumber(128),
                message: which(format),
                payload: own,
            }),
        ),
        (
            "send",
            ClientMessage::Send(client::Send {
                room: RoomNumber(1),
                message: which(format),
                payload: own,
            }),
        ),
        (
            "send, of a message without fields",
            ClientMessage::Send(client::Send {
                room: RoomNumber(0),
                message: which(format),
                payload: nothing(format),
            }),
        ),
        ("ack", ClientMessage::Ack(client::Ack { received: 300 })),
        ("resync", ClientMessage::Resync(client::Resync { room: RoomNumber(16_384) })),
        ("ping, with a nonce past 2^53", ClientMessage::Ping(client::Ping { nonce: 1 << 53 })),
        ("pong", ClientMessage::Pong(client::Pong { nonce: 9 })),
        ("goodbye", ClientMessage::Goodbye(client::Goodbye {})),
        (
            "subscribe",
            ClientMessage::Subscribe(client::Subscribe {
                request: RequestNumber(8),
                channel: "chat:lobby".into(),
                since: None,
                presence: false,
            }),
        ),
        (
            "subscribe, from a position",
            ClientMessage::Subscribe(client::Subscribe {
                request: RequestNumber(8),
                channel: "chat:lobby".into(),
                since: Some(Position { epoch: 300, offset: 41 }),
                presence: true,
            }),
        ),
        ("unsubscribe", ClientMessage::Unsubscribe(client::Unsubscribe { channel: 300 })),
        (
            "publish",
            ClientMessage::Publish(client::Publish {
                request: Some(RequestNumber(9)),
                channel: "chat:lobby".into(),
                payload: value(format),
            }),
        ),
        (
            "publish, without an answer",
            ClientMessage::Publish(client::Publish {
                request: None,
                channel: "chat:lobby".into(),
                payload: value(format),
            }),
        ),
        (
            "members",
            ClientMessage::Members(client::Members {
                request: RequestNumber(10),
                channel: "chat:lobby".into(),
            }),
        ),
        (
            "history",
            ClientMessage::History(client::History {
                request: RequestNumber(11),
                channel: "chat:lobby".into(),
                since: Some(Position { epoch: 300, offset: 41 }),
                limit: 20,
            }),
        ),
        (
            "register",
            ClientMessage::Register(client::Register {
                request: RequestNumber(12),
                device: "sensor-7".into(),
                metadata: vec![("model".into(), "b2".into())],
                tags: vec!["roof".into(), "nörth".into()],
            }),
        ),
        (
            "register, with nothing but an id",
            ClientMessage::Register(client::Register {
                request: RequestNumber(12),
                device: "sensor-7".into(),
                metadata: vec![],
                tags: vec![],
            }),
        ),
        (
            "report",
            ClientMessage::Report(client::Report {
                request: Some(RequestNumber(13)),
                payload: value(format),
            }),
        ),
        (
            "report, without an answer",
            ClientMessage::Report(client::Report { request: None, payload: value(format) }),
        ),
        (
            "answer",
            ClientMessage::Answer(client::Answer {
                command: 5,
                error: None,
                payload: value(format),
            }),
        ),
        (
            "answer, that it failed",
            ClientMessage::Answer(client::Answer {
                command: 5,
                error: Some("the valve is stuck".into()),
                payload: b"",
            }),
        ),
    ]
}

/// The messages of a node.
pub(crate) fn server(format: Format) -> Vec<(&'static str, ServerMessage<'static>)> {
    let own = payload(format);
    let info = |id: &'static str, locked: bool, metadata| RoomInfo {
        id: id.into(),
        room_type: "table".into(),
        key: locked.then(|| "document 42".into()),
        players: 3,
        capacity: 200,
        locked,
        metadata,
    };
    vec![
        (
            "welcome",
            ServerMessage::Welcome(server::Welcome {
                protocol: 1,
                session: 77,
                resume: Cow::Borrowed(&[0xAB, 0xCD]),
                heartbeat_ms: 10_000,
                max_message_bytes: 65_536,
                grace_ms: 20_000,
                resumed: None,
            }),
        ),
        (
            "welcome, resumed",
            ServerMessage::Welcome(server::Welcome {
                protocol: 1,
                session: 77,
                resume: Cow::Borrowed(&[0xAB, 0xCE]),
                heartbeat_ms: 10_000,
                max_message_bytes: 65_536,
                grace_ms: 20_000,
                resumed: Some(Resumed { received: 130, lost: vec![] }),
            }),
        ),
        (
            "welcome, resumed with losses",
            ServerMessage::Welcome(server::Welcome {
                protocol: 1,
                session: 77,
                resume: Cow::Borrowed(&[0xAB, 0xCF]),
                heartbeat_ms: 10_000,
                max_message_bytes: 65_536,
                grace_ms: 0,
                resumed: Some(Resumed {
                    received: 0,
                    lost: vec![
                        Lost { room: None, messages: 1 },
                        Lost { room: Some(RoomNumber(2)), messages: 300 },
                    ],
                }),
            }),
        ),
        (
            "joined",
            ServerMessage::Joined(server::Joined {
                request: RequestNumber(1),
                room: RoomNumber(2),
                id: "r7".into(),
                room_type: "table".into(),
                key: None,
                player: 3,
                epoch: u64::MAX,
                tick_hz: 60,
                sync_hz: 20,
                fingerprint: 0xAF63_DC4C_8601_EC8C,
                silence_ms: 0,
                grace_ms: 0,
            }),
        ),
        (
            "joined, a room with a key that wants to notice silence and keeps seats",
            ServerMessage::Joined(server::Joined {
                request: RequestNumber(1),
                room: RoomNumber(2),
                id: "r7".into(),
                room_type: "table".into(),
                key: Some("document 42".into()),
                player: 3,
                epoch: 7,
                tick_hz: 0,
                sync_hz: 20,
                fingerprint: 1,
                silence_ms: 3_000,
                grace_ms: 5_000,
            }),
        ),
        (
            "listed, none",
            ServerMessage::Listed(server::Listed { request: RequestNumber(4), rooms: vec![] }),
        ),
        (
            "listed",
            ServerMessage::Listed(server::Listed {
                request: RequestNumber(4),
                rooms: vec![
                    info("r7", false, vec![("map".into(), "sea".into())]),
                    info("é", true, vec![]),
                ],
            }),
        ),
        (
            "schema, asked for",
            ServerMessage::Schema(server::Schema {
                request: Some(RequestNumber(3)),
                room_type: "table".into(),
                schema: b"{}".into(),
            }),
        ),
        (
            "schema, by itself",
            ServerMessage::Schema(server::Schema {
                request: None,
                room_type: "table".into(),
                schema: b"{}".into(),
            }),
        ),
        (
            "left, asked for",
            ServerMessage::Left(server::Left {
                request: Some(RequestNumber(5)),
                room: RoomNumber(1),
                code: ErrorCode::Left,
                text: "".into(),
            }),
        ),
        (
            "left, thrown out",
            ServerMessage::Left(server::Left {
                request: None,
                room: RoomNumber(1),
                code: ErrorCode::Kicked,
                text: "bye".into(),
            }),
        ),
        (
            "reply",
            ServerMessage::Reply(server::Reply { request: RequestNumber(6), payload: own.into() }),
        ),
        (
            "reply, of nothing",
            ServerMessage::Reply(server::Reply {
                request: RequestNumber(6),
                payload: nothing(format).into(),
            }),
        ),
        (
            "event",
            ServerMessage::Event(server::Event {
                room: RoomNumber(1),
                sequence: 2,
                version: 300,
                message: which(format),
                payload: own.into(),
            }),
        ),
        (
            "snapshot",
            ServerMessage::Snapshot(server::Snapshot {
                room: RoomNumber(1),
                epoch: 2,
                version: 300,
                body: whole(format).into(),
            }),
        ),
        (
            "patch",
            ServerMessage::Patch(server::Patch {
                room: RoomNumber(1),
                base: 300,
                version: 302,
                body: operations(format).into(),
            }),
        ),
        (
            "check",
            ServerMessage::Check(server::Check {
                room: RoomNumber(1),
                version: 300,
                digest: 0x0102_0304_0506_0708,
            }),
        ),
        ("ping", ServerMessage::Ping(server::Ping { nonce: 8 })),
        ("pong", ServerMessage::Pong(server::Pong { nonce: u64::MAX, time_us: 1_500_000 })),
        ("ack", ServerMessage::Ack(server::Ack { received: 300 })),
        (
            "error, about a request",
            ServerMessage::Error(server::Error {
                request: Some(RequestNumber(6)),
                room: None,
                code: ErrorCode::RoomFull,
                text: "4 of 4".into(),
                retry_after_ms: None,
            }),
        ),
        (
            "error, with a room's own code",
            ServerMessage::Error(server::Error {
                request: None,
                room: Some(RoomNumber(1)),
                code: ErrorCode::Room(1001),
                text: "".into(),
                retry_after_ms: None,
            }),
        ),
        (
            "error, of a rate",
            ServerMessage::Error(server::Error {
                request: Some(RequestNumber(7)),
                room: None,
                code: ErrorCode::Limit,
                text: "lists_per_second_max: one session gets 10 in a second".into(),
                retry_after_ms: Some(300),
            }),
        ),
        (
            "goodbye",
            ServerMessage::Goodbye(server::Goodbye {
                code: ErrorCode::ShuttingDown,
                text: "".into(),
            }),
        ),
        (
            "subscribed",
            ServerMessage::Subscribed(server::Subscribed {
                request: RequestNumber(8),
                channel: 300,
                epoch: 7,
                offset: 0,
                recovered: false,
                bytes: false,
                members: 0,
            }),
        ),
        (
            "subscribed, recovered, to bytes",
            ServerMessage::Subscribed(server::Subscribed {
                request: RequestNumber(8),
                channel: 300,
                epoch: u64::MAX,
                offset: 41,
                recovered: true,
                bytes: true,
                members: 10_000,
            }),
        ),
        (
            "publication",
            ServerMessage::Publication(server::Publication {
                channel: 300,
                offset: 42,
                user: None,
                payload: value(format).into(),
            }),
        ),
        (
            "publication, of a user, of bytes",
            ServerMessage::Publication(server::Publication {
                channel: 300,
                offset: 42,
                user: Some("ada".into()),
                payload: blob(format).into(),
            }),
        ),
        (
            "unsubscribed",
            ServerMessage::Unsubscribed(server::Unsubscribed {
                channel: 300,
                code: ErrorCode::TooSlow,
                text: "subscriber_queue_max".into(),
            }),
        ),
        (
            "presence, joined",
            ServerMessage::Presence(server::Presence {
                channel: 300,
                sequence: 2,
                joined: true,
                session: 77,
                user: Some("ada".into()),
                name: "Ada".into(),
            }),
        ),
        (
            "presence, left",
            ServerMessage::Presence(server::Presence {
                channel: 300,
                sequence: 3,
                joined: false,
                session: 78,
                user: None,
                name: "".into(),
            }),
        ),
        (
            "published",
            ServerMessage::Published(server::Published { request: RequestNumber(9), offset: 42 }),
        ),
        (
            "members",
            ServerMessage::Members(server::Members {
                request: RequestNumber(10),
                sequence: 3,
                count: 2,
                members: vec![
                    MemberInfo { session: 77, user: Some("ada".into()), name: "Ada".into() },
                    MemberInfo { session: 79, user: None, name: "".into() },
                ],
            }),
        ),
        (
            "history",
            ServerMessage::History(server::History {
                request: RequestNumber(11),
                epoch: 7,
                offset: 43,
                bytes: false,
                publications: vec![
                    PastPublication {
                        offset: 42,
                        user: Some("ada".into()),
                        payload: value(format).into(),
                    },
                    PastPublication { offset: 43, user: None, payload: value(format).into() },
                ],
            }),
        ),
        (
            "history, of bytes",
            ServerMessage::History(server::History {
                request: RequestNumber(11),
                epoch: 7,
                offset: 42,
                bytes: true,
                publications: vec![PastPublication {
                    offset: 42,
                    user: None,
                    payload: blob(format).into(),
                }],
            }),
        ),
        (
            "registered",
            ServerMessage::Registered(server::Registered {
                request: RequestNumber(12),
                is_new: true,
                bytes: true,
            }),
        ),
        (
            "command",
            ServerMessage::Command(server::Command {
                command: Some(5),
                payload: value(format).into(),
            }),
        ),
        (
            "command, without an answer",
            ServerMessage::Command(server::Command {
                command: None,
                payload: value(format).into(),
            }),
        ),
        (
            "error, of a channel",
            ServerMessage::Error(server::Error {
                request: Some(RequestNumber(8)),
                room: None,
                code: ErrorCode::Forbidden,
                text: "".into(),
                retry_after_ms: None,
            }),
        ),
    ]
}

/// A snapshot's body.
fn whole(format: Format) -> &'static [u8] {
    match format {
        Format::Packed => b"\x02\xff",
        Format::Msgpack => b"\x91\x92\x90\x80",
        Format::Json => b"[[[],{}]]",
    }
}

/// A patch's body. Only the state crate knows its meaning.
fn operations(format: Format) -> &'static [u8] {
    match format {
        Format::Packed => b"\x02\xff",
        Format::Msgpack => b"\x90",
        Format::Json => b"[]",
    }
}

/// Bytes that are not a message, each with the reason.
pub(crate) type Refused = Vec<(&'static str, Format, Vec<u8>)>;

/// A map in MessagePack of these texts and numbers.
fn msgpack(members: &[(&str, Member)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object =
        TreeWriter::new(playfield_wire::TreeFormat::Msgpack, &mut out).object(members.len());
    for (name, member) in members {
        let value = object.member(name);
        match member {
            Member::Number(number) => value.u64(*number),
            Member::Text(text) => value.text(text),
        }
    }
    object.end();
    out
}

enum Member {
    Number(u64),
    Text(&'static str),
}

fn packed(bytes: &[u8]) -> (Format, Vec<u8>) {
    (Format::Packed, bytes.to_vec())
}

fn json(text: &str) -> (Format, Vec<u8>) {
    (Format::Json, text.as_bytes().to_vec())
}

fn all(cases: Vec<(&'static str, (Format, Vec<u8>))>) -> Refused {
    cases.into_iter().map(|(about, (format, bytes))| (about, format, bytes)).collect()
}

/// Bytes that no client may send.
pub(crate) fn refused_of_clients() -> Refused {
    let ping = |nonce: &[u8]| packed(&[b"\x0b", nonce].concat());
    all(vec![
        ("nothing", packed(b"")),
        ("no such kind", packed(b"\x00")),
        ("no such kind", packed(b"\x18")),
        ("a kind of the other direction", packed(b"\x41\x01\x4d\x00\x01\x01")),
        ("a byte after the last field", packed(b"\x0d\x00")),
        ("a varint longer than need be", ping(b"\x80\x00")),
        ("a varint past 64 bits", ping(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")),
        ("a varint of eleven bytes", ping(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
        ("a number past 32 bits", packed(b"\x0a\x80\x80\x80\x80\x10")),
        ("a text that is not UTF-8", packed(b"\x02\x01\x02r\xff")),
        ("a text longer than what came", packed(b"\x02\x01\xff\xff\xff\xff\x0fr7")),
        ("a bool that is neither", packed(b"\x03\x02\x01t\x02")),
        ("an option that is neither there nor not", packed(b"\x05\x04\x02\x00\x00")),
        ("more pairs than what came can hold", packed(b"\x05\x04\x00\xff\xff\xff\xff\x0f\x00")),
        ("a format that is not spoken", packed(b"\x01\x01\x03\x00\x00\x00\x00")),
        ("nothing", json("")),
        ("no JSON", json("{")),
        ("a comma too many", json(r#"{"type":"goodbye",}"#)),
        ("something after the message", json(r#"{"type":"goodbye"} x"#)),
        ("an array", json("[]")),
        ("no type", json(r#"{"nonce":1}"#)),
        ("no such type", json(r#"{"type":"jump"}"#)),
        ("a type of the other direction", json(r#"{"type":"welcome"}"#)),
        ("a type that is no text", json(r#"{"type":11,"nonce":1}"#)),
        ("a member that is missing", json(r#"{"type":"ping"}"#)),
        ("a number below zero", json(r#"{"type":"ping","nonce":-1}"#)),
        ("a fraction", json(r#"{"type":"ping","nonce":1.5}"#)),
        ("a number past 64 bits", json(r#"{"type":"ping","nonce":18446744073709551616}"#)),
        ("a number past 32 bits", json(r#"{"type":"resync","room":4294967296}"#)),
        ("no base64", json(r#"{"type":"hello","protocol":1,"token":"%"}"#)),
        ("base64 without padding", json(r#"{"type":"hello","protocol":1,"token":"/w"}"#)),
        ("half a surrogate pair", json(r#"{"type":"join","request":1,"room":"\ud800"}"#)),
        ("a filter of numbers", json(r#"{"type":"list","request":1,"filter":{"a":1}}"#)),
        ("nothing", (Format::Msgpack, vec![])),
        ("an array", (Format::Msgpack, vec![0x90])),
        ("a byte that MessagePack never uses", (Format::Msgpack, vec![0xC1])),
        ("no type", (Format::Msgpack, msgpack(&[("nonce", Member::Number(1))]))),
        ("no such type", (Format::Msgpack, msgpack(&[("type", Member::Text("jump"))]))),
        ("a member that is missing", (Format::Msgpack, msgpack(&[("type", Member::Text("ping"))]))),
        (
            "a number past 32 bits",
            (
                Format::Msgpack,
                msgpack(&[("type", Member::Text("resync")), ("room", Member::Number(1 << 32))]),
            ),
        ),
        (
            "a text for a number",
            (
                Format::Msgpack,
                msgpack(&[("type", Member::Text("ping")), ("nonce", Member::Text("a"))]),
            ),
        ),
        (
            "something after the message",
            (Format::Msgpack, [msgpack(&[("type", Member::Text("goodbye"))]), vec![0xC0]].concat()),
        ),
        (
            "more members than what came can hold",
            (Format::Msgpack, vec![0xDF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ),
    ])
}

/// Bytes that no node may send.
pub(crate) fn refused_of_nodes() -> Refused {
    all(vec![
        ("nothing", packed(b"")),
        ("no such kind", packed(b"\x4f")),
        ("a kind of the other direction", packed(b"\x0d")),
        ("more rooms than what came can hold", packed(b"\x43\x04\xff\xff\xff\xff\x0f")),
        ("no such code", packed(b"\x4c\x64\x00")),
        ("a code between the protocol's and the rooms'", packed(b"\x4c\xe7\x07\x00")),
        ("a code past 65,535", packed(b"\x4c\x80\x80\x04\x00")),
        (
            "a patch that leads past the last version",
            packed(b"\x48\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"),
        ),
        ("a digest that is cut", packed(b"\x4d\x01\x05\x08\x07\x06\x05\x04\x03\x02")),
        ("no such code", json(r#"{"type":"goodbye","code":"busier","text":""}"#)),
        ("a code by its number", json(r#"{"type":"goodbye","code":16,"text":""}"#)),
        ("a code past 65,535", json(r#"{"type":"goodbye","code":65536,"text":""}"#)),
        (
            "a patch that leads back",
            json(r#"{"type":"patch","room":1,"base":3,"version":2,"ops":[]}"#),
        ),
        ("a room that is no object", json(r#"{"type":"listed","request":4,"rooms":[7]}"#)),
        (
            "a type of the other direction",
            (Format::Msgpack, msgpack(&[("type", Member::Text("hello"))])),
        ),
    ])
}
