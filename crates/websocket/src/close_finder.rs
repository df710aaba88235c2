//! Waiting for the peer's Close frame.

use crate::{
    Error, Opcode, Role,
    frame::{Length, Start},
};

/// The longest header without the masking key.
const HEAD_BYTES_MAX: usize = 10;

/// Finds the peer's Close frame in the remaining input, for an endpoint that has already sent its
/// own. Created from a [`Decoder`](crate::Decoder).
///
/// Only the headers of other frames are parsed. Payloads are skipped: not buffered, unmasked,
/// decompressed or reassembled.
#[derive(Debug)]
pub struct CloseFinder {
    /// The bytes of the current frame that remain to be skipped.
    skip: u64,
    /// The start of a header that is still incomplete.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
    role: Role,
    deflates: bool,
    /// Whether the current frame is the Close frame.
    is_close: bool,
}

impl CloseFinder {
    pub(crate) fn new(role: Role, deflates: bool) -> Self {
        Self { skip: 0, head: [0; HEAD_BYTES_MAX], head_bytes: 0, role, deflates, is_close: false }
    }

    /// A finder for input that begins within a frame's payload, after the start of a header, or
    /// with a frame.
    pub(crate) fn within(role: Role, skip: u64, is_close: bool, head: &[u8]) -> Self {
        let mut finder = Self { skip, is_close, ..Self::new(role, false) };
        // The decoder has checked it already.
        let _ = finder.push(head);
        finder
    }

    /// Consumes all of `bytes` and returns whether a complete Close frame has arrived. Its payload
    /// is not validated.
    ///
    /// # Errors
    ///
    /// The first rule that a frame's header violates on its own. The start of the next frame is
    /// then unknown, so no Close frame can be found.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<bool, Error> {
        loop {
            let skipped =
                usize::try_from(self.skip).map_or(bytes.len(), |skip| skip.min(bytes.len()));
            bytes = &bytes[skipped..];
            self.skip -= skipped as u64;
            if self.is_close && self.skip == 0 {
                return Ok(true);
            }
            let Some((&byte, behind)) = bytes.split_first() else { return Ok(false) };
            bytes = behind;
            self.head[usize::from(self.head_bytes)] = byte;
            self.head_bytes += 1;
            let head = &self.head[..usize::from(self.head_bytes)];
            let start = Start::parse(head[0], self.deflates)?;
            if let Some(length) = Length::parse(self.role, start.opcode, head)? {
                // The masking key is skipped together with the payload.
                self.skip = length.payload_bytes + (length.header_bytes - head.len()) as u64;
                self.is_close = start.opcode == Opcode::Close;
                self.head_bytes = 0;
            }
        }
    }
}
