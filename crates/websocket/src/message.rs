//! A message that arrives in fragments, or compressed.

use crate::{Error, Item, deflate::Inflater};

/// What has arrived of a message that is fragmented or compressed.
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
    /// A text or binary message of which nothing has arrived; with an inflater if it comes compressed.
    pub(crate) fn new(is_text: bool, inflater: Option<Box<Inflater>>) -> Self {
        let plain = if is_text { Plain::Text(Text::default()) } else { Plain::Binary(Vec::new()) };
        Self { plain, inflater }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.inflater.is_some()
    }

    /// How long it is so far, in bytes, as the other end wrote it.
    pub(crate) fn bytes(&self) -> usize {
        self.plain.bytes()
    }

    /// Adds a fragment. The message may come to `bytes_max` bytes.
    pub(crate) fn push(&mut self, fragment: &[u8], bytes_max: usize) -> Result<(), Error> {
        match &mut self.inflater {
            Some(inflater) => inflater.push(fragment, |piece| self.plain.push(piece, bytes_max)),
            None => self.plain.push(fragment, bytes_max),
        }
    }

    /// Ends the message after its last fragment, and gives back an inflater that keeps the connection's context.
    pub(crate) fn finish(&mut self, bytes_max: usize) -> Result<Option<Box<Inflater>>, Error> {
        let kept = match self.inflater.take() {
            Some(inflater) => inflater.finish(|piece| self.plain.push(piece, bytes_max))?,
            None => None,
        };
        match &self.plain {
            Plain::Text(text) if text.tail_bytes != 0 => Err(Error::InvalidText),
            Plain::Text(_) | Plain::Binary(_) => Ok(kept),
        }
    }

    /// The message, complete after its last fragment.
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
            Self::Text(text) => text.whole.len() + text.tail_bytes,
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

/// Text checked as it arrives: whole characters, and the start of one that a fragment's end cut through.
#[derive(Debug, Default)]
pub(crate) struct Text {
    whole: String,
    /// The first `tail_bytes` of it begin a character that may still become valid.
    tail: [u8; 4],
    tail_bytes: usize,
}

impl Text {
    fn push(&mut self, mut fragment: &[u8]) -> Result<(), Error> {
        while self.tail_bytes != 0 {
            let Some((&byte, rest)) = fragment.split_first() else { return Ok(()) };
            fragment = rest;
            // The tail holds at most three bytes here: four are a whole character or an error.
            self.tail[self.tail_bytes] = byte;
            let tail = &self.tail[..=self.tail_bytes];
            match std::str::from_utf8(tail) {
                Ok(character) => {
                    self.whole.push_str(character);
                    self.tail_bytes = 0;
                }
                Err(error) if error.error_len().is_none() => self.tail_bytes += 1,
                Err(_) => return Err(Error::InvalidText),
            }
        }
        let error = match std::str::from_utf8(fragment) {
            Ok(text) => {
                self.whole.push_str(text);
                return Ok(());
            }
            Err(error) => error,
        };
        // Invalid for now is not invalid for good: the rest of the character may be in the next fragment.
        if error.error_len().is_some() {
            return Err(Error::InvalidText);
        }
        let (text, rest) = fragment.split_at(error.valid_up_to());
        self.whole.push_str(std::str::from_utf8(text).map_err(|_| Error::InvalidText)?);
        self.tail[..rest.len()].copy_from_slice(rest);
        self.tail_bytes = rest.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_all(fragments: &[&[u8]]) -> Result<Text, Error> {
        let mut text = Text::default();
        for fragment in fragments {
            text.push(fragment)?;
        }
        Ok(text)
    }

    #[test]
    fn characters_cut_anywhere_are_whole_again() {
        let plain = "a\u{7f}\u{80}é\u{7ff}\u{800}€\u{ffff}\u{10000}😀\u{10ffff}z";
        let bytes = plain.as_bytes();
        for size in 1..bytes.len() {
            let fragments: Vec<&[u8]> = bytes.chunks(size).collect();
            let text = push_all(&fragments).unwrap();
            assert_eq!((text.whole.as_str(), text.tail_bytes), (plain, 0), "cut every {size} bytes");
        }
    }

    #[test]
    fn empty_fragments_keep_a_cut_character() {
        let text = push_all(&[b"\xE2", b"", b"\x82", b"", b"\xAC"]).unwrap();
        assert_eq!(text.whole, "€");
    }

    #[test]
    fn a_byte_that_can_never_be_right_fails_in_its_fragment() {
        let bad: &[&[&[u8]]] = &[
            &[b"\xFF"],
            &[b"\xC0"],                      // would be overlong
            &[b"\xE0", b"\x80"],             // overlong
            &[b"\xED", b"\xA0"],             // a surrogate
            &[b"\xF4", b"\x90"],             // past U+10FFFF
            &[b"\xF5"],                      // past U+10FFFF
            &[b"\xE2", b"a"],                // not a continuation
            &[b"ok\xF0\x9F", b"\x98", b"("], // not a continuation, after a tail of three
            &[b"ok", b"\x80"],               // a continuation of nothing
            &[b"\xE2\x82\x20\xAC"],          // in the midst of a fragment
        ];
        for fragments in bad {
            let (last, before) = fragments.split_last().unwrap();
            let mut text = push_all(before).unwrap_or_else(|_| panic!("{before:x?} may still become valid"));
            assert_eq!(text.push(last), Err(Error::InvalidText), "{fragments:x?}");
        }
    }
}
