//! Bytes that are not messages, each with the reason.

use playfield_wire::Format;
use playfield_wire::tree::TreeWriter;

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
