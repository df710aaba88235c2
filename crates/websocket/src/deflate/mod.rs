//! permessage-deflate (RFC 7692): messages that travel compressed.
//!
//! Both ends agree on a [`Deflate`] in the handshake. Then a [`Decoder`](crate::Decoder) made with
//! it reads compressed messages, and a [`Deflater`] writes them.
//!
//! A direction that keeps its context between messages compresses better, and costs each connection
//! a window in both ends for as long as it lives. One that doesn't costs nothing between messages:
//! decompressors are then kept one to a thread, and compressors one to a thread and window.

mod compress;
mod inflate;
mod negotiate;

pub use compress::{Deflater, DeflaterOptions};
pub(crate) use inflate::Inflater;
pub use negotiate::Agreed;
pub(crate) use negotiate::WINDOW_BITS_MAX;

use crate::Role;

/// What travels compressed and how, in both directions: as one end wishes it, or as both have
/// agreed on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflate {
    /// What the server sends.
    pub server: Direction,
    /// What the client sends.
    pub client: Direction,
}

/// What one end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Whether a message may refer back to those before it; not unless told otherwise. If so, each
    /// end holds a window for as long as the connection lives: 55 KiB with all else where messages
    /// are decompressed, 371 KiB where they are compressed.
    pub context_takeover: bool,
    /// The window's size as a power of two, from 8 (256 bytes) to 15 (32 KiB, unless told
    /// otherwise). With 8 messages are sent as they are: zlib has no compressor for so small a
    /// window.
    pub window_bits: u8,
}

impl Default for Direction {
    fn default() -> Self {
        Self { context_takeover: false, window_bits: WINDOW_BITS_MAX }
    }
}

impl Deflate {
    /// What the end with this role sends.
    pub(crate) fn sent_by(&self, role: Role) -> Direction {
        match role {
            Role::Server => self.server,
            Role::Client => self.client,
        }
    }
}

/// What ends the output of a compressor that was flushed, and what a sender leaves out (RFC 7692,
/// 7.2.1).
const FLUSH_END: [u8; 4] = [0, 0, 0xFF, 0xFF];
