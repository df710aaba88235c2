//! Both halves of a client's connection, without I/O: received bytes in, messages out; messages in,
//! bytes to send out.

use playfield_websocket::{
    Close, Decoder, Deflate, Deflater, DeflaterOptions, Error, FrameParts, Item, Limits, Opcode,
    Role, encode, encode_close, encode_fragment,
};

use pyo3::prelude::*;

use crate::large::Large;
use crate::masks::Masks;

/// An output buffer that has grown beyond this is released once it is sent.
const KEPT_BYTES_MAX: usize = 1 << 10;

/// The most bytes of an incomplete header that are added before its frame's size is asked for
/// again.
const HEADER_BYTES_MAX: usize = 14;

/// The most of a frame that is reserved when its start is kept. A longer one grows as it arrives.
const RESERVED_BYTES_MAX: usize = 1 << 20;

/// Once Pongs of this many bytes are unsent, only the latest Ping is answered.
const PONG_BYTES_MAX: usize = 4 << 10;

/// A longer message is encoded in parts.
const WHOLE_BYTES_MAX: usize = 256 << 10;

/// The bytes of it that are encoded before they are written: the server works on them while more
/// are encoded.
const PART_BYTES: usize = 128 << 10;

/// "No status received", the code of a Close frame without one (RFC 6455, 7.4.1).
const NO_STATUS: u16 = 1005;

/// The reading half.
#[derive(Debug)]
pub(crate) struct Reader {
    decoder: Decoder,
    /// The start of a frame that is incomplete.
    partial: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(message_bytes_max: usize, deflate: Option<&Deflate>) -> Self {
        let limits = Limits { message_bytes_max, ..Limits::default() };
        let decoder = match deflate {
            Some(agreed) => Decoder::with_deflate(Role::Client, limits, agreed),
            None => Decoder::new(Role::Client, limits),
        };
        Self { decoder, partial: Vec::new() }
    }

    /// Has each fragment of a message be an item.
    pub(crate) fn passing_fragments(self) -> Self {
        Self { decoder: self.decoder.passing_fragments(), ..self }
    }

    /// Passes the items that `input` completes to `take`, with whether they end their message.
    /// Overwrites `input`. Returns how many bytes were used. The rest is the start of a frame, to
    /// be passed again with what follows, or to [`keep`](Self::keep).
    pub(crate) fn decode(
        &mut self,
        input: &mut [u8],
        take: &mut dyn FnMut(Item<'_>, bool),
    ) -> Result<usize, Error> {
        let Self { decoder, partial } = self;
        let mut taken = 0;
        while !partial.is_empty() && taken < input.len() {
            let missing = missing_bytes(decoder, partial)?.max(1).min(input.len() - taken);
            partial.extend_from_slice(&input[taken..taken + missing]);
            taken += missing;
            let used = decode_all(decoder, partial, take)?;
            if used == partial.len() {
                *partial = Vec::new();
            } else {
                partial.drain(..used);
            }
        }
        Ok(taken + decode_all(decoder, &mut input[taken..], take)?)
    }

    /// Keeps the start of a frame.
    pub(crate) fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        let missing = self.missing_bytes(rest).min(RESERVED_BYTES_MAX);
        self.partial.reserve_exact(rest.len() + missing);
        self.partial.extend_from_slice(rest);
    }

    /// Takes the start of a frame that is kept, if the frame is to be read into its final place.
    pub(crate) fn begin_large(&mut self, py: Python<'_>) -> PyResult<Option<Large>> {
        if self.partial.is_empty() {
            return Ok(None);
        }
        let large = Large::begin(py, &self.partial, self.missing_bytes(&self.partial))?;
        if large.is_some() {
            self.partial = Vec::new();
        }
        Ok(large)
    }

    /// Returns the number of bytes missing of the frame that begins with `rest`, or of its header.
    pub(crate) fn missing_bytes(&self, rest: &[u8]) -> usize {
        // Decoding reports an error.
        missing_bytes(&self.decoder, rest).unwrap_or(0)
    }
}

fn missing_bytes(decoder: &Decoder, frame: &[u8]) -> Result<usize, Error> {
    let bytes = decoder.frame_bytes(frame)?;
    Ok(bytes.map_or(HEADER_BYTES_MAX, |bytes| bytes.saturating_sub(frame.len())))
}

/// Decodes all that is complete at the front of `input`, and returns its length.
fn decode_all(
    decoder: &mut Decoder,
    input: &mut [u8],
    take: &mut dyn FnMut(Item<'_>, bool),
) -> Result<usize, Error> {
    let mut used = 0;
    while used < input.len() {
        let decoded = decoder.decode(&mut input[used..])?;
        used += decoded.consumed;
        match decoded.item {
            Some(item) => take(item, decoded.fin),
            None if decoded.consumed == 0 => break,
            None => {}
        }
    }
    Ok(used)
}

/// The writing half.
#[derive(Debug)]
pub(crate) struct Writer {
    deflater: Option<Deflater>,
    masks: Masks,
    ending: Ending,
    out: Vec<u8>,
    /// The number of bytes sent at the front of `out`.
    sent: usize,
    /// The number of bytes of Pongs in `out`, and the end of the last one.
    pong_bytes: usize,
    pongs_end: usize,
    /// The payload of a Pong that is due once those are sent, or once a message is whole.
    pong: Option<Vec<u8>>,
    /// A message is encoded in part.
    in_parts: bool,
}

/// The end of the connection: the Close frames of both ends, and the order in which they went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) received: Option<(u16, String)>,
    pub(crate) sent: Option<(u16, String)>,
    pub(crate) received_first: bool,
    /// The error in a received frame.
    pub(crate) error: Option<Error>,
}

impl Writer {
    pub(crate) fn new(deflate: Option<&Deflate>) -> Self {
        let deflater =
            deflate.map(|agreed| Deflater::new(Role::Client, agreed, DeflaterOptions::default()));
        let (masks, ending) = (Masks::default(), Ending::default());
        let (out, pong) = (Vec::new(), None);
        let in_parts = false;
        Self { deflater, masks, ending, out, sent: 0, pong_bytes: 0, pongs_end: 0, pong, in_parts }
    }

    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Whether messages may still be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.ending.sent.is_none()
    }

    /// Whether both ends have said that they close, or the peer has broken the protocol.
    pub(crate) fn is_over(&self) -> bool {
        let Ending { received, sent, error, .. } = &self.ending;
        error.is_some() || (received.is_some() && sent.is_some())
    }

    /// Adds a whole message.
    pub(crate) fn message(&mut self, opcode: Opcode, payload: &[u8]) {
        let mask = Some(self.masks.draw());
        match &mut self.deflater {
            Some(deflater) => deflater.encode(&mut self.out, opcode, payload, mask),
            None => encode(&mut self.out, opcode, payload, mask),
        }
    }

    /// Adds the start of a long message. The caller writes what is unsent, then adds the next part,
    /// and so on. `None`, and nothing is added, if the message is to be added whole.
    pub(crate) fn begin_parts<'a>(
        &mut self,
        opcode: Opcode,
        payload: &'a [u8],
    ) -> Option<FrameParts<'a>> {
        if payload.len() <= WHOLE_BYTES_MAX || self.deflater.is_some() {
            return None;
        }
        let mask = Some(self.masks.draw());
        let mut parts = FrameParts::begin(&mut self.out, opcode, payload, mask);
        self.in_parts = true;
        self.add_part(&mut parts);
        Some(parts)
    }

    /// Adds the next part. Returns whether others follow.
    pub(crate) fn add_part(&mut self, parts: &mut FrameParts<'_>) -> bool {
        self.in_parts = parts.append(&mut self.out, PART_BYTES);
        self.send_due_pong();
        self.in_parts
    }

    /// Adds the Pong that is due, if the others are sent, and not inside a frame.
    fn send_due_pong(&mut self) {
        if self.pong_bytes == 0
            && !self.in_parts
            && let Some(payload) = self.pong.take()
        {
            self.pong(&payload);
        }
    }

    /// Adds one frame of a message.
    pub(crate) fn fragment(&mut self, opcode: Opcode, fin: bool, payload: &[u8]) {
        let mask = Some(self.masks.draw());
        encode_fragment(&mut self.out, opcode, fin, payload, mask);
    }

    /// Drops what waits to be sent.
    pub(crate) fn drop_unsent(&mut self) {
        (self.out, self.sent) = (Vec::new(), 0);
        (self.pong_bytes, self.pong) = (0, None);
    }

    /// Adds a Ping or a Pong, unless the connection is closing.
    pub(crate) fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.is_open() {
            let mask = Some(self.masks.draw());
            encode(&mut self.out, opcode, payload, mask);
        }
    }

    /// Answers a Ping, unless the connection is closing. If many Pongs are unsent, this one waits,
    /// and replaces the one that waits (RFC 6455, 5.5.3): a peer that sends Pings and does not read
    /// makes us hold little.
    pub(crate) fn pong(&mut self, payload: &[u8]) {
        if self.pong_bytes >= PONG_BYTES_MAX {
            self.pong = Some(payload.to_vec());
            return;
        }
        let before = self.out.len();
        self.control(Opcode::Pong, payload);
        self.pongs_end = self.out.len();
        self.pong_bytes += self.pongs_end - before;
    }

    /// Adds a Close frame, unless there was one.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        if self.is_open() {
            let mask = Some(self.masks.draw());
            encode_close(&mut self.out, code, reason, mask);
            self.ending.sent = Some((code, reason.to_owned()));
        }
    }

    /// The peer closes the connection: answers with its code.
    pub(crate) fn closed_by_peer(&mut self, close: Option<Close<'_>>) {
        let Close { code, reason } = close.unwrap_or(Close { code: NO_STATUS, reason: "" });
        self.ending.received = Some((code, reason.to_owned()));
        if self.is_open() {
            self.ending.received_first = true;
            self.close(code, reason);
        }
    }

    /// The peer breaks the protocol: closes the connection with the code that says so.
    pub(crate) fn failed(&mut self, error: Error) {
        self.close(error.close_code(), "");
        self.ending.error = Some(error);
    }

    /// Returns the bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// The next `bytes` of [`unsent`](Self::unsent) are sent. This may add a Pong that was due.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.pong_bytes > 0 && self.sent >= self.pongs_end {
            self.pong_bytes = 0;
            self.send_due_pong();
        }
        if self.sent < self.out.len() {
            return;
        }
        self.sent = 0;
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
    }
}
