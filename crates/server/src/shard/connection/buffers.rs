//! Outboxes and buffers for them, used again and again, so that filling one allocates nothing.

/// The most buffers kept, the largest size of each, and the largest size of all together.
const BUFFERS_KEPT: usize = 256;
/// One that is filled by a read of many messages is larger than the read.
const BUFFER_KEPT_BYTES_MAX: usize = 256 << 10;
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Bytes on their way to the socket. A connection has one only while there are any.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(super) bytes: Vec<u8>,
    /// The bytes at the front that are already written.
    pub(super) written: usize,
}

#[derive(Default)]
pub(crate) struct Buffers {
    free: Vec<Vec<u8>>,
    bytes: usize,
    /// Outboxes without buffers.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    outboxes: Vec<Box<Outbox>>,
}

impl Buffers {
    /// An empty buffer, usually one with capacity.
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// An empty outbox.
    #[inline]
    pub(super) fn outbox(&mut self) -> Box<Outbox> {
        let buffer = self.take();
        self.outbox_of(buffer)
    }

    /// An outbox with these bytes.
    #[inline]
    pub(super) fn outbox_of(&mut self, bytes: Vec<u8>) -> Box<Outbox> {
        let mut outbox = self.outboxes.pop().unwrap_or_default();
        outbox.bytes = bytes;
        outbox
    }

    /// Takes an outbox back, whatever is in it.
    #[inline]
    pub(super) fn give_outbox(&mut self, outbox: Option<Box<Outbox>>) {
        let Some(mut outbox) = outbox else { return };
        self.give(std::mem::take(&mut outbox.bytes));
        outbox.written = 0;
        if self.outboxes.len() < BUFFERS_KEPT {
            self.outboxes.push(outbox);
        }
    }

    /// Takes a buffer back, or frees it if it is of no use or enough are kept.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if (1..=BUFFER_KEPT_BYTES_MAX).contains(&bytes)
            && self.free.len() < BUFFERS_KEPT
            && self.bytes + bytes <= KEPT_BYTES_MAX
        {
            buffer.clear();
            self.bytes += bytes;
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUFFER_KEPT_BYTES_MAX, BUFFERS_KEPT, Buffers, KEPT_BYTES_MAX};

    fn kept(buffers: &Buffers) -> (usize, usize) {
        (buffers.free.len(), buffers.free.iter().map(Vec::capacity).sum())
    }

    #[test]
    fn only_so_many_buffers_and_so_many_bytes_are_kept() {
        let mut buffers = Buffers::default();
        buffers.give(Vec::new());
        buffers.give(Vec::with_capacity(BUFFER_KEPT_BYTES_MAX + 1));
        assert_eq!(kept(&buffers), (0, 0));
        for _ in 0..2 * BUFFERS_KEPT {
            buffers.give(Vec::with_capacity(BUFFER_KEPT_BYTES_MAX));
        }
        assert_eq!(kept(&buffers).1, KEPT_BYTES_MAX);
        while buffers.take().capacity() > 0 {}
        assert_eq!((kept(&buffers), buffers.bytes), ((0, 0), 0));
        for _ in 0..2 * BUFFERS_KEPT {
            buffers.give(Vec::with_capacity(10));
        }
        assert_eq!(kept(&buffers).0, BUFFERS_KEPT);
    }
}
