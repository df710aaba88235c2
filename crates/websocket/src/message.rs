//! A message that arrives in fragments.

use crate::{Error, Item};

/// What has arrived of a fragmented message.
#[derive(Debug)]
pub(crate) enum Message {
    Text(Text),
    Binary(Vec<u8>),
}

impl Message {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.whole.len() + text.tail_bytes,
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Adds a fragment; `fin` when it is the last.
    pub(crate) fn push(&mut self, fragment: &[u8], fin: bool) -> Result<(), Error> {
        match self {
            Self::Text(text) => {
                text.push(fragment)?;
                if fin && text.tail_bytes != 0 { Err(Error::InvalidText) } else { Ok(()) }
            }
            Self::Binary(bytes) => {
                bytes.extend_from_slice(fragment);
                Ok(())
            }
        }
    }

    /// The message, complete after its last fragment.
    pub(crate) fn item(&self) -> Item<'_> {
        match self {
            Self::Text(text) => Item::Text(&text.whole),
            Self::Binary(bytes) => Item::Binary(bytes),
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
