//! Counts the messages that arrived, and says when to acknowledge them.

use std::time::Duration;

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

/// An acknowledgement is sent after this many messages.
const ACK_EVERY: u32 = 32;
/// Or after this many bytes.
const ACK_BYTES: u32 = 16 * 1024;

/// The maximum delay of an acknowledgement if there are fewer.
pub const ACK_DELAY: Duration = Duration::from_secs(1);

/// The counted messages that one end has handled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    count: u64,
    /// The messages since the last acknowledgement, and their bytes.
    unacknowledged: u32,
    bytes: u32,
}

impl Received {
    /// Returns the number of messages handled.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One of `bytes` bytes is handled.
    #[inline]
    pub fn handled(&mut self, bytes: usize) {
        self.count += 1;
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The other end had to forget this many, which come next: they count as handled.
    pub fn lost(&mut self, messages: u64) {
        self.count = self.count.saturating_add(messages);
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        self.unacknowledged = self.unacknowledged.saturating_add(messages);
    }

    /// Returns whether some are not acknowledged. An acknowledgement should follow within
    /// [`ACK_DELAY`].
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Returns whether an acknowledgement should be sent now.
    #[must_use]
    #[inline]
    pub fn is_due(&self) -> bool {
        self.unacknowledged >= ACK_EVERY || self.bytes >= ACK_BYTES
    }

    /// Appends all of it, from which it goes on in another process.
    pub fn freeze(&self, out: &mut Vec<u8>) {
        for number in [self.count, self.unacknowledged.into(), self.bytes.into()] {
            writer::put_varint(out, number);
        }
    }

    /// Reads what [`freeze`](Self::freeze) appended.
    ///
    /// # Errors
    /// If it is not such a count.
    pub fn thaw(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (count, unacknowledged) = (reader.varint()?, reader.varint_u32()?);
        Ok(Self { count, unacknowledged, bytes: reader.varint_u32()? })
    }

    /// Acknowledges all: the number to be sent.
    pub fn acknowledge(&mut self) -> u64 {
        self.unacknowledged = 0;
        self.bytes = 0;
        self.count
    }
}
