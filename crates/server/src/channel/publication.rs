//! Publications and their payloads.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use playfield_wire::json;
use playfield_wire::server;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{DecodeError, Format, TreeFormat};
use serde_json::Value;

use crate::channel::PayloadKind;

/// The error for a tree that has something else where bytes are expected.
const BYTES_EXPECTED: &str =
    "payloads are bytes here: a bin in MessagePack, base64 in JSON, and they are something else";

/// About how much memory a publication takes beside its payload.
const HEADER_BYTES: usize = 96;

/// The payload of a publication, in no particular format. A clone shares its bytes.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// The text of a JSON value.
    Json(Arc<[u8]>),
    /// Any bytes.
    Bytes(Arc<[u8]>),
}

impl Payload {
    /// Reads what a client sent in a format. No bytes are null in trees.
    ///
    /// # Errors
    /// If it is not of this kind.
    pub fn read(kind: PayloadKind, format: Format, bytes: &[u8]) -> Result<Self, DecodeError> {
        match (kind, format.tree()) {
            (PayloadKind::Bytes, None) => Ok(Self::Bytes(bytes.into())),
            (PayloadKind::Bytes, Some(_)) if bytes.is_empty() => Ok(Self::Bytes((*b"").into())),
            (PayloadKind::Bytes, Some(format)) => {
                let value = read_value(format, bytes)?;
                let bytes =
                    json::as_bytes(&value).ok_or_else(|| DecodeError::other(BYTES_EXPECTED))?;
                Ok(Self::Bytes(bytes.into()))
            }
            (PayloadKind::Json, Some(_)) if bytes.is_empty() => Ok(Self::Json((*b"null").into())),
            (PayloadKind::Json, Some(TreeFormat::Msgpack)) => {
                let value = read_value(TreeFormat::Msgpack, bytes)?;
                Ok(Self::Json(value.to_string().into_bytes().into()))
            }
            (PayloadKind::Json, None | Some(TreeFormat::Json)) => Self::json(bytes),
        }
    }

    /// The text of a JSON value.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn json(text: &[u8]) -> Result<Self, DecodeError> {
        // Parsing it into a value enforces the depth that readers allow.
        match serde_json::from_slice::<Value>(text) {
            Ok(_) => Ok(Self::Json(text.into())),
            Err(error) => Err(DecodeError::other(format!("payloads are JSON here: {error}"))),
        }
    }

    /// The kind of the payload.
    #[must_use]
    pub fn kind(&self) -> PayloadKind {
        match self {
            Self::Json(_) => PayloadKind::Json,
            Self::Bytes(_) => PayloadKind::Bytes,
        }
    }

    /// Its bytes, or the text of the value.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Json(bytes) | Self::Bytes(bytes) => bytes,
        }
    }

    /// The payload in a format.
    #[must_use]
    pub fn written(&self, format: Format) -> Cow<'_, [u8]> {
        let tree = |format, write: &dyn Fn(TreeWriter<'_>)| {
            let mut out = Vec::new();
            write(TreeWriter::new(format, &mut out));
            Cow::Owned(out)
        };
        match (self, format.tree()) {
            (Self::Json(bytes) | Self::Bytes(bytes), None)
            | (Self::Json(bytes), Some(TreeFormat::Json)) => Cow::Borrowed(bytes),
            (Self::Bytes(bytes), Some(format)) => tree(format, &|out| out.bytes(bytes)),
            (Self::Json(text), Some(TreeFormat::Msgpack)) => {
                // It was read before.
                let value = read_value(TreeFormat::Json, text).unwrap_or_default();
                tree(TreeFormat::Msgpack, &|out| out.value(&value))
            }
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(text) => f.write_str(&String::from_utf8_lossy(text)),
            Self::Bytes(bytes) => write!(f, "{bytes:?}"),
        }
    }
}

/// A publication of a channel. A clone shares its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Its place in the channel, from 1.
    pub offset: u64,
    /// The verified user of the client that published it.
    pub user: Option<Arc<str>>,
    /// The payload.
    pub payload: Payload,
}

impl Publication {
    /// Writes the message for subscribers of the channel with this number.
    pub fn write(&self, channel: u64, format: Format, out: &mut Vec<u8>) {
        let message = server::Publication {
            channel,
            offset: self.offset,
            user: self.user.as_deref().map(Cow::Borrowed),
            payload: self.payload.written(format),
        };
        message.encode(format, out);
    }

    /// Returns the approximate memory it takes, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        HEADER_BYTES
            + self.payload.as_slice().len()
            + self.user.as_ref().map_or(0, |user| user.len())
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::Format;

    use super::Payload;
    use crate::channel::PayloadKind::{self, Bytes, Json};

    #[test]
    fn a_payload_is_the_same_in_every_format() {
        let values: [&[u8]; 5] = [
            b"null",
            br#"{"a":[1,-2.5,"\u00e9",true,null]}"#,
            br#""text""#,
            b"18446744073709551615",
            b"[]",
        ];
        for value in values {
            let payload = Payload::read(Json, Format::Packed, value).unwrap();
            for format in Format::ALL {
                let again = Payload::read(Json, format, &payload.written(format)).unwrap();
                let values = [&payload, &again]
                    .map(|of| serde_json::from_slice::<serde_json::Value>(of.as_slice()).unwrap());
                assert_eq!(values[0], values[1], "{format}");
            }
        }
        for bytes in [&b""[..], b"\0", b"\xff\xfe not text"] {
            let payload = Payload::read(Bytes, Format::Packed, bytes).unwrap();
            for format in Format::ALL {
                let again = Payload::read(Bytes, format, &payload.written(format)).unwrap();
                assert_eq!(payload, again, "{format}");
            }
        }
    }

    #[test]
    fn what_is_not_of_the_kind_is_refused() {
        let deep = [b'['; 1000];
        let refused: [(PayloadKind, Format, &[u8]); 9] = [
            (Json, Format::Packed, &deep),
            (Json, Format::Packed, b""),
            (Json, Format::Packed, b"{"),
            (Json, Format::Packed, b"1 2"),
            (Json, Format::Packed, b"\"\xff\""),
            (Json, Format::Msgpack, b"\xc1"),
            (Bytes, Format::Json, b"7"),
            (Bytes, Format::Json, b"\"%\""),
            (Bytes, Format::Msgpack, b"\x07"),
        ];
        for (kind, format, bytes) in refused {
            assert!(Payload::read(kind, format, bytes).is_err(), "{kind:?} {format} {bytes:?}");
        }
        let nothing = Payload::read(Json, Format::Json, b"").unwrap();
        assert_eq!(nothing.as_slice(), b"null");
    }
}
