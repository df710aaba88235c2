//! Incremental UTF-8 validation.

use crate::Error;

/// The start of a character that was split at the end of a piece, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Utf8 {
    /// The first `tail_bytes` bytes are the start of a character that may still become valid.
    tail: [u8; 4],
    tail_bytes: u8,
}

impl Utf8 {
    /// Returns the length of the incomplete character, in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.tail_bytes.into()
    }

    /// The incomplete character.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.tail[..self.bytes()]
    }

    /// Validates the next piece and passes the complete characters to `whole`.
    pub(crate) fn push(
        &mut self,
        mut piece: &[u8],
        mut whole: impl FnMut(&str),
    ) -> Result<(), Error> {
        while self.tail_bytes != 0 {
            let Some((&byte, rest)) = piece.split_first() else { return Ok(()) };
            piece = rest;
            // The tail holds at most three bytes here: four are a complete character or an error.
            self.tail[self.bytes()] = byte;
            match std::str::from_utf8(&self.tail[..=self.bytes()]) {
                Ok(character) => {
                    whole(character);
                    self.tail_bytes = 0;
                }
                Err(error) if error.error_len().is_none() => self.tail_bytes += 1,
                Err(_) => return Err(Error::InvalidText),
            }
        }
        let error = match std::str::from_utf8(piece) {
            Ok(text) => {
                whole(text);
                return Ok(());
            }
            Err(error) => error,
        };
        // Incomplete is not invalid: the rest of the character may be in the next piece.
        if error.error_len().is_some() {
            return Err(Error::InvalidText);
        }
        let (text, rest) = piece.split_at(error.valid_up_to());
        whole(std::str::from_utf8(text).map_err(|_| Error::InvalidText)?);
        self.tail[..rest.len()].copy_from_slice(rest);
        self.tail_bytes = rest.len() as u8;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_all(fragments: &[&[u8]]) -> Result<(String, Utf8), Error> {
        let (mut text, mut cut) = (String::new(), Utf8::default());
        for fragment in fragments {
            cut.push(fragment, |whole| text.push_str(whole))?;
        }
        Ok((text, cut))
    }

    #[test]
    fn characters_split_anywhere_are_reassembled() {
        let plain = "a\u{7f}\u{80}é\u{7ff}\u{800}€\u{ffff}\u{10000}😀\u{10ffff}z";
        let bytes = plain.as_bytes();
        for size in 1..bytes.len() {
            let fragments: Vec<&[u8]> = bytes.chunks(size).collect();
            let (text, cut) = push_all(&fragments).unwrap();
            assert_eq!((text.as_str(), cut.bytes()), (plain, 0), "cut every {size} bytes");
        }
    }

    #[test]
    fn empty_fragments_keep_a_split_character() {
        let (text, _) = push_all(&[b"\xE2", b"", b"\x82", b"", b"\xAC"]).unwrap();
        assert_eq!(text, "€");
    }

    #[test]
    fn an_invalid_byte_fails_in_its_fragment() {
        let bad: &[&[&[u8]]] = &[
            &[b"\xFF"],
            &[b"\xC0"],                      // would be overlong
            &[b"\xE0", b"\x80"],             // overlong
            &[b"\xED", b"\xA0"],             // a surrogate
            &[b"\xF4", b"\x90"],             // past U+10FFFF
            &[b"\xF5"],                      // past U+10FFFF
            &[b"\xE2", b"a"],                // not a continuation
            &[b"ok\xF0\x9F", b"\x98", b"("], // not a continuation, after a tail of three
            &[b"ok", b"\x80"],               // a continuation byte without a start
            &[b"\xE2\x82\x20\xAC"],          // in the middle of a fragment
        ];
        for fragments in bad {
            let (last, before) = fragments.split_last().unwrap();
            let before =
                push_all(before).unwrap_or_else(|_| panic!("{before:x?} may still become valid"));
            let (_, mut cut) = before;
            assert_eq!(cut.push(last, |_| {}), Err(Error::InvalidText), "{fragments:x?}");
        }
    }
}
