//! Binary messages as one stream of bytes, for protocols with their own framing.

use crate::{
    Close, CloseFinder, Error, Opcode, Role,
    frame::{Length, SHORT_BYTES_MAX, Start},
    mask,
};

/// The longest header: two bytes, a length of eight and a masking key of four.
const HEAD_BYTES_MAX: usize = 14;

/// The first byte of a binary message in a single frame.
const WHOLE_BINARY: u8 = 0x82;

/// The length that says that two more bytes are the length.
const MEDIUM: usize = 126;

/// Decodes binary messages into the stream of bytes that their payloads make up, one after another.
/// Where a message or a frame ends means nothing.
///
/// Payloads are unmasked in place and moved together. Nothing is kept but an incomplete header or
/// control frame, so a message may have any length.
#[derive(Debug)]
pub struct StreamDecoder {
    /// The bytes missing from the current frame's payload.
    left: u64,
    /// The masking key, which begins with the key of the next byte.
    key: [u8; 4],
    role: Role,
    /// The current frame's opcode, while some of its payload is missing.
    opcode: Opcode,
    /// A message continues in the next frame that is not a control frame.
    is_fragmented: bool,
    /// The start of a header that is incomplete.
    head_bytes: u8,
    head: [u8; HEAD_BYTES_MAX],
    /// The start of a control frame's payload.
    control: Vec<u8>,
}

/// A control frame among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// To be answered by a pong with this payload.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong(&'a [u8]),
}

/// The result of [`StreamDecoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// The bytes of the stream that are at the front of the input now.
    pub bytes: usize,
    /// Nothing follows them: the code and reason of a Close frame, if it has any, or an error.
    pub end: Option<Result<Option<u16>, Error>>,
}

impl StreamDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            left: 0,
            key: [0; 4],
            role,
            opcode: Opcode::Binary,
            is_fragmented: false,
            head_bytes: 0,
            head: [0; HEAD_BYTES_MAX],
            control: Vec::new(),
        }
    }

    /// Whether a header or a control frame is incomplete.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.head_bytes > 0 || self.left > 0 && self.opcode.is_control()
    }

    /// Takes in all of `input`, moves the bytes of the stream that are in it to its front, and calls
    /// `control` for each ping and pong. After an end, the decoder must not be used.
    pub fn decode(&mut self, input: &mut [u8], mut control: impl FnMut(Control<'_>)) -> Streamed {
        let (mut bytes, mut read) = (0, 0);
        let end = loop {
            if self.left == 0 && self.head_bytes == 0 && !self.is_fragmented {
                (read, bytes) = self.decode_whole(input, read, bytes);
            }
            match self.decode_part(input, &mut read, &mut bytes, &mut control) {
                Ok(Step::More) => {}
                Ok(Step::Empty) => break None,
                Ok(Step::Closed(code)) => break Some(Ok(code)),
                Err(error) => break Some(Err(error)),
            }
        };
        Streamed { bytes, end }
    }

    /// Decodes the messages at `read` that are whole and in a single frame each, up to 64 KiB, as
    /// most messages are. Returns where the next frame begins and where the stream ends.
    fn decode_whole(&self, input: &mut [u8], mut read: usize, mut bytes: usize) -> (usize, usize) {
        let (masked, key_bytes) = match self.role {
            Role::Server => (0x80, 4),
            Role::Client => (0, 0),
        };
        while let Some(&[WHOLE_BINARY, length]) = input[read..].first_chunk() {
            let (count, head_bytes) = match usize::from(length ^ masked) {
                short @ ..=SHORT_BYTES_MAX => (short, 2 + key_bytes),
                MEDIUM => match input[read + 2..].first_chunk() {
                    Some(length) => (u16::from_be_bytes(*length).into(), 4 + key_bytes),
                    None => break,
                },
                _ => break,
            };
            let begin = read + head_bytes;
            let is_minimal = head_bytes == 2 + key_bytes || count > SHORT_BYTES_MAX;
            if begin + count > input.len() || !is_minimal {
                break;
            }
            let key = match self.role {
                Role::Server => input[..begin].last_chunk().copied().unwrap_or_default(),
                Role::Client => [0; 4],
            };
            mask::apply_moved(input, (begin, bytes), count, key);
            (read, bytes) = (begin + count, bytes + count);
        }
        (read, bytes)
    }

    /// Decodes the rest of a frame, or as much as there is of it.
    fn decode_part(
        &mut self,
        input: &mut [u8],
        read: &mut usize,
        bytes: &mut usize,
        control: &mut impl FnMut(Control<'_>),
    ) -> Result<Step, Error> {
        if self.left == 0 && !self.begin_frame(input, read)? {
            return Ok(Step::Empty);
        }
        let there = input.len() - *read;
        let count = usize::try_from(self.left).map_or(there, |left| left.min(there));
        if self.opcode.is_control() {
            let payload = &mut input[*read..][..count];
            mask::apply(payload, self.key);
            self.control.extend_from_slice(payload);
        } else {
            mask::apply_moved(input, (*read, *bytes), count, self.key);
            *bytes += count;
        }
        *read += count;
        self.left -= count as u64;
        self.key.rotate_left(count % 4);
        if self.left > 0 {
            return Ok(Step::Empty);
        }
        if self.opcode.is_control() {
            return self.end_control(control);
        }
        Ok(Step::More)
    }

    /// Reads a header. Whether it is complete.
    fn begin_frame(&mut self, input: &[u8], read: &mut usize) -> Result<bool, Error> {
        loop {
            let Some(&byte) = input.get(*read) else { return Ok(false) };
            *read += 1;
            self.head[usize::from(self.head_bytes)] = byte;
            self.head_bytes += 1;
            let head = &self.head[..usize::from(self.head_bytes)];
            let start = Start::parse(head[0], false)?;
            let Some(length) = Length::parse(self.role, start.opcode, head)? else { continue };
            if head.len() < length.header_bytes {
                continue;
            }
            match start.opcode {
                Opcode::Text => return Err(Error::TextUnexpected),
                Opcode::Binary if self.is_fragmented => {
                    return Err(Error::ContinuationExpected { opcode: start.opcode });
                }
                Opcode::Continuation if !self.is_fragmented => {
                    return Err(Error::ContinuationUnexpected);
                }
                Opcode::Binary | Opcode::Continuation => self.is_fragmented = !start.fin,
                Opcode::Close | Opcode::Ping | Opcode::Pong => {}
            }
            self.key = length.mask(head).unwrap_or_default();
            self.left = length.payload_bytes;
            self.opcode = start.opcode;
            self.head_bytes = 0;
            return Ok(true);
        }
    }

    /// A control frame is complete.
    fn end_control(&mut self, control: &mut impl FnMut(Control<'_>)) -> Result<Step, Error> {
        let payload = std::mem::take(&mut self.control);
        match self.opcode {
            Opcode::Ping => control(Control::Ping(&payload)),
            Opcode::Pong => control(Control::Pong(&payload)),
            _ => return Ok(Step::Closed(Close::parse(&payload)?.map(|close| close.code))),
        }
        Ok(Step::More)
    }

    /// For an endpoint that has sent its Close frame: waits for the peer's.
    #[must_use]
    pub fn into_close_finder(self) -> CloseFinder {
        let is_close = self.opcode == Opcode::Close && self.left > 0;
        CloseFinder::within(self.role, self.left, is_close, &self.head[..self.head_bytes.into()])
    }
}

/// The next step.
enum Step {
    /// Another frame, if there is any.
    More,
    /// There is no more input.
    Empty,
    /// Nothing, after a Close frame with this code.
    Closed(Option<u16>),
}
