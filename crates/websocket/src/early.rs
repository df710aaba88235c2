//! A text frame that has arrived only in part.

use crate::{Error, Mask, mask, utf8::Utf8};

/// The number of bytes unmasked at a time, outside the input. A multiple of the masking key's
/// length.
const PIECE_BYTES: usize = 512;

/// The validated part of an incomplete text frame. Text that can't become valid is rejected
/// immediately (RFC 6455, 8.1), and no byte is validated twice.
#[derive(Debug)]
pub(crate) struct Early {
    checked_bytes: usize,
    text: Utf8,
}

impl Early {
    /// Starts with a frame whose text continues from the state `text`.
    pub(crate) fn new(text: Utf8) -> Self {
        Self { checked_bytes: 0, text }
    }

    /// Validates the newly arrived part of the payload, without changing it.
    pub(crate) fn check(&mut self, payload: &[u8], key: Mask) -> Result<(), Error> {
        let Some(fresh) = payload.get(self.checked_bytes..) else { return Ok(()) };
        let Some(mut key) = key else {
            self.checked_bytes = payload.len();
            return self.text.push(fresh, |_| {});
        };
        key.rotate_left(self.checked_bytes % 4);
        for piece in fresh.chunks(PIECE_BYTES) {
            let mut plain = [0; PIECE_BYTES];
            let plain = &mut plain[..piece.len()];
            plain.copy_from_slice(piece);
            mask::apply(plain, key);
            self.text.push(plain, |_| {})?;
        }
        self.checked_bytes = payload.len();
        Ok(())
    }
}
