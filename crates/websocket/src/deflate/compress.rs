//! Compresses messages.

use std::cell::RefCell;

use flate2::{Compress, Compression, FlushCompress};

use super::{Deflate, Direction, FLUSH_END};
use crate::encode::{RSV1, encode, encode_with};
use crate::{Mask, Opcode, Role};

/// Options of a [`Deflater`]: the messages that it compresses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflaterOptions {
    /// From 1 (fast) to 9 (small); the default is 1. Measured on 512-byte chat messages (`playfield
    /// bench websocket`): without context takeover, level 1 compresses to 88 % of the size and
    /// level 6 to 67 % in three times the time. With context takeover, level 1 compresses to 50 %
    /// and level 6 to 39 % in seven times the time.
    pub level: u8,
    /// Messages shorter than this, in bytes, are sent uncompressed (default 64).
    pub message_bytes_min: usize,
}

impl Default for DeflaterOptions {
    fn default() -> Self {
        Self { level: 1, message_bytes_min: 64 }
    }
}

/// Encodes the messages of a connection that negotiated compression.
///
/// A frame compressed without context takeover is valid on every connection that negotiated at
/// least the same window, so a broadcast is compressed only once.
#[derive(Debug)]
pub struct Deflater {
    options: DeflaterOptions,
    direction: Direction,
    /// The context, if it is kept and a message has been compressed.
    kept: Option<Box<Compress>>,
}

/// The maximum number of compressors without context that are cached per thread.
const SPARES_MAX: usize = 8;

thread_local! {
    /// The compressors shared by messages without context, each with its level and window bits. The
    /// peer chooses the window, so several are cached: a single one would be recreated whenever the
    /// window changes.
    static SPARES: RefCell<Vec<(u8, u8, Compress)>> = const { RefCell::new(Vec::new()) };
}

impl Deflater {
    /// Creates an encoder for the messages that the endpoint with this `role` sends.
    pub fn new(role: Role, agreed: &Deflate, options: DeflaterOptions) -> Self {
        Self { options, direction: agreed.sent_by(role), kept: None }
    }

    /// Appends a message to `out` as one frame. It is compressed unless it is too short to benefit.
    /// Control frames are never compressed.
    pub fn encode(&mut self, out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Mask) {
        let is_worth_it = payload.len() >= self.options.message_bytes_min.max(1);
        if opcode.is_control() || !is_worth_it || self.direction.window_bits < 9 {
            return encode(out, opcode, payload, mask);
        }
        let start = out.len();
        let level = self.options.level.clamp(1, 9);
        let bits = self.direction.window_bits;
        let compressed_bytes = if self.direction.context_takeover {
            let stream = self.kept.get_or_insert_with(|| Box::new(compressor(level, bits)));
            compressed_frame(out, opcode, payload, mask, stream)
        } else {
            SPARES.with_borrow_mut(|spares| {
                compressed_frame(out, opcode, payload, mask, spare(spares, level, bits))
            })
        };
        // Once the context includes the message, the peer must receive it compressed.
        if compressed_bytes >= payload.len() && !self.direction.context_takeover {
            out.truncate(start);
            encode(out, opcode, payload, mask);
        }
    }
}

/// Returns a cached compressor with an empty context, or creates one.
fn spare(spares: &mut Vec<(u8, u8, Compress)>, level: u8, bits: u8) -> &mut Compress {
    let made_for = |spare: &(u8, u8, Compress)| (spare.0, spare.1) == (level, bits);
    let place = spares.iter().position(made_for).unwrap_or_else(|| {
        if spares.len() >= SPARES_MAX {
            spares.remove(0);
        }
        spares.push((level, bits, compressor(level, bits)));
        spares.len() - 1
    });
    let stream = &mut spares[place].2;
    stream.reset();
    stream
}

fn compressor(level: u8, window_bits: u8) -> Compress {
    Compress::new_with_window_bits(Compression::new(level.into()), false, window_bits)
}

/// Appends a compressed frame and returns its payload's length in bytes.
fn compressed_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    payload: &[u8],
    mask: Mask,
    stream: &mut Compress,
) -> usize {
    let frame = out.len();
    let bytes = encode_with(out, opcode, mask, |out| {
        let start = out.len();
        deflate(out, payload, stream);
        out.len() - start
    });
    out[frame] |= RSV1;
    bytes
}

/// Appends the compressed message without the four bytes that end every flush (RFC 7692, 7.2.1).
fn deflate(out: &mut Vec<u8>, payload: &[u8], stream: &mut Compress) {
    let before = stream.total_in();
    let start = out.len();
    loop {
        let consumed = (stream.total_in() - before) as usize;
        out.reserve((payload.len() - consumed) / 2 + 64);
        // Errors only report misuse of the stream. In every case it has used the available space.
        let _ = stream.compress_vec(&payload[consumed..], out, FlushCompress::Sync);
        let is_all_in = (stream.total_in() - before) as usize == payload.len();
        if is_all_in && out.len() < out.capacity() {
            break;
        }
    }
    if out[start..].ends_with(&FLUSH_END) {
        out.truncate(out.len() - FLUSH_END.len());
    }
}
