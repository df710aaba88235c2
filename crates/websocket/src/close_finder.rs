//! The wait for the other end's Close frame.

use crate::{
    Error, Opcode, Role,
    frame::{Length, Start},
};

/// The longest header up to the masking key.
const HEAD_BYTES_MAX: usize = 10;

/// Finds the Close frame in what still arrives, for an end that has sent its own and only waits for
/// the other's; made from a [`Decoder`](crate::Decoder).
///
/// Of all other frames only the header is looked at: payloads are neither kept nor unmasked nor
/// decompressed nor put together.
#[derive(Debug)]
pub struct CloseFinder {
    /// How many bytes of the frame at hand are passed over yet.
    skip: u64,
    /// The start of a header whose length is incomplete.
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: u8,
    role: Role,
    deflates: bool,
    /// The frame at hand is the Close.
    is_close: bool,
}

impl CloseFinder {
    pub(crate) fn new(role: Role, deflates: bool) -> Self {
        Self { skip: 0, head: [0; HEAD_BYTES_MAX], head_bytes: 0, role, deflates, is_close: false }
    }

    /// Takes what arrived, all of it, and says whether a whole Close frame has come. What stands in
    /// it is not checked.
    ///
    /// # Errors
    ///
    /// The first rule that a frame's header breaks by itself: where the next one starts is not
    /// certain then, so nothing can be found.
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
                // The masking key goes the way of the payload.
                self.skip = length.payload_bytes + (length.header_bytes - head.len()) as u64;
                self.is_close = start.opcode == Opcode::Close;
                self.head_bytes = 0;
            }
        }
    }
}
