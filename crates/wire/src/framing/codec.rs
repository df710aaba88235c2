//! Codecs for custom protocols: how a byte stream is cut into frames, and how frames are written.

use std::marker::PhantomData;

use super::{Frame, FrameError};
use crate::packet::{Little, Number, Order};

/// Finds the end of the frame at the front of a byte stream, and writes frames.
///
/// [`LengthPrefixed`] and [`FixedSize`] are ready-made. Implement the trait for anything else, such
/// as lines of text:
///
/// ```
/// use playfield_wire::framing::{Frame, FrameCodec, FrameError};
///
/// struct Lines;
///
/// impl FrameCodec for Lines {
///     fn decode<'a>(&self, input: &'a [u8], body_bytes_max: usize) -> Result<Option<Frame<'a>>, FrameError> {
///         self.decode_on(input, 0, body_bytes_max)
///     }
///
///     fn decode_on<'a>(
///         &self,
///         input: &'a [u8],
///         known: usize,
///         body_bytes_max: usize,
///     ) -> Result<Option<Frame<'a>>, FrameError> {
///         let end = input[known..].iter().position(|&byte| byte == b'\n').map(|place| known + place);
///         let line = &input[..end.unwrap_or(input.len())];
///         if line.len() > body_bytes_max {
///             return Err(FrameError::too_large(line.len(), body_bytes_max));
///         }
///         Ok(end.map(|end| Frame { body: line, consumed: end + 1 }))
///     }
///
///     fn encode_with(&self, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), FrameError> {
///         body(out);
///         out.push(b'\n');
///         Ok(())
///     }
/// }
///
/// let frame = Lines.decode(b"PING 1\nPI", 510)?.expect("a whole line");
/// assert_eq!(frame, Frame { body: b"PING 1", consumed: 7 });
/// assert_eq!(Lines.decode(b"PI", 510)?, None);
/// let frame = Lines.decode_on(b"PING 2\n", 2, 510)?.expect("a whole line");
/// assert_eq!(frame.body, b"PING 2");
/// # Ok::<(), FrameError>(())
/// ```
pub trait FrameCodec: Send + 'static {
    /// The frame at the front of `input`, or `None` if more bytes are needed. It is called again
    /// when more have arrived, so it should decide from the first few bytes. A codec that searches
    /// for an end implements [`decode_on`](Self::decode_on), too.
    ///
    /// # Errors
    /// If no frame begins like this, or the frame's body will be longer than `body_bytes_max`. The
    /// connection is closed after it.
    fn decode<'a>(
        &self,
        input: &'a [u8],
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError>;

    /// The same after more bytes have arrived: no frame ended in the first `known` bytes of
    /// `input`, which were there the last time. A codec that searches for an end starts behind
    /// them. Otherwise a peer that sends byte by byte causes a search from the start for each byte.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_on<'a>(
        &self,
        input: &'a [u8],
        known: usize,
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        let _ = known;
        self.decode(input, body_bytes_max)
    }

    /// Appends a frame whose body is what `body` appends.
    ///
    /// # Errors
    /// If no frame can hold such a body. `out` is then as it was.
    fn encode_with(
        &self,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FrameError>;

    /// Appends a frame around `body`.
    ///
    /// # Errors
    /// As [`encode_with`](Self::encode_with).
    #[inline]
    fn encode(&self, out: &mut Vec<u8>, body: &[u8]) -> Result<(), FrameError> {
        self.encode_with(out, |out| out.extend_from_slice(body))
    }
}

/// The frames of the native framing: a `u32`, little endian, then that many bytes.
///
/// Here a body may be empty. No message is, so [`Framing`](super::Framing) refuses those.
pub type NativeFrames = LengthPrefixed<u32, Little>;

/// Frames with their length before them: a `u8`, `u16` or `u32` in the byte order `O`.
#[derive(Clone, Copy, Debug)]
pub struct LengthPrefixed<L, O = Little> {
    /// The bytes of the prefix that the length includes: none or all.
    counted: usize,
    of: PhantomData<(L, O)>,
}

/// A number type for the length of a frame.
pub trait Length: Number + Send + 'static {
    /// The greatest length.
    const MAX: usize;

    /// The number as a length.
    fn length(self) -> usize;

    /// The length as a number, if it is at most [`MAX`](Self::MAX).
    fn of(length: usize) -> Option<Self>;
}

macro_rules! lengths {
    ($($of:ident),*) => {$(
        impl Length for $of {
            const MAX: usize = $of::MAX as usize;

            #[inline]
            fn length(self) -> usize {
                self as usize
            }

            #[inline]
            fn of(length: usize) -> Option<Self> {
                length.try_into().ok()
            }
        }
    )*};
}

lengths!(u8, u16, u32);

impl<L: Length, O: Order> LengthPrefixed<L, O> {
    /// The length is that of the body.
    #[must_use]
    pub const fn new() -> Self {
        Self { counted: 0, of: PhantomData }
    }

    /// The length is that of the body and of the prefix.
    #[must_use]
    pub const fn counting_itself() -> Self {
        Self { counted: L::BYTES, of: PhantomData }
    }

    /// The length of the frame at the front of `input`, prefix included, or `None` while the prefix
    /// is incomplete.
    ///
    /// # Errors
    /// If the body is longer than `body_bytes_max`, or the length too short to count itself.
    #[inline]
    pub fn frame_bytes(
        &self,
        input: &[u8],
        body_bytes_max: usize,
    ) -> Result<Option<usize>, FrameError> {
        let Some((prefix, _)) = L::split(input) else { return Ok(None) };
        let announced = L::from_bytes::<O>(prefix).length();
        let Some(length) = announced.checked_sub(self.counted) else {
            return Err(FrameError::TooShort { announced, least: self.counted });
        };
        if length > body_bytes_max {
            return Err(FrameError::too_large(length, body_bytes_max));
        }
        Ok(length.checked_add(L::BYTES))
    }

    /// The prefix of a body of this length.
    #[inline]
    fn prefix(&self, body_bytes: usize) -> Result<L::Bytes, FrameError> {
        let length = L::of(body_bytes + self.counted);
        length.map(L::to_bytes::<O>).ok_or_else(|| FrameError::DoesNotFit {
            body_bytes,
            least: 0,
            most: L::MAX - self.counted,
        })
    }
}

impl<L: Length, O: Order> Default for LengthPrefixed<L, O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Length, O: Order + Send> FrameCodec for LengthPrefixed<L, O> {
    #[inline]
    fn decode<'a>(
        &self,
        input: &'a [u8],
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        let Some(consumed) = self.frame_bytes(input, body_bytes_max)? else { return Ok(None) };
        Ok(input.get(L::BYTES..consumed).map(|body| Frame { body, consumed }))
    }

    #[inline]
    fn encode_with(
        &self,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FrameError> {
        let start = out.len();
        let body_start = start + L::BYTES;
        out.extend_from_slice(L::Bytes::default().as_ref());
        body(out);
        // The closure may have shortened the buffer.
        let body_bytes = out.len().saturating_sub(body_start);
        match (self.prefix(body_bytes), out.get_mut(start..body_start)) {
            (Ok(prefix), Some(place)) => {
                place.copy_from_slice(prefix.as_ref());
                Ok(())
            }
            (prefix, _) => {
                out.truncate(start);
                prefix.map(|_| ())
            }
        }
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>, body: &[u8]) -> Result<(), FrameError> {
        let prefix = self.prefix(body.len())?;
        out.reserve(L::BYTES + body.len());
        out.extend_from_slice(prefix.as_ref());
        out.extend_from_slice(body);
        Ok(())
    }
}

/// Frames of one size, without a header.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedSize<const BYTES: usize>;

impl<const BYTES: usize> FrameCodec for FixedSize<BYTES> {
    #[inline]
    fn decode<'a>(
        &self,
        input: &'a [u8],
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        const { assert!(BYTES > 0, "a frame has at least one byte") };
        if BYTES > body_bytes_max {
            return Err(FrameError::too_large(BYTES, body_bytes_max));
        }
        Ok(input.get(..BYTES).map(|body| Frame { body, consumed: BYTES }))
    }

    #[inline]
    fn encode_with(
        &self,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FrameError> {
        let start = out.len();
        body(out);
        let body_bytes = out.len().saturating_sub(start);
        if body_bytes == BYTES {
            return Ok(());
        }
        out.truncate(start);
        Err(FrameError::DoesNotFit { body_bytes, least: BYTES, most: BYTES })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::{FixedSize, FrameCodec, LengthPrefixed, NativeFrames};
    use crate::framing::{Frame, FrameError};
    use crate::packet::{Big, Little};

    const BODY_BYTES_MAX: usize = 5;

    /// Whatever is written is read back, and awaited until its last byte has come.
    fn reads_back(codec: &(impl FrameCodec + Debug), body: &[u8], whole: &[u8]) {
        let mut out = b"before".to_vec();
        codec.encode(&mut out, body).unwrap();
        assert_eq!(&out[6..], whole, "{codec:?}");
        codec.encode_with(&mut out, |out| out.extend_from_slice(body)).unwrap();
        assert_eq!(&out[6 + whole.len()..], whole, "{codec:?}");
        for cut in 0..whole.len() {
            assert_eq!(codec.decode(&whole[..cut], BODY_BYTES_MAX), Ok(None), "{codec:?}");
        }
        let frame = Frame { body, consumed: whole.len() };
        assert_eq!(codec.decode(&out[6..], BODY_BYTES_MAX), Ok(Some(frame)), "{codec:?}");
    }

    #[test]
    fn a_frame_is_a_length_in_either_order_and_its_body() {
        reads_back(&NativeFrames::new(), b"abc", b"\x03\0\0\0abc");
        reads_back(&LengthPrefixed::<u32, Big>::new(), b"abc", b"\0\0\0\x03abc");
        reads_back(&LengthPrefixed::<u16, Little>::new(), b"abc", b"\x03\0abc");
        reads_back(&LengthPrefixed::<u16, Big>::new(), b"abcde", b"\0\x05abcde");
        reads_back(&LengthPrefixed::<u8>::new(), b"abc", b"\x03abc");
        reads_back(&LengthPrefixed::<u8>::new(), b"", b"\0");
    }

    #[test]
    fn a_length_may_count_itself() {
        reads_back(&LengthPrefixed::<u32, Little>::counting_itself(), b"abc", b"\x07\0\0\0abc");
        reads_back(&LengthPrefixed::<u16, Big>::counting_itself(), b"abcde", b"\0\x07abcde");
        reads_back(&LengthPrefixed::<u8>::counting_itself(), b"", b"\x01");
        let codec = LengthPrefixed::<u16, Big>::counting_itself();
        let error = codec.decode(b"\0\x01", BODY_BYTES_MAX).unwrap_err();
        assert_eq!(error, FrameError::TooShort { announced: 1, least: 2 });
        assert_eq!(
            error.to_string(),
            "a frame announced 1 bytes, but its length counts itself, which takes 2"
        );
    }

    #[test]
    fn frames_of_one_size_have_nothing_around_them() {
        reads_back(&FixedSize::<4>, b"abcd", b"abcd");
        let mut out = b"before".to_vec();
        let error = FixedSize::<4>.encode(&mut out, b"abcde").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a body of 5 bytes does not go into one frame, which takes 4 to 4"
        );
        assert_eq!(out, b"before");
        let error = FrameError::TooLarge { announced: 6, message_bytes_max: 5 };
        assert_eq!(FixedSize::<6>.decode(b"", BODY_BYTES_MAX), Err(error));
    }

    #[test]
    fn one_past_the_limit_is_refused_before_it_comes() {
        let error = Err(FrameError::TooLarge { announced: 6, message_bytes_max: 5 });
        assert_eq!(NativeFrames::new().decode(b"\x06\0\0\0", BODY_BYTES_MAX), error);
        assert_eq!(LengthPrefixed::<u8>::new().decode(b"\x06", BODY_BYTES_MAX), error);
        assert_eq!(
            LengthPrefixed::<u16, Big>::counting_itself().decode(b"\0\x08", BODY_BYTES_MAX),
            error
        );
        let error = NativeFrames::new().decode(&[255; 4], usize::MAX);
        assert!(matches!(error, Ok(None)), "{error:?}");
    }

    #[test]
    fn a_body_that_its_prefix_cannot_say_is_not_written() {
        for (codec, most) in
            [(LengthPrefixed::<u8>::new(), 255), (LengthPrefixed::<u8>::counting_itself(), 254)]
        {
            let mut out = b"before".to_vec();
            let error = FrameError::DoesNotFit { body_bytes: most + 1, least: 0, most };
            assert_eq!(codec.encode(&mut out, &vec![1; most + 1]), Err(error));
            assert_eq!(
                codec.encode_with(&mut out, |out| out.resize(out.len() + most + 1, 0)),
                Err(error)
            );
            assert_eq!(out, b"before");
            codec.encode(&mut out, &vec![1; most]).unwrap();
        }
    }

    #[test]
    fn a_body_that_takes_bytes_away_does_no_harm() {
        let mut out = b"before".to_vec();
        let _ = NativeFrames::new().encode_with(&mut out, Vec::clear);
        let _ = FixedSize::<4>.encode_with(&mut out, Vec::clear);
        assert!(out.len() <= 6);
    }
}
