//! Framing: how a byte stream is cut into messages.
//!
//! In the protocol's native framing each side sends, after the [`PREAMBLE`], frames: a `u32`,
//! little endian, the number of bytes that follow, then that many bytes, which are one message.
//!
//! Custom protocols use a [`FrameCodec`] and no preamble. [`NativeFrames`] is the codec of the
//! native framing; [`Framing`] adds the protocol's rules to it: a limit, and no empty message.

mod codec;

use std::fmt;

pub use codec::{FixedSize, FrameCodec, Length, LengthPrefixed, NativeFrames};

/// The first bytes that a client sends to choose native framing.
pub const PREAMBLE: [u8; 4] = *b"PF1\n";

/// The bytes of a frame before its message.
pub const HEADER_BYTES: usize = 4;

/// Cuts messages off a byte stream in native framing.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// The longest message accepted, in bytes.
    pub message_bytes_max: usize,
}

/// A frame at the beginning of some input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The message.
    pub body: &'a [u8],
    /// The bytes of input that the frame took, header included.
    pub consumed: usize,
}

/// A frame that the protocol forbids. The stream can't be trusted after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame of no bytes.
    Empty,
    /// A frame past the limit.
    TooLarge {
        /// The length in the header.
        announced: u32,
        /// The longest message accepted, in bytes.
        message_bytes_max: usize,
    },
    /// A length that counts itself, and is shorter than that.
    TooShort {
        /// The length in the header.
        announced: usize,
        /// The bytes that the length itself takes.
        least: usize,
    },
    /// The limit of bytes came, and no frame ends in them.
    Endless {
        /// The number of bytes that came.
        bytes: usize,
    },
    /// A body that no frame can hold.
    DoesNotFit {
        /// The body's length.
        body_bytes: usize,
        /// The least that a frame holds.
        least: usize,
        /// The most that a frame holds.
        most: usize,
    },
    /// A frame that a [`FrameCodec`] refuses, and why.
    Malformed(&'static str),
}

impl FrameError {
    /// The error for a frame whose body is longer than the limit.
    #[cold]
    #[must_use]
    pub fn too_large(body_bytes: usize, body_bytes_max: usize) -> Self {
        let announced = u32::try_from(body_bytes).unwrap_or(u32::MAX);
        Self::TooLarge { announced, message_bytes_max: body_bytes_max }
    }
}

impl Framing {
    /// The frame at the beginning of `input`, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// As [`frame_bytes`](Self::frame_bytes).
    #[inline]
    pub fn decode<'a>(&self, input: &'a [u8]) -> Result<Option<Frame<'a>>, FrameError> {
        let Some(consumed) = self.frame_bytes(input)? else { return Ok(None) };
        Ok(input.get(HEADER_BYTES..consumed).map(|body| Frame { body, consumed }))
    }

    /// The length of the frame at the beginning of `input`, header included, or `None` while the
    /// header is incomplete. A reader learns how much room to make, and a bad length is refused
    /// before its body arrives.
    ///
    /// # Errors
    /// If the header announces no bytes, or more than the limit.
    #[inline]
    pub fn frame_bytes(&self, input: &[u8]) -> Result<Option<usize>, FrameError> {
        match NativeFrames::new().frame_bytes(input, self.message_bytes_max)? {
            Some(HEADER_BYTES) => Err(FrameError::Empty),
            bytes => Ok(bytes),
        }
    }
}

/// Appends `body` as one frame.
///
/// # Panics
/// As [`write_frame_with`].
pub fn write_frame(out: &mut Vec<u8>, body: &[u8]) {
    write_frame_with(out, |out| out.extend_from_slice(body));
}

/// Appends one frame whose body is what `body` appends.
///
/// # Panics
/// If `body` appends nothing, or 4 GiB and more.
#[inline]
pub fn write_frame_with(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = begin_frame(out);
    body(out);
    end_frame(out, start);
}

/// Begins a frame whose body is what is appended until [`end_frame`], and returns where it begins.
#[inline]
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    start
}

/// Ends the frame that begins at `start`.
///
/// # Panics
/// If its body has no bytes, or 4 GiB and more.
#[inline]
pub fn end_frame(out: &mut [u8], start: usize) {
    let (header, body) = out[start..].split_first_chunk_mut().expect("a frame has a header");
    assert!(!body.is_empty(), "a message has at least one byte");
    let length = u32::try_from(body.len()).expect("a message is shorter than 4 GiB");
    *header = length.to_le_bytes();
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("a frame announced no bytes; every message has at least one")
            }
            Self::TooLarge { announced, message_bytes_max } => {
                write!(f, "a frame announced {announced} bytes, the limit is {message_bytes_max}")
            }
            Self::TooShort { announced, least } => {
                write!(
                    f,
                    "a frame announced {announced} bytes, but its length counts itself, which takes {least}"
                )
            }
            Self::Endless { bytes } => write!(f, "{bytes} bytes came, and no frame ends in them"),
            Self::DoesNotFit { body_bytes, least, most } => {
                write!(
                    f,
                    "a body of {body_bytes} bytes does not go into one frame, which takes {least} to {most}"
                )
            }
            Self::Malformed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FrameError {}

#[cfg(test)]
mod tests {
    use super::{Frame, FrameError, Framing, write_frame, write_frame_with};

    const FRAMING: Framing = Framing { message_bytes_max: 5 };

    #[test]
    fn a_frame_is_its_length_and_its_message() {
        let mut out = b"before".to_vec();
        write_frame(&mut out, b"abc");
        assert_eq!(&out, b"before\x03\0\0\0abc");
        write_frame_with(&mut out, |out| out.push(b'd'));
        assert_eq!(FRAMING.decode(&out[6..]), Ok(Some(Frame { body: b"abc", consumed: 7 })));
        assert_eq!(FRAMING.decode(&out[13..]), Ok(Some(Frame { body: b"d", consumed: 5 })));
    }

    #[test]
    fn a_partial_frame_is_awaited() {
        let whole = b"\x05\0\0\0abcde";
        for cut in 0..whole.len() {
            assert_eq!(FRAMING.decode(&whole[..cut]), Ok(None));
            assert_eq!(FRAMING.frame_bytes(&whole[..cut]), Ok((cut >= 4).then_some(9)));
        }
        assert!(FRAMING.decode(whole).unwrap().is_some());
    }

    #[test]
    fn a_bad_length_is_refused_before_its_body_comes() {
        assert_eq!(FRAMING.decode(&[0; 4]), Err(FrameError::Empty));
        for announced in [6, 0x8000_0000, u32::MAX] {
            let error = FrameError::TooLarge { announced, message_bytes_max: 5 };
            assert_eq!(FRAMING.decode(&announced.to_le_bytes()), Err(error));
        }
    }
}
