//! Decompresses messages.

use std::cell::Cell;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Direction, FLUSH_END};
use crate::Error;

/// The number of bytes decompressed at a time.
const CHUNK_BYTES: usize = 8 << 10;

/// An empty final block.
const FINAL_BLOCK: [u8; 2] = [3, 0];

/// Decompresses messages.
#[derive(Debug)]
pub(crate) struct Inflater {
    stream: Decompress,
    keeps_context: bool,
    /// The compressed stream ended with the last byte received. Further bytes begin a new stream.
    ended: bool,
    chunk: Box<[u8; CHUNK_BYTES]>,
}

thread_local! {
    /// Shared by messages without context. It saves setting up about 48 KiB per message.
    static SPARE: Cell<Option<Box<Inflater>>> = const { Cell::new(None) };
}

impl Inflater {
    /// The approximate memory of one, in bytes: a window of 32 KiB, its tables, and the chunk.
    pub(crate) const BYTES: usize = 55 << 10;

    /// Returns an inflater: the cached one for a single message, or one that keeps a connection's
    /// context.
    pub(crate) fn take(direction: Direction) -> Box<Self> {
        if direction.context_takeover {
            return Self::new(direction.window_bits, true);
        }
        // The largest window works for all of them.
        SPARE.take().unwrap_or_else(|| Self::new(super::WINDOW_BITS_MAX, false))
    }

    fn new(window_bits: u8, keeps_context: bool) -> Box<Self> {
        // zlib supports no smaller window. A larger window than the compressor's works as well.
        let stream = Decompress::new_with_window_bits(false, window_bits.max(9));
        Box::new(Self { stream, keeps_context, ended: false, chunk: Box::new([0; CHUNK_BYTES]) })
    }

    /// Decompresses the next part of a message and passes on the output in pieces.
    pub(crate) fn push(
        &mut self,
        mut input: &[u8],
        mut plain: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while !input.is_empty() {
            self.ended = false;
            loop {
                let (status, consumed, produced) = self.step(input)?;
                plain(&self.chunk[..produced])?;
                input = &input[consumed..];
                if status == Status::StreamEnd {
                    self.stream.reset(false);
                    self.ended = true;
                    break;
                }
                if input.is_empty() && produced < CHUNK_BYTES {
                    return Ok(());
                }
                if consumed == 0 && produced == 0 {
                    return Err(Error::InvalidDeflate);
                }
            }
        }
        Ok(())
    }

    /// Finishes a message: appends the bytes that the sender omitted (RFC 7692, 7.2.2).
    pub(crate) fn finish(
        mut self: Box<Self>,
        plain: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Option<Box<Self>>, Error> {
        if !self.ended {
            self.push(&FLUSH_END, plain)?;
        }
        if self.keeps_context {
            return Ok(Some(self));
        }
        // If a message stops in the middle of a block, an appended final block does not end the
        // stream.
        if !self.ended && !matches!(self.step(&FINAL_BLOCK)?, (Status::StreamEnd, 2, 0)) {
            return Err(Error::InvalidDeflate);
        }
        self.stream.reset(false);
        self.ended = false;
        SPARE.set(Some(self));
        Ok(None)
    }

    fn step(&mut self, input: &[u8]) -> Result<(Status, usize, usize), Error> {
        let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
        let status = self
            .stream
            .decompress(input, &mut self.chunk[..], FlushDecompress::Sync)
            .map_err(|_| Error::InvalidDeflate)?;
        let consumed = (self.stream.total_in() - before_in) as usize;
        let produced = (self.stream.total_out() - before_out) as usize;
        Ok((status, consumed, produced))
    }
}
