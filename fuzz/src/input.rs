//! Parses the fuzzer's input.

/// Bytes that numbers and pieces are read from until they run out.
pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// The next piece: its length in two bytes, little endian, then that many bytes, or as many as
    /// remain.
    pub fn piece(&mut self) -> Option<&'a [u8]> {
        if self.bytes.is_empty() {
            return None;
        }
        let length =
            usize::from(u16::from_le_bytes([self.byte(), self.byte()])).min(self.bytes.len());
        let (piece, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Some(piece)
    }
}

/// Appends a piece in the format of [`Input::piece`], unless it is too long.
pub fn put_piece(out: &mut Vec<u8>, piece: &[u8]) {
    let Ok(length) = u16::try_from(piece.len()) else { return };
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(piece);
}
