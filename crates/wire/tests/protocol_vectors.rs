//! The messages in `conformance/vectors/protocol/`, for clients in other languages. This crate
//! writes and reads exactly these.
//!
//! `PLAYFIELD_WRITE_VECTORS=1 cargo test -p playfield-wire the_vectors_are_what` regenerates them.

mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use playfield_wire::Format;
use playfield_wire::client::ClientMessage;
use playfield_wire::server::ServerMessage;
use serde_json::{Value, json};

use crate::messages::Message;
use crate::messages::cases::cases;
use refused::{Refused, refused_of_clients, refused_of_nodes};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// Lengths at which a truncated `packed` message ends within a field, so it must be rejected. At
/// other lengths, a payload begins.
fn refused_cuts<M: Message>(whole: &[u8]) -> Vec<usize> {
    (0..whole.len()).filter(|cut| M::again(Format::Packed, &whole[..*cut]).is_err()).collect()
}

fn vectors<M: Message>(about: &str, refused: Refused) -> Value {
    let [packed, msgpack, json] = Format::ALL.map(|format| {
        let cases = cases::<M>(format);
        for (name, case) in &cases {
            let read = M::again(format, &case.bytes);
            assert_eq!(read.as_ref(), Ok(&case.bytes), "{name} in {}", format.name());
        }
        cases
    });
    let accepted = packed.iter().zip(&msgpack).zip(&json).map(
        |(((name, packed), (_, msgpack)), (_, json))| {
            json!({
                "name": name,
                "json": serde_json::from_slice::<Value>(&json.bytes).unwrap(),
                "msgpack": hex(&msgpack.bytes),
                "packed": hex(&packed.bytes),
                "refused_cuts": refused_cuts::<M>(&packed.bytes),
            })
        },
    );
    let refused = refused.iter().map(|(why, format, bytes)| {
        let error = M::again(*format, bytes).expect_err(why);
        let form = match format {
            Format::Json => json!(std::str::from_utf8(bytes).unwrap()),
            Format::Packed | Format::Msgpack => json!(hex(bytes)),
        };
        json!({ "why": why, "format": format.name(), "bytes": form, "at": error.offset() })
    });
    json!({ "about": about, "messages": accepted.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>() })
}

fn all() -> [(&'static str, Value); 2] {
    let client = "What a client says to a node. The first message of a connection is a hello.";
    let server = "What a node says to a client.";
    [
        ("client.json", vectors::<ClientMessage<'_>>(client, refused_of_clients())),
        ("server.json", vectors::<ServerMessage<'_>>(server, refused_of_nodes())),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors/protocol")
}

#[test]
fn the_vectors_are_what_is_written() {
    for (file, vectors) in all() {
        let path = folder().join(file);
        let text = format!("{vectors:#}\n");
        if std::env::var_os("PLAYFIELD_WRITE_VECTORS").is_some() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{file} is not what is written now. If that is intended, regenerate the vectors: see the top of this test"
        );
    }
}

/// Reads them as a client in another language would: from the files alone.
fn follows<M: Message>(file: &str) {
    let vectors: Value = serde_json::from_slice(&fs::read(folder().join(file)).unwrap()).unwrap();
    for message in vectors["messages"].as_array().unwrap() {
        let name = &message["name"];
        let text = message["json"].to_string();
        let json = M::again(Format::Json, text.as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), message["json"], "{name}");
        for format in [Format::Msgpack, Format::Packed] {
            let whole = bytes(&message[format.name()]);
            assert_eq!(M::again(format, &whole).as_ref(), Ok(&whole), "{name}");
            for cut in 0..whole.len() {
                let read = M::again(format, &whole[..cut]);
                let is_refused = format == Format::Msgpack
                    || message["refused_cuts"].as_array().unwrap().contains(&cut.into());
                assert_eq!(read.is_err(), is_refused, "{name} in {}, {cut} bytes", format.name());
                // Without an error, it is another message, which is written exactly as it was read.
                assert!(
                    read.is_err() || read.as_deref() == Ok(&whole[..cut]),
                    "{name}, {cut} bytes"
                );
            }
        }
    }
    for refused in vectors["refused"].as_array().unwrap() {
        let format =
            Format::ALL.into_iter().find(|format| refused["format"] == format.name()).unwrap();
        let bytes = match format {
            Format::Json => refused["bytes"].as_str().unwrap().as_bytes().to_vec(),
            Format::Packed | Format::Msgpack => bytes(&refused["bytes"]),
        };
        let error = M::again(format, &bytes).expect_err(refused["why"].as_str().unwrap());
        assert_eq!(refused["at"], json!(error.offset()));
    }
}

#[test]
fn a_reader_that_knows_only_the_files_follows_them() {
    follows::<ClientMessage<'_>>("client.json");
    follows::<ServerMessage<'_>>("server.json");
}
