//! Encodes messages as frames.

use crate::{Mask, Opcode, close, frame::SHORT_BYTES_MAX, mask};

/// The first bit for extensions, in a frame's first byte.
pub(crate) const RSV1: u8 = 0x40;

/// The longest payload whose length takes two extra bytes.
const MEDIUM_BYTES_MAX: usize = u16::MAX as usize;

/// The number of bytes that are copied and then masked: they are still in the processor's fastest
/// cache. A multiple of the masking key's length.
const MASKED_BYTES: usize = 8 << 10;

/// Appends one final frame to `out`: a whole message or a control frame. A control frame's payload
/// is truncated to the 125 bytes that RFC 6455 (5.5) allows.
pub fn encode(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Mask) {
    encode_fragment(out, opcode, true, payload, mask);
}

/// Appends one fragment of a message to `out` (RFC 6455, 5.4). The first fragment is `Text` or
/// `Binary`, all others are `Continuation`, and only the last one sets `fin`. Control frames are
/// always final and ignore `fin`.
pub fn encode_fragment(out: &mut Vec<u8>, opcode: Opcode, fin: bool, payload: &[u8], mask: Mask) {
    let payload = &payload[..payload.len().min(payload_bytes_max(opcode))];
    let header = Header::new(opcode, fin, payload.len(), mask);
    out.reserve(header.as_slice().len() + payload.len());
    out.extend_from_slice(header.as_slice());
    append_masked(out, payload, mask);
}

/// Appends bytes that begin at a multiple of the masking key's length in their payload.
fn append_masked(out: &mut Vec<u8>, payload: &[u8], mask: Mask) {
    let Some(key) = mask else { return out.extend_from_slice(payload) };
    for block in payload.chunks(MASKED_BYTES) {
        let start = out.len();
        out.extend_from_slice(block);
        mask::apply(&mut out[start..], key);
    }
}

/// One final frame that is encoded in parts: the peer can work on the first while others are
/// encoded.
#[derive(Debug)]
pub struct FrameParts<'a> {
    rest: &'a [u8],
    mask: Mask,
}

impl<'a> FrameParts<'a> {
    /// Appends the header of a message to `out`. All of its parts must follow before another frame.
    pub fn begin(out: &mut Vec<u8>, opcode: Opcode, payload: &'a [u8], mask: Mask) -> Self {
        let payload = &payload[..payload.len().min(payload_bytes_max(opcode))];
        out.extend_from_slice(Header::new(opcode, true, payload.len(), mask).as_slice());
        Self { rest: payload, mask }
    }

    /// Appends the next part, of about this many bytes: a multiple of 8 KiB. Returns whether others
    /// follow.
    pub fn append(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        let bytes = (bytes / MASKED_BYTES).max(1).saturating_mul(MASKED_BYTES);
        let (part, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        out.reserve(part.len());
        append_masked(out, part, self.mask);
        self.rest = rest;
        !rest.is_empty()
    }
}

/// Appends one final frame whose payload `write` appends directly to `out`, which avoids a copy
/// through another buffer. A control frame's payload is truncated to 125 bytes. If `write` panics,
/// `out` is left unchanged.
///
/// # Panics
///
/// If `write` shortens `out` instead of appending to it.
pub fn encode_with<R>(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Mask,
    write: impl FnOnce(&mut Vec<u8>) -> R,
) -> R {
    // Most payloads are shorter than 64 KiB.
    encode_with_about(out, opcode, mask, MEDIUM_BYTES_MAX, write)
}

/// Encodes a message like [`encode_with`], for a payload of about this many bytes. If its header
/// has another length than theirs, the payload is moved.
///
/// # Panics
///
/// As [`encode_with`].
#[inline]
pub fn encode_with_about<R>(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Mask,
    bytes_about: usize,
    write: impl FnOnce(&mut Vec<u8>) -> R,
) -> R {
    if mask.is_none() && bytes_about <= SHORT_BYTES_MAX && !opcode.is_control() {
        return encode_short_with(out, opcode, write);
    }
    let frame_start = out.len();
    let gap = Header::new(opcode, true, bytes_about, mask).as_slice().len();
    let mut frame = Unfinished { out, start: frame_start, finished: false };
    let out = &mut *frame.out;
    out.resize(frame_start + gap, 0);
    let result = write(out);

    let payload_start = frame_start + gap;
    assert!(out.len() >= payload_start, "the payload writer may only append to the buffer");
    out.truncate(payload_start.saturating_add(payload_bytes_max(opcode)));
    if let Some(key) = mask {
        mask::apply(&mut out[payload_start..], key);
    }
    let end = out.len();
    let header = Header::new(opcode, true, end - payload_start, mask);
    let header = header.as_slice();
    if header.len() > gap {
        out.resize(end + header.len() - gap, 0);
    }
    if header.len() != gap {
        out.copy_within(payload_start..end, frame_start + header.len());
        out.truncate(frame_start + header.len() + end - payload_start);
    }
    out[frame_start..frame_start + header.len()].copy_from_slice(header);
    frame.finished = true;
    result
}

/// Appends an unmasked message that is short, most likely.
#[inline]
fn encode_short_with<R>(
    out: &mut Vec<u8>,
    opcode: Opcode,
    write: impl FnOnce(&mut Vec<u8>) -> R,
) -> R {
    let start = begin_frame(out, opcode);
    let mut frame = Unfinished { out, start, finished: false };
    let result = write(frame.out);
    end_frame(frame.out, opcode, start);
    frame.finished = true;
    result
}

/// Begins a final frame that is not masked, and returns where it begins. Its payload is what is
/// appended until [`end_frame`].
#[inline]
pub fn begin_frame(out: &mut Vec<u8>, opcode: Opcode) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0x80 | opcode.bits(), 0]);
    start
}

/// Ends the frame of a message that [`begin_frame`] began at `start`, and returns the length of its
/// payload. One of more than 125 bytes is moved: its header is longer.
///
/// # Panics
///
/// If the buffer was shortened meanwhile.
pub fn end_frame(out: &mut Vec<u8>, opcode: Opcode, start: usize) -> usize {
    let bytes = out.len().checked_sub(start + 2);
    let bytes = bytes.expect("the payload writer may only append to the buffer");
    if bytes > SHORT_BYTES_MAX {
        make_longer(out, start, opcode, bytes);
    } else {
        out[start + 1] = bytes as u8;
    }
    bytes
}

/// Replaces the header of two bytes at `start` by one that is long enough for the payload after it.
#[cold]
fn make_longer(out: &mut Vec<u8>, start: usize, opcode: Opcode, payload_bytes: usize) {
    let header = Header::new(opcode, true, payload_bytes, None);
    let header = header.as_slice();
    let (payload, end) = (start + 2, out.len());
    out.resize(end + header.len() - 2, 0);
    out.copy_within(payload..end, start + header.len());
    out[start..start + header.len()].copy_from_slice(header);
}

/// Appends a Close frame to `out` (RFC 6455, 5.5.1). The reason is truncated to 123 bytes at a
/// character boundary. A code that must not be sent, such as 1005 ("no status received"), writes a
/// Close frame without code and reason.
pub fn encode_close(out: &mut Vec<u8>, code: u16, reason: &str, mask: Mask) {
    let mut payload = [0; SHORT_BYTES_MAX];
    let mut bytes = 0;
    if close::may_be_sent(code) {
        let (code_bytes, reason_bytes) = payload.split_at_mut(2);
        code_bytes.copy_from_slice(&code.to_be_bytes());
        let mut end = reason.len().min(reason_bytes.len());
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason_bytes[..end].copy_from_slice(&reason.as_bytes()[..end]);
        bytes = 2 + end;
    }
    encode(out, Opcode::Close, &payload[..bytes], mask);
}

fn payload_bytes_max(opcode: Opcode) -> usize {
    if opcode.is_control() { SHORT_BYTES_MAX } else { usize::MAX }
}

/// Removes an unfinished frame from the buffer if its writer panics. Half a frame would corrupt
/// everything after it.
struct Unfinished<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    finished: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

/// An encoded header: at most two bytes, eight bytes of length and four bytes of masking key.
struct Header {
    bytes: [u8; 14],
    used: usize,
}

impl Header {
    fn new(opcode: Opcode, fin: bool, payload_bytes: usize, mask: Mask) -> Self {
        let mut header = Self { bytes: [0; 14], used: 0 };
        let fin = if fin || opcode.is_control() { 0x80 } else { 0 };
        let masked = if mask.is_some() { 0x80 } else { 0 };
        if payload_bytes <= SHORT_BYTES_MAX {
            header.push(&[fin | opcode.bits(), masked | payload_bytes as u8]);
        } else if payload_bytes <= MEDIUM_BYTES_MAX {
            header.push(&[fin | opcode.bits(), masked | 126]);
            header.push(&(payload_bytes as u16).to_be_bytes());
        } else {
            header.push(&[fin | opcode.bits(), masked | 127]);
            header.push(&(payload_bytes as u64).to_be_bytes());
        }
        if let Some(key) = mask {
            header.push(&key);
        }
        header
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}
