//! A text frame of which only a part has arrived.

use crate::{Error, Mask, mask, utf8::Utf8};

/// How many bytes are unmasked at a time, aside from the input. Full turns of the masking key.
const PIECE_BYTES: usize = 512;

/// What has been looked at of a text frame that is not whole, so that text which can't become valid
/// is refused at once (RFC 6455, 8.1) and no byte is looked at twice.
#[derive(Debug)]
pub(crate) struct Early {
    checked_bytes: usize,
    text: Utf8,
}

impl Early {
    /// Nothing yet of a frame whose text follows on `text`.
    pub(crate) fn new(text: Utf8) -> Self {
        Self { checked_bytes: 0, text }
    }

    /// Looks at what is new of the payload that has arrived, and leaves it as it is.
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
