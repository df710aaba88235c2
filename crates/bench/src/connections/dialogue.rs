//! What a client and the node say to each other, as bytes.

use std::io;

use playfield_websocket::Opcode;
use playfield_wire::Format;
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::{self, ServerMessage};

use super::Transport;

const FORMAT: Format = Format::Packed;
/// A mask as any other; the node has to unmask.
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
/// The key of the upgrade, and the answer that it requires (RFC 6455, 1.3).
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// How messages are framed.
#[derive(Clone, Copy)]
pub(crate) struct Dialogue {
    transport: Transport,
}

/// What is at the front of what was read.
pub(crate) enum Frame<'a> {
    /// The answer to the request for a WebSocket.
    Upgraded,
    Message(&'a [u8]),
}

/// What came from the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Upgraded,
    Welcome { session: u64 },
    Pong { nonce: u64 },
    Ping { nonce: u64 },
}

impl Dialogue {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// The first bytes of a client. On TCP its hello is among them.
    pub(crate) fn opening(self, is_resumable: bool) -> Vec<u8> {
        self.opening_at("/", is_resumable)
    }

    /// As [`opening`](Self::opening), with the path of a WebSocket.
    pub(crate) fn opening_at(self, path: &str, is_resumable: bool) -> Vec<u8> {
        match self.transport {
            Transport::Tcp => {
                let mut out = PREAMBLE.to_vec();
                self.hello(&mut out, is_resumable);
                out
            }
            Transport::WebSocket => format!(
                "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\n\
                 Sec-WebSocket-Version: 13\r\n\r\n"
            )
            .into_bytes(),
        }
    }

    pub(crate) fn hello(self, out: &mut Vec<u8>, is_resumable: bool) {
        let hello = Hello { resumable: is_resumable, ..Hello::new(FORMAT) };
        self.say(out, &ClientMessage::Hello(hello));
    }

    pub(super) fn ping(self, out: &mut Vec<u8>, nonce: u64) {
        self.say(out, &ClientMessage::Ping(client::Ping { nonce }));
    }

    pub(crate) fn pong(self, out: &mut Vec<u8>, nonce: u64) {
        self.say(out, &ClientMessage::Pong(client::Pong { nonce }));
    }

    pub(crate) fn say(self, out: &mut Vec<u8>, message: &ClientMessage<'_>) {
        match self.transport {
            Transport::Tcp => write_frame_with(out, |out| message.encode(FORMAT, out)),
            Transport::WebSocket => {
                let mut body = Vec::new();
                message.encode(FORMAT, &mut body);
                self.message(out, &body);
            }
        }
    }

    /// Frames a message of the client.
    pub(crate) fn message(self, out: &mut Vec<u8>, body: &[u8]) {
        match self.transport {
            Transport::Tcp => write_frame_with(out, |out| out.extend_from_slice(body)),
            Transport::WebSocket => {
                playfield_websocket::encode(out, Opcode::Binary, body, Some(MASK));
            }
        }
    }

    /// Frames a message of the server.
    pub(crate) fn answer(self, out: &mut Vec<u8>, body: &[u8]) {
        match self.transport {
            Transport::Tcp => write_frame_with(out, |out| out.extend_from_slice(body)),
            Transport::WebSocket => {
                playfield_websocket::encode(out, Opcode::Binary, body, None);
            }
        }
    }

    /// What is at the front, and its length; `None` if it is incomplete.
    pub(crate) fn frame(self, input: &[u8]) -> io::Result<Option<(Frame<'_>, usize)>> {
        match self.transport {
            Transport::Tcp => {
                let framing = Framing { message_bytes_max: 1 << 20 };
                let frame = framing.decode(input).map_err(io::Error::other)?;
                Ok(frame.map(|frame| (Frame::Message(frame.body), frame.consumed)))
            }
            Transport::WebSocket if input.starts_with(b"H") => {
                let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") else {
                    return Ok(None);
                };
                let head = String::from_utf8_lossy(&input[..end]);
                if !head.starts_with("HTTP/1.1 101") || !head.contains(ACCEPT) {
                    return Err(wrong(&format!("not upgraded: {head}")));
                }
                Ok(Some((Frame::Upgraded, end + 4)))
            }
            Transport::WebSocket => {
                // All that is sent here is in one frame, not masked, and below 64 KiB.
                let (header, length) = match *input {
                    [0x82, length @ 0..=125, ..] => (2, usize::from(length)),
                    [0x82, 126, high, low, ..] => (4, usize::from(u16::from_be_bytes([high, low]))),
                    [] | [_] | [0x82, 126, ..] => return Ok(None),
                    _ => return Err(wrong(&format!("not a short message: {:?}", &input[..2]))),
                };
                let body = input.get(header..header + length);
                Ok(body.map(|body| (Frame::Message(body), header + length)))
            }
        }
    }

    /// The message at the front, and its length; `None` if it is incomplete.
    pub(super) fn read(self, input: &[u8]) -> io::Result<Option<(Heard, usize)>> {
        let (body, consumed) = match self.frame(input)? {
            Some((Frame::Message(body), consumed)) => (body, consumed),
            Some((Frame::Upgraded, consumed)) => return Ok(Some((Heard::Upgraded, consumed))),
            None => return Ok(None),
        };
        let heard = match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(server::Welcome { session, .. }) => Heard::Welcome { session },
            ServerMessage::Pong(server::Pong { nonce, .. }) => Heard::Pong { nonce },
            ServerMessage::Ping(server::Ping { nonce }) => Heard::Ping { nonce },
            other => return Err(wrong(&format!("unexpected: {other:?}"))),
        };
        Ok(Some((heard, consumed)))
    }

    /// What the baseline sends: answers as long as a node's.
    pub(super) fn answers(self, is_resumable: bool) -> Vec<Vec<u8>> {
        let framed = |message: &ServerMessage<'_>| {
            let (mut out, mut body) = (Vec::new(), Vec::new());
            message.encode(FORMAT, &mut body);
            self.answer(&mut out, &body);
            out
        };
        let token = if is_resumable { vec![0; playfield_session::TOKEN_BYTES] } else { Vec::new() };
        let welcome = framed(&ServerMessage::Welcome(server::Welcome {
            protocol: playfield_wire::PROTOCOL,
            session: u64::MAX >> 8,
            heartbeat_ms: 30_000,
            max_message_bytes: 1 << 20,
            grace_ms: if is_resumable { 10_000 } else { 0 },
            resume: token.into(),
            resumed: None,
        }));
        let pong = framed(&ServerMessage::Pong(server::Pong { nonce: 1 << 40, time_us: 1 << 24 }));
        match self.transport {
            Transport::Tcp => vec![welcome, pong],
            Transport::WebSocket => vec![upgraded(), welcome, pong],
        }
    }
}

/// The answer to the request for a WebSocket.
pub(crate) fn upgraded() -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    )
    .into_bytes()
}

pub(crate) fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
