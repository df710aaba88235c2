//! Both halves of a client's connection, without I/O: received bytes in, messages out; messages in,
//! bytes to send out.

use playfield_websocket::{
    Close, Decoder, Deflate, Deflater, DeflaterOptions, Error, Item, Limits, Opcode, Role, encode,
    encode_close, encode_fragment,
};

use crate::masks::Masks;

/// An output buffer that has grown beyond this is released once it is sent.
const KEPT_BYTES_MAX: usize = 1 << 10;

/// How many bytes of an incomplete header are added before its frame's size is asked for again.
const HEADER_BYTES_MAX: usize = 14;

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

    /// Passes the items that `input` completes to `take`. Overwrites `input`.
    pub(crate) fn read(
        &mut self,
        input: &mut [u8],
        take: &mut dyn FnMut(Item<'_>),
    ) -> Result<(), Error> {
        let Self { decoder, partial } = self;
        let mut taken = 0;
        while !partial.is_empty() && taken < input.len() {
            let missing = decoder
                .frame_bytes(partial)?
                .map_or(HEADER_BYTES_MAX, |bytes| bytes.saturating_sub(partial.len()).max(1))
                .min(input.len() - taken);
            partial.extend_from_slice(&input[taken..taken + missing]);
            taken += missing;
            let used = decode_all(decoder, partial, take)?;
            if used == partial.len() {
                *partial = Vec::new();
            } else {
                partial.drain(..used);
            }
        }
        let rest = &mut input[taken..];
        let used = decode_all(decoder, rest, take)?;
        partial.extend_from_slice(&rest[used..]);
        Ok(())
    }
}

/// Decodes all that is complete at the front of `input`, and returns its length.
fn decode_all(
    decoder: &mut Decoder,
    input: &mut [u8],
    take: &mut dyn FnMut(Item<'_>),
) -> Result<usize, Error> {
    let mut used = 0;
    while used < input.len() {
        let decoded = decoder.decode(&mut input[used..])?;
        used += decoded.consumed;
        match decoded.item {
            Some(item) => take(item),
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
    /// How many bytes at the front of `out` are sent.
    sent: usize,
}

/// How the connection ends: the Close frames of both ends, and in which order they went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) received: Option<(u16, String)>,
    pub(crate) sent: Option<(u16, String)>,
    pub(crate) received_first: bool,
    /// What was wrong with a received frame.
    pub(crate) error: Option<Error>,
}

impl Writer {
    pub(crate) fn new(deflate: Option<&Deflate>) -> Self {
        let deflater =
            deflate.map(|agreed| Deflater::new(Role::Client, agreed, DeflaterOptions::default()));
        let (masks, ending) = (Masks::default(), Ending::default());
        Self { deflater, masks, ending, out: Vec::new(), sent: 0 }
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

    /// Adds one frame of a message.
    pub(crate) fn fragment(&mut self, opcode: Opcode, fin: bool, payload: &[u8]) {
        let mask = Some(self.masks.draw());
        encode_fragment(&mut self.out, opcode, fin, payload, mask);
    }

    /// Adds a Ping or a Pong, unless the connection is closing.
    pub(crate) fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if self.is_open() {
            let mask = Some(self.masks.draw());
            encode(&mut self.out, opcode, payload, mask);
        }
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

    /// What waits to be sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// The next `bytes` of [`unsent`](Self::unsent) are sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
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
