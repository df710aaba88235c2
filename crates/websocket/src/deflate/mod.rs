//! permessage-deflate (RFC 7692): compressed messages.
//!
//! Both ends negotiate a [`Deflate`] in the handshake. A [`Decoder`](crate::Decoder) created with
//! it reads compressed messages, and a [`Deflater`] writes them.
//!
//! A direction that keeps its context between messages compresses better, but each end of the
//! connection holds a window for as long as the connection is open. A direction that resets its
//! context costs nothing between messages: each thread then caches one decompressor, and one
//! compressor per window size.

mod compress;
mod inflate;
mod negotiate;

pub use compress::{Deflater, DeflaterOptions};
pub(crate) use inflate::Inflater;
pub use negotiate::Agreed;
pub(crate) use negotiate::WINDOW_BITS_MAX;

use crate::Role;

/// The compression of both directions: what one end prefers, or what both have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflate {
    /// Messages from the server.
    pub server: Direction,
    /// Messages from the client.
    pub client: Direction,
}

/// The compression of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Whether a message may refer back to earlier ones (default `false`). If so, each end holds a
    /// window for as long as the connection is open. Including all other state, this takes 55 KiB
    /// at the end that decompresses and 371 KiB at the end that compresses.
    pub context_takeover: bool,
    /// The window size as a power of two, from 8 (256 bytes) to 15 (32 KiB, the default). With 8,
    /// messages are sent uncompressed, as zlib has no compressor for such a small window.
    pub window_bits: u8,
}

impl Default for Direction {
    fn default() -> Self {
        Self { context_takeover: false, window_bits: WINDOW_BITS_MAX }
    }
}

impl Deflate {
    /// The direction that the endpoint with this role sends.
    pub(crate) fn sent_by(&self, role: Role) -> Direction {
        match role {
            Role::Server => self.server,
            Role::Client => self.client,
        }
    }
}

/// The bytes that end a flushed compressor's output. The sender omits them (RFC 7692, 7.2.1).
const FLUSH_END: [u8; 4] = [0, 0, 0xFF, 0xFF];
