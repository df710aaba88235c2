//! Packets, framing and the messages of the Playfield protocol.
//!
//! Everything that a client and a node say to each other, as `docs/protocol.md` specifies it, over
//! byte slices alone: no sockets, no clock. A message borrows from the bytes that it was decoded
//! from; only JSON text with escapes in it, and base64, are copied.
//!
//! From the bytes up:
//!
//! - [`framing`] cuts a byte stream into messages;
//! - [`client::ClientMessage`] and [`server::ServerMessage`] are those messages, in every
//!   [`Format`];
//! - [`reader`] and [`writer`] hold the primitive types of the format `packed`, [`json`] those of
//!   `json`, [`msgpack`] those of `msgpack`; [`tree`] writes the last two as one;
//! - [`packet`] is for protocols and payloads of your own, which know nothing of the above;
//! - [`schema`] describes a room type's state and messages, takes their fingerprint, writes them as
//!   JSON, and says whether one has grown from another.

#[macro_use]
pub mod message;

pub mod client;
mod code;
mod error;
mod format;
pub mod framing;
pub mod json;
pub mod msgpack;
mod number;
pub mod packet;
pub mod reader;
pub mod schema;
pub mod server;
pub mod tree;
pub mod writer;

pub use code::ErrorCode;
pub use error::DecodeError;
pub use format::{Format, TreeFormat};
pub use number::{RequestNumber, RoomNumber};

/// The version of the protocol that this crate speaks, as `hello` and `welcome` carry it.
pub const PROTOCOL: u64 = 1;

/// The beginning of a text: at most `bytes_max` bytes, cut between characters.
#[must_use]
pub fn excerpt(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
