//! The body of a request: by its length, or in chunks (RFC 9112, 6 and 7).

use crate::head::Framing;
use crate::{Limits, RequestError};

/// The longest line before a chunk, in bytes: sixteen digits and an extension.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// A body that is coming in.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// So many bytes, and then the end.
    Bytes(u64),
    /// The line before a chunk.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Headers after the body; the number of their bytes read so far.
    Trailers(usize),
    Nothing,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        let awaits = match framing {
            Framing::Length(0) => Awaits::Nothing,
            Framing::Length(bytes) => Awaits::Bytes(bytes),
            Framing::Chunked => Awaits::Size,
        };
        Self { bytes: Vec::new(), awaits }
    }

    /// How much memory the received part takes.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The whole body, if it is complete.
    pub(crate) fn finished(&mut self) -> Option<Vec<u8>> {
        (self.awaits == Awaits::Nothing).then(|| std::mem::take(&mut self.bytes))
    }

    /// Takes as much of the input as it can, and says how much.
    pub(crate) fn take(&mut self, input: &[u8], limits: &Limits) -> Result<usize, RequestError> {
        let mut taken = 0;
        loop {
            let left = &input[taken..];
            let more = match self.awaits {
                Awaits::Bytes(bytes) => {
                    let more = self.copy(bytes, left);
                    let left = bytes - more as u64;
                    self.awaits = if left > 0 { Awaits::Bytes(left) } else { Awaits::Nothing };
                    more
                }
                Awaits::Size => self.size(left, limits)?,
                Awaits::Chunk(bytes) => {
                    let more = self.copy(bytes, left);
                    let left = bytes - more as u64;
                    self.awaits = if left > 0 { Awaits::Chunk(left) } else { Awaits::ChunkEnd };
                    more
                }
                Awaits::ChunkEnd => match left {
                    [b'\r', b'\n', ..] => {
                        self.awaits = Awaits::Size;
                        2
                    }
                    [] | [b'\r'] => 0,
                    _ => return Err(RequestError::malformed("the end of a chunk")),
                },
                Awaits::Trailers(before) => self.trailer(left, before, limits)?,
                Awaits::Nothing => return Ok(taken),
            };
            taken += more;
            if more == 0 {
                return Ok(taken);
            }
        }
    }

    fn copy(&mut self, bytes: u64, input: &[u8]) -> usize {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(input.len());
        self.bytes.extend_from_slice(&input[..count]);
        count
    }

    /// Reads the line before a chunk: the size in hexadecimal digits, and extensions, which are
    /// ignored.
    fn size(&mut self, input: &[u8], limits: &Limits) -> Result<usize, RequestError> {
        let Some(line) = line(input, CHUNK_LINE_BYTES_MAX, "the line before a chunk")? else {
            return Ok(0);
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, extension) = line.split_at(digits);
        let is_extension = extension.is_empty() || extension.trim_ascii_start().starts_with(b";");
        if !(1..=16).contains(&digits) || !is_extension || extension.iter().any(is_control) {
            return Err(RequestError::malformed("the size of a chunk"));
        }
        let digit = |byte: &u8| u64::from(char::from(*byte).to_digit(16).unwrap_or_default());
        let size = size.iter().map(digit).fold(0_u64, |sum, digit| sum << 4 | digit);
        if size > (limits.body_bytes_max - self.bytes.len()) as u64 {
            return Err(RequestError::BodyTooLarge { bytes_max: limits.body_bytes_max });
        }
        self.awaits = if size > 0 { Awaits::Chunk(size) } else { Awaits::Trailers(0) };
        Ok(line.len() + 2)
    }

    /// Skips a header after the body; the empty line ends it.
    fn trailer(
        &mut self,
        input: &[u8],
        before: usize,
        limits: &Limits,
    ) -> Result<usize, RequestError> {
        let bytes_max = limits.head_bytes_max - before;
        let Some(line) = line(input, bytes_max, "the headers after the body")? else {
            return Ok(0);
        };
        let used = line.len() + 2;
        if line.is_empty() {
            self.awaits = Awaits::Nothing;
            return Ok(used);
        }
        let name = line.iter().take_while(|&&byte| byte != b':').count();
        if name == 0
            || name == line.len()
            || !line[..name].iter().all(is_token)
            || line.iter().any(is_control)
        {
            return Err(RequestError::malformed("a header after the body"));
        }
        self.awaits = Awaits::Trailers(before + used);
        Ok(used)
    }
}

/// The line at the front of the input, without its end; `None` if it isn't complete.
fn line<'a>(
    input: &'a [u8],
    bytes_max: usize,
    what: &'static str,
) -> Result<Option<&'a [u8]>, RequestError> {
    let input = &input[..input.len().min(bytes_max)];
    match input.iter().position(|&byte| byte == b'\n') {
        None if input.len() == bytes_max => Err(RequestError::malformed(what)),
        None => Ok(None),
        Some(end) => match input[..end].split_last() {
            Some((b'\r', line)) => Ok(Some(line)),
            _ => {
                Err(RequestError::malformed("a line ends in a line feed without a carriage return"))
            }
        },
    }
}

fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && *byte != b'\t'
}

/// Whether a byte may be part of a header's name (RFC 9110, 5.6.2).
pub(crate) fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}
