//! The protocol of a connection: how it is detected, and how messages are framed.

use playfield_websocket::{CloseFinder, Decoder, Deflate, Limits, Opcode, Role};
use playfield_wire::Format;
use playfield_wire::framing::{self, PREAMBLE};

use crate::config::Config;
use crate::proxy::Client;
use crate::shard::connection::carrier::Carrier;
use crate::shard::connection::deflated::Deflated;
use crate::shard::connection::http::Http;

/// The way a connection's input is read.
pub(crate) enum Input {
    /// Too few bytes came from this client to detect the protocol.
    Unknown(Box<Client>),
    /// The head of an HTTP request.
    Http(Box<Http>),
    /// Native framing.
    Native,
    /// WebSocket frames. The decoder is kept only where a new one would not do: within a message,
    /// and where messages are compressed.
    WebSocket(Option<Box<Decoder>>),
    /// WebSocket frames; only a Close is of use.
    Closing(Box<CloseFinder>),
    /// Whatever the service of this number speaks, in messages of a WebSocket if there is one.
    Service(u16, Option<Box<Carrier>>),
    /// The decoder is out, while a message that it lent is handled.
    InUse,
}

/// Limits on what a WebSocket client may send: before its hello, it is a stranger.
pub(crate) fn websocket_limits(config: &Config, is_stranger: bool) -> Limits {
    Limits { message_bytes_max: config.message_bytes_max(is_stranger), ..Limits::default() }
}

/// A decoder between messages that are not compressed.
pub(crate) fn websocket_decoder(config: &Config, is_stranger: bool) -> Decoder {
    Decoder::new(Role::Server, websocket_limits(config, is_stranger))
}

/// A decoder between messages of a client with a session, which may be compressed.
pub(crate) fn deflating_decoder(config: &Config) -> Decoder {
    let limits = websocket_limits(config, false);
    Decoder::with_deflate(Role::Server, limits, &Deflate::default())
}

/// The protocol that the first bytes of a connection show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// More bytes are needed.
    Partial,
    Native,
    Http,
    /// No protocol that is spoken here.
    Alien,
}

/// The most empty lines accepted before the first request. RFC 9112 (2.2) asks for one.
const EMPTY_LINES_MAX: usize = 4;

/// Reads the first bytes of a connection.
pub(crate) fn opening(bytes: &[u8]) -> Opening {
    const METHODS: [&[u8]; 9] = [
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"PUT ",
        b"PATCH ",
        b"DELETE ",
        b"OPTIONS ",
        b"CONNECT ",
        b"TRACE ",
    ];
    if bytes.starts_with(&PREAMBLE) {
        return Opening::Native;
    }
    if PREAMBLE.starts_with(bytes) {
        return Opening::Partial;
    }
    let mut request = bytes;
    for _ in 0..EMPTY_LINES_MAX {
        request = request.strip_prefix(b"\r\n").unwrap_or(request);
    }
    if METHODS.iter().any(|method| request.starts_with(method)) {
        return Opening::Http;
    }
    let is_half_line = request == b"\r" && bytes.len() < 2 * EMPTY_LINES_MAX;
    if is_half_line || METHODS.iter().any(|method| method.starts_with(request)) {
        return Opening::Partial;
    }
    Opening::Alien
}

/// The framing of messages to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Native,
    /// And how messages are compressed, if that was agreed on.
    WebSocket(Option<Deflated>),
}

/// The framing and the format of messages to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) framing: Framing,
    pub(crate) format: Format,
}

impl Dialect {
    /// The dialect before anything is agreed.
    pub(crate) const FIRST: Self = Self { framing: Framing::Native, format: Format::Packed };

    /// Appends a message, whose bytes are what `message` appends.
    #[inline]
    pub(crate) fn write_with(self, out: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin(out);
        message(out);
        self.end(out, start);
    }

    /// Begins a message, whose bytes are what is appended until [`end`](Self::end). Returns where
    /// its frame begins.
    #[inline]
    pub(crate) fn begin(self, out: &mut Vec<u8>) -> usize {
        match self.framing {
            Framing::Native => framing::begin_frame(out),
            Framing::WebSocket(_) => playfield_websocket::begin_frame(out, self.opcode()),
        }
    }

    /// Ends the message whose frame begins at `start`.
    #[inline]
    pub(crate) fn end(self, out: &mut Vec<u8>, start: usize) {
        match self.framing {
            Framing::Native => framing::end_frame(out, start),
            Framing::WebSocket(deflated) => self.end_websocket(out, start, deflated),
        }
    }

    #[inline(never)]
    fn end_websocket(self, out: &mut Vec<u8>, start: usize, deflated: Option<Deflated>) {
        let bytes = playfield_websocket::end_frame(out, self.opcode(), start);
        if let Some(deflated) = deflated {
            deflated.compress_long(out, self.opcode(), start, bytes);
        }
    }

    fn opcode(self) -> Opcode {
        if self.format.is_text() { Opcode::Text } else { Opcode::Binary }
    }
}

#[cfg(test)]
mod tests {
    use super::{Opening, opening};

    #[test]
    fn the_first_bytes_decide() {
        for (bytes, expected) in [
            (&b""[..], Opening::Partial),
            (b"P", Opening::Partial),
            (b"PF1", Opening::Partial),
            (b"PF1\n", Opening::Native),
            (b"PF1\nmore", Opening::Native),
            (b"PF2", Opening::Alien),
            (b"GE", Opening::Partial),
            (b"GET /", Opening::Http),
            (b"HEAD", Opening::Partial),
            (b"HEAD /", Opening::Http),
            (b"P", Opening::Partial),
            (b"PO", Opening::Partial),
            (b"POST /", Opening::Http),
            (b"PATCH /", Opening::Http),
            (b"PET /", Opening::Alien),
            (b"get /", Opening::Alien),
            (b"\x16\x03\x01", Opening::Alien),
            (b"\r", Opening::Partial),
            (b"\r\n", Opening::Partial),
            (b"\r\nGE", Opening::Partial),
            (b"\r\nGET /", Opening::Http),
            (b"\r\n\r\n\r\n\r\n", Opening::Partial),
            (b"\r\n\r\n\r\n\r\nGET /", Opening::Http),
            (b"\r\n\r\n\r\n\r\n\r", Opening::Alien),
            (b"\r\n\r\n\r\n\r\n\r\nGET /", Opening::Alien),
            (b"\nGET /", Opening::Alien),
            (b"\r\nPF1\n", Opening::Alien),
            (b"\0", Opening::Alien),
        ] {
            assert_eq!(opening(bytes), expected, "{bytes:?}");
        }
    }
}
