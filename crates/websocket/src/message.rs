//! A message that arrives in fragments or compressed.

use crate::{
    Error, Item, Opcode,
    deflate::{Direction, Inflater},
    utf8::Utf8,
};

/// The received part of a fragmented or compressed message.
#[derive(Debug)]
pub(crate) struct Message {
    plain: Plain,
    compressed: Option<Compressed>,
    /// Its fragments are passed on as they arrive.
    passes_fragments: bool,
    /// The bytes passed on before those in `plain`.
    passed_bytes: usize,
}

/// A compressed message, until its last fragment has come. It is decompressed only then, unless its
/// fragments are passed on: a peer that sends little makes us hold little.
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
    pub(crate) fn new(
        is_text: bool,
        compressed: Option<Compressed>,
        passes_fragments: bool,
    ) -> Self {
        let plain = if is_text { Plain::Text(Text::default()) } else { Plain::Binary(Vec::new()) };
        Self { plain, compressed, passes_fragments, passed_bytes: 0 }
    }

    /// The last fragment was passed on.
    pub(crate) fn forget_piece(&mut self) {
        self.passed_bytes += self.plain.clear();
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Its length so far, if it is not compressed.
    pub(crate) fn bytes(&self) -> usize {
        self.passed_bytes + self.plain.bytes()
    }

    /// Returns the memory it takes, in bytes.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let compressed = self.compressed.as_ref().map_or(0, |compressed| {
            compressed.bytes.capacity() + compressed.context.as_ref().map_or(0, |_| Inflater::BYTES)
        });
        compressed + self.plain.buffered_bytes()
    }

    /// Adds a fragment that is not the last one. The whole message may be at most `bytes_max` bytes
    /// long.
    pub(crate) fn push(&mut self, fragment: &[u8], bytes_max: usize) -> Result<(), Error> {
        let Self { plain, compressed, passes_fragments, passed_bytes } = self;
        match compressed {
            Some(Compressed { direction, context, .. }) if *passes_fragments => context
                .get_or_insert_with(|| Inflater::take(*direction))
                .push(fragment, |piece| plain.push(piece, *passed_bytes, bytes_max)),
            Some(compressed) => compressed.push(fragment, bytes_max),
            None => plain.push(fragment, *passed_bytes, bytes_max),
        }
    }

    /// Finishes the message with its last fragment. Returns the inflater if it keeps the
    /// connection's context.
    pub(crate) fn finish(
        &mut self,
        fragment: &[u8],
        bytes_max: usize,
    ) -> Result<Option<Box<Inflater>>, Error> {
        let Self { plain, compressed, passed_bytes, .. } = self;
        let mut push = |piece: &[u8]| plain.push(piece, *passed_bytes, bytes_max);
        let kept = match compressed.take() {
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

    /// Its opcode, and its bytes so far; `None` if it is compressed.
    pub(crate) fn so_far(&self) -> Option<(Opcode, Vec<u8>)> {
        match &self.plain {
            _ if self.is_compressed() => None,
            Plain::Text(text) => {
                Some((Opcode::Text, [text.whole.as_bytes(), text.cut.tail()].concat()))
            }
            Plain::Binary(bytes) => Some((Opcode::Binary, bytes.clone())),
        }
    }

    /// The complete message, or the piece of it that was not passed on. Call it after the last
    /// fragment, or if fragments are passed on.
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

    /// Drops the complete characters, or all bytes. Returns how many they were.
    fn clear(&mut self) -> usize {
        match self {
            Self::Text(text) => std::mem::take(&mut text.whole).len(),
            Self::Binary(bytes) => std::mem::take(bytes).len(),
        }
    }

    fn push(&mut self, piece: &[u8], before: usize, bytes_max: usize) -> Result<(), Error> {
        let bytes = before + self.bytes() + piece.len();
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
