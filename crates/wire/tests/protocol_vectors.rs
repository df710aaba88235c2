//! The messages in `conformance/vectors/protocol/`, for clients in other languages. This crate
//! writes and reads exactly these.
//!
//! `PLAYFIELD_WRITE_VECTORS=1 cargo test -p playfield-wire protocol_vectors` regenerates them.

mod cases;

use std::fs;
use std::path::{Path, PathBuf};

use playfield_wire::client::ClientMessage;
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, Format};
use serde_json::{Value, json};

/// Messages of either direction.
trait Message: PartialEq + std::fmt::Debug {
    fn written(&self, format: Format) -> Vec<u8>;
    /// Reads the bytes and writes the message again.
    fn read(format: Format, bytes: &[u8]) -> Result<Vec<u8>, DecodeError>;
    fn is_read_from(&self, format: Format, bytes: &[u8]) -> bool;
}

macro_rules! messages {
    ($($of:ident)*) => {$(
        impl Message for $of<'_> {
            fn written(&self, format: Format) -> Vec<u8> {
                let mut out = Vec::new();
                self.encode(format, &mut out);
                out
            }
            fn read(format: Format, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
                $of::decode(format, bytes).map(|message| message.written(format))
            }
            fn is_read_from(&self, format: Format, bytes: &[u8]) -> bool {
                $of::decode(format, bytes).as_ref() == Ok(self)
            }
        }
    )*};
}

messages! { ClientMessage ServerMessage }

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
    (0..whole.len()).filter(|cut| M::read(Format::Packed, &whole[..*cut]).is_err()).collect()
}

fn vectors<M: Message>(
    about: &str,
    messages: impl Fn(Format) -> Vec<(&'static str, M)>,
    refused: cases::Refused,
) -> Value {
    let [packed, msgpack, json] = [Format::Packed, Format::Msgpack, Format::Json].map(|format| {
        messages(format)
            .into_iter()
            .map(|(name, message)| (name, message.written(format)))
            .collect::<Vec<_>>()
    });
    let accepted = packed.iter().zip(&msgpack).zip(&json).map(
        |(((name, packed), (_, msgpack)), (_, json))| {
            json!({
                "name": name,
                "json": serde_json::from_slice::<Value>(json).unwrap(),
                "msgpack": hex(msgpack),
                "packed": hex(packed),
                "refused_cuts": refused_cuts::<M>(packed),
            })
        },
    );
    let refused = refused.iter().map(|(why, format, bytes)| {
        let error = M::read(*format, bytes).expect_err(why);
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
        ("client.json", vectors(client, cases::client, cases::refused_of_clients())),
        ("server.json", vectors(server, cases::server, cases::refused_of_nodes())),
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
        let json = M::read(Format::Json, text.as_bytes())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), message["json"], "{name}");
        for format in [Format::Msgpack, Format::Packed] {
            let whole = bytes(&message[format.name()]);
            assert_eq!(M::read(format, &whole).as_ref(), Ok(&whole), "{name}");
            for cut in 0..whole.len() {
                let read = M::read(format, &whole[..cut]);
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
        let error = M::read(format, &bytes).expect_err(refused["why"].as_str().unwrap());
        assert_eq!(refused["at"], json!(error.offset()));
    }
}

#[test]
fn a_reader_that_knows_only_the_files_follows_them() {
    follows::<ClientMessage<'_>>("client.json");
    follows::<ServerMessage<'_>>("server.json");
}

/// The table has each kind of message at least once.
#[test]
fn every_message_is_there() {
    for (messages, kinds) in [
        (
            cases::client(Format::Packed)
                .iter()
                .map(|(_, message)| message.written(Format::Packed)[0])
                .collect(),
            0x01..=0x0F,
        ),
        (
            cases::server(Format::Packed)
                .iter()
                .map(|(_, message)| message.written(Format::Packed)[0])
                .collect::<Vec<_>>(),
            0x41..=0x4F,
        ),
    ] {
        let messages: Vec<u8> = messages;
        for kind in kinds {
            assert!(messages.contains(&kind), "no message of kind {kind:#04x}");
        }
    }
    for format in Format::ALL {
        for (name, message) in cases::client(format) {
            assert!(message.is_read_from(format, &message.written(format)), "{name}");
        }
        for (name, message) in cases::server(format) {
            assert!(message.is_read_from(format, &message.written(format)), "{name}");
        }
    }
}
