//! A message that arrives in fragments or compressed.

use crate::{
    Error, Item,
    deflate::{Direction, Inflater},
    utf8::Utf8,
};

/// The received part of a fragmented or compressed message.
#[derive(Debug)]
pub(crate) struct Message {
    plain: Plain,
    compressed: Option<Compressed>,
}

/// A compressed message, until its last fragment has come. It is decompressed only then: a peer
/// that sends little makes us hold little.
#[derive(Debug)]
pub(crate) struct Compressed {
    /// The fragments before the last one.
    bytes: Vec<u8>,
    direction: Direction,
    /// The connection's context, if it is kept and there is one already.
    context: Option<Box<Inflater>>,
}

impl Compressed {
    pub(crate) fn new(direction: Direction, context: Option<Box<Inflater>>) -> Self {
        Self { bytes: Vec::new(), direction, context }
    }

    /// Data that does not compress grows a little, and more if the sender flushes often.
    fn push(&mut self, fragment: &[u8], bytes_max: usize) -> Result<(), Error> {
        let bytes = self.bytes.len() + fragment.len();
        if bytes > bytes_max.saturating_mul(2).saturating_add(64) {
            return Err(Error::MessageTooLarge { bytes: bytes as u64, bytes_max });
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }
}

#[derive(Debug)]
enum Plain {
    Text(Text),
    Binary(Vec<u8>),
}

impl Message {
    /// An empty text or binary message.
    pub(crate) fn new(is_text: bool, compressed: Option<Compressed>) -> Self {
        let plain = if is_text { Plain::Text(Text::default()) } else { Plain::Binary(Vec::new()) };
        Self { plain, compressed }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Its length so far, if it is not compressed.
    pub(crate) fn bytes(&self) -> usize {
        self.plain.bytes()
    }

    /// How much memory it takes.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let compressed = self.compressed.as_ref().map_or(0, |compressed| {
            compressed.bytes.capacity() + compressed.context.as_ref().map_or(0, |_| Inflater::BYTES)
        });
        compressed + self.plain.buffered_bytes()
    }

    /// Adds a fragment that is not the last one. The whole message may be at most `bytes_max` bytes
    /// long.
    pub(crate) fn push(&mut self, fragment: &[u8], bytes_max: usize) -> Result<(), Error> {
        match &mut self.compressed {
            Some(compressed) => compressed.push(fragment, bytes_max),
            None => self.plain.push(fragment, bytes_max),
        }
    }

    /// Finishes the message with its last fragment. Returns the inflater if it keeps the
    /// connection's context.
    pub(crate) fn finish(
        &mut self,
        fragment: &[u8],
        bytes_max: usize,
    ) -> Result<Option<Box<Inflater>>, Error> {
        let mut push = |piece: &[u8]| self.plain.push(piece, bytes_max);
        let kept = match self.compressed.take() {
            Some(Compressed { bytes, direction, context }) => {
                let mut inflater = context.unwrap_or_else(|| Inflater::take(direction));
                inflater.push(&bytes, &mut push)?;
                drop(bytes);
                inflater.push(fragment, &mut push)?;
                inflater.finish(push)?
            }
            None => {
                push(fragment)?;
                None
            }
        };
        match &self.plain {
            Plain::Text(text) if text.cut.bytes() != 0 => Err(Error::InvalidText),
            Plain::Text(_) | Plain::Binary(_) => Ok(kept),
        }
    }

    /// The UTF-8 state of an uncompressed text message.
    pub(crate) fn text(&self) -> Option<Utf8> {
        match &self.plain {
            Plain::Text(text) if self.compressed.is_none() => Some(text.cut),
            Plain::Text(_) | Plain::Binary(_) => None,
        }
    }

    /// The complete message. Call it after the last fragment.
    pub(crate) fn item(&self) -> Item<'_> {
        match &self.plain {
            Plain::Text(text) => Item::Text(&text.whole),
            Plain::Binary(bytes) => Item::Binary(bytes),
        }
    }
}

impl Plain {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.whole.len() + text.cut.bytes(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    fn buffered_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.whole.capacity(),
            Self::Binary(bytes) => bytes.capacity(),
        }
    }

    fn push(&mut self, piece: &[u8], bytes_max: usize) -> Result<(), Error> {
        let bytes = self.bytes() + piece.len();
        if bytes > bytes_max {
            return Err(Error::MessageTooLarge { bytes: bytes as u64, bytes_max });
        }
        match self {
            Self::Text(text) => text.push(piece),
            Self::Binary(bytes) => {
                bytes.extend_from_slice(piece);
                Ok(())
            }
        }
    }
}

/// Text, validated as it arrives.
#[derive(Debug, Default)]
pub(crate) struct Text {
    whole: String,
    cut: Utf8,
}

impl Text {
    fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.cut.push(piece, |text| self.whole.push_str(text))
    }
}
