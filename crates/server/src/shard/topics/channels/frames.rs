//! A message that many connections get, written once for each way in which they are spoken to.

use playfield_wire::Format;

use crate::shard::connection::transport::Dialect;

/// The frames of one message.
#[derive(Default)]
pub(super) struct Frames {
    /// The first `used` are of this message; the others are kept for their memory.
    frames: Vec<(Dialect, Vec<u8>)>,
    used: usize,
}

/// The memory that a frame keeps, in bytes.
const FRAME_KEPT_BYTES: usize = 16 << 10;

impl Frames {
    /// Another message begins.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        for (_, frame) in &mut self.frames {
            frame.clear();
            frame.shrink_to(FRAME_KEPT_BYTES);
        }
    }

    /// The frame in a dialect, of the message that `write` appends in a format.
    #[inline]
    pub(super) fn of(
        &mut self,
        dialect: Dialect,
        write: impl FnOnce(Format, &mut Vec<u8>),
    ) -> &[u8] {
        let known = self.frames[..self.used].iter().position(|(of, _)| *of == dialect);
        let at = known.unwrap_or_else(|| self.add(dialect, write));
        &self.frames[at].1
    }

    fn add(&mut self, dialect: Dialect, write: impl FnOnce(Format, &mut Vec<u8>)) -> usize {
        let at = self.used;
        if at == self.frames.len() {
            self.frames.push((dialect, Vec::new()));
        }
        let (of, frame) = &mut self.frames[at];
        *of = dialect;
        dialect.write_with(frame, |out| write(dialect.format, out));
        self.used += 1;
        at
    }
}
