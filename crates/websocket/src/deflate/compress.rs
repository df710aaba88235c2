//! From a message to a compressed one.

use std::cell::RefCell;

use flate2::{Compress, Compression, FlushCompress};

use super::{Deflate, Direction, FLUSH_END};
use crate::encode::{RSV1, encode, encode_with};
use crate::{Mask, Opcode, Role};

/// What a [`Deflater`] does with which messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflaterOptions {
    /// From 1 (fast) to 9 (small); 1 unless told otherwise. Chat messages of 512 bytes come to 88 %
    /// of their bytes at 1 and to 67 % at 6, in three times the time; where the context is kept, to
    /// 50 % and to 39 %, in seven times the time (`playfield bench websocket`).
    pub level: u8,
    /// Shorter messages, in bytes, are sent as they are; 64 unless told otherwise.
    pub message_bytes_min: usize,
}

impl Default for DeflaterOptions {
    fn default() -> Self {
        Self { level: 1, message_bytes_min: 64 }
    }
}

/// The writing half of a connection whose messages are compressed.
///
/// A frame that came of one without context means the same on every connection that agreed on as
/// large a window: what many get is written once.
#[derive(Debug)]
pub struct Deflater {
    options: DeflaterOptions,
    direction: Direction,
    /// The context, where one is kept and something was compressed.
    kept: Option<Box<Compress>>,
}

/// How many compressors without context are kept for a thread.
const SPARES_MAX: usize = 8;

thread_local! {
    /// The compressors that messages without context share, each with the level and window that it
    /// was made for. Several, since the other end chooses the window, and one that changed with
    /// every message would be made anew for each.
    static SPARES: RefCell<Vec<(u8, u8, Compress)>> = const { RefCell::new(Vec::new()) };
}

impl Deflater {
    /// Compresses what the end with this `role` sends.
    pub fn new(role: Role, agreed: &Deflate, options: DeflaterOptions) -> Self {
        Self { options, direction: agreed.sent_by(role), kept: None }
    }

    /// Appends a message in one frame to `out`: compressed, unless it is too short to gain by it; a
    /// control frame as it is.
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
        // Once a context has the message in it, the other end must get it compressed.
        if compressed_bytes >= payload.len() && !self.direction.context_takeover {
            out.truncate(start);
            encode(out, opcode, payload, mask);
        }
    }
}

/// One that knows of no message, from those that are kept.
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

/// Appends a compressed frame, and says how many bytes its payload has.
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

/// Appends what a message compresses to, without what ends every flush (RFC 7692, 7.2.1).
fn deflate(out: &mut Vec<u8>, payload: &[u8], stream: &mut Compress) {
    let before = stream.total_in();
    let start = out.len();
    loop {
        let consumed = (stream.total_in() - before) as usize;
        out.reserve((payload.len() - consumed) / 2 + 64);
        // Its only errors are of streams misused; and whatever it says, it did what it could with
        // the room it had.
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
