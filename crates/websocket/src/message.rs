//! A message that arrives in fragments or compressed.

use crate::{Error, Item, deflate::Inflater, utf8::Utf8};

/// The received part of a fragmented or compressed message.
#[derive(Debug)]
pub(crate) struct Message {
    plain: Plain,
    inflater: Option<Box<Inflater>>,
}

#[derive(Debug)]
enum Plain {
    Text(Text),
    Binary(Vec<u8>),
}

impl Message {
    /// An empty text or binary message, with an inflater if it is compressed.
    pub(crate) fn new(is_text: bool, inflater: Option<Box<Inflater>>) -> Self {
        let plain = if is_text { Plain::Text(Text::default()) } else { Plain::Binary(Vec::new()) };
        Self { plain, inflater }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.inflater.is_some()
    }

    /// Its length so far, in bytes after decompression.
    pub(crate) fn bytes(&self) -> usize {
        self.plain.bytes()
    }

    /// Adds a fragment. The whole message may be at most `bytes_max` bytes long.
    pub(crate) fn push(&mut self, fragment: &[u8], bytes_max: usize) -> Result<(), Error> {
        match &mut self.inflater {
            Some(inflater) => inflater.push(fragment, |piece| self.plain.push(piece, bytes_max)),
            None => self.plain.push(fragment, bytes_max),
        }
    }

    /// Finishes the message after its last fragment. Returns the inflater if it keeps the
    /// connection's context.
    pub(crate) fn finish(&mut self, bytes_max: usize) -> Result<Option<Box<Inflater>>, Error> {
        let kept = match self.inflater.take() {
            Some(inflater) => inflater.finish(|piece| self.plain.push(piece, bytes_max))?,
            None => None,
        };
        match &self.plain {
            Plain::Text(text) if text.cut.bytes() != 0 => Err(Error::InvalidText),
            Plain::Text(_) | Plain::Binary(_) => Ok(kept),
        }
    }

    /// The UTF-8 state of an uncompressed text message.
    pub(crate) fn text(&self) -> Option<Utf8> {
        match &self.plain {
            Plain::Text(text) if self.inflater.is_none() => Some(text.cut),
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
