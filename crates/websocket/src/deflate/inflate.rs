//! From a compressed message to a plain one.

use std::cell::Cell;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Direction, FLUSH_END};
use crate::Error;

/// How many bytes are decompressed at a time.
const CHUNK_BYTES: usize = 8 << 10;

/// A final block that holds nothing.
const FINAL_BLOCK: [u8; 2] = [3, 0];

/// Decompresses messages.
#[derive(Debug)]
pub(crate) struct Inflater {
    stream: Decompress,
    keeps_context: bool,
    /// The compressor ended its stream with the last byte that came. What follows begins a new one.
    ended: bool,
    chunk: Box<[u8; CHUNK_BYTES]>,
}

thread_local! {
    /// The one that messages without context share: some 48 KiB that would otherwise be set up for
    /// each message.
    static SPARE: Cell<Option<Box<Inflater>>> = const { Cell::new(None) };
}

impl Inflater {
    /// For one message, from those that are kept; or for a connection that keeps its context.
    pub(crate) fn take(direction: Direction) -> Box<Self> {
        if direction.context_takeover {
            return Self::new(direction.window_bits, true);
        }
        // The largest window serves for all.
        SPARE.take().unwrap_or_else(|| Self::new(super::WINDOW_BITS_MAX, false))
    }

    fn new(window_bits: u8, keeps_context: bool) -> Box<Self> {
        // zlib knows no smaller window; one that is larger than the compressor's does as well.
        let stream = Decompress::new_with_window_bits(false, window_bits.max(9));
        Box::new(Self { stream, keeps_context, ended: false, chunk: Box::new([0; CHUNK_BYTES]) })
    }

    /// Decompresses the next part of a message, and hands on what it comes to, piece by piece.
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

    /// Ends a message: what the sender left out is put back (RFC 7692, 7.2.2).
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
        // Where a message stops in the midst of a block, a final block is no end.
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
