//! What a client and the node say to each other, as bytes.

use std::io;

use playfield_websocket::Opcode;
use playfield_wire::Format;
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::ServerMessage;

use super::Transport;

const FORMAT: Format = Format::Packed;
/// A mask as any other; the node has to unmask.
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
/// The key of the upgrade, and the answer that it requires (RFC 6455, 1.3).
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// How messages are framed.
#[derive(Clone, Copy)]
pub(super) struct Dialogue {
    transport: Transport,
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
    pub(super) fn new(transport: Transport) -> Self {
        Self { transport }
    }

    /// The first bytes of a client. On TCP its hello is among them.
    pub(super) fn opening(self, is_resumable: bool) -> Vec<u8> {
        match self.transport {
            Transport::Tcp => {
                let mut out = PREAMBLE.to_vec();
                self.hello(&mut out, is_resumable);
                out
            }
            Transport::WebSocket => format!(
                "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\n\
                 Sec-WebSocket-Version: 13\r\n\r\n"
            )
            .into_bytes(),
        }
    }

    pub(super) fn hello(self, out: &mut Vec<u8>, is_resumable: bool) {
        let hello = Hello { resumable: is_resumable, ..Hello::new(FORMAT) };
        self.say(out, &ClientMessage::Hello(hello));
    }

    pub(super) fn ping(self, out: &mut Vec<u8>, nonce: u64) {
        self.say(out, &ClientMessage::Ping { nonce });
    }

    pub(super) fn pong(self, out: &mut Vec<u8>, nonce: u64) {
        self.say(out, &ClientMessage::Pong { nonce });
    }

    fn say(self, out: &mut Vec<u8>, message: &ClientMessage<'_>) {
        match self.transport {
            Transport::Tcp => write_frame_with(out, |out| message.encode(FORMAT, out)),
            Transport::WebSocket => {
                let mut body = Vec::new();
                message.encode(FORMAT, &mut body);
                playfield_websocket::encode(out, Opcode::Binary, &body, Some(MASK));
            }
        }
    }

    /// The message at the front, and its length; `None` if it is incomplete.
    pub(super) fn read(self, input: &[u8]) -> io::Result<Option<(Heard, usize)>> {
        let (body, consumed) = match self.transport {
            Transport::Tcp => {
                let framing = Framing { message_bytes_max: 1 << 20 };
                match framing.decode(input).map_err(io::Error::other)? {
                    Some(frame) => (frame.body, frame.consumed),
                    None => return Ok(None),
                }
            }
            Transport::WebSocket if input.starts_with(b"H") => {
                let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") else {
                    return Ok(None);
                };
                let head = String::from_utf8_lossy(&input[..end]);
                if !head.starts_with("HTTP/1.1 101") || !head.contains(ACCEPT) {
                    return Err(wrong(&format!("not upgraded: {head}")));
                }
                return Ok(Some((Heard::Upgraded, end + 4)));
            }
            Transport::WebSocket => match input {
                // All that is sent here is short, in one frame, and not masked.
                [0x82, length @ 0..=125, rest @ ..] => match rest.get(..usize::from(*length)) {
                    Some(body) => (body, 2 + body.len()),
                    None => return Ok(None),
                },
                [] | [_] => return Ok(None),
                _ => return Err(wrong(&format!("not a short message: {:?}", &input[..2]))),
            },
        };
        let heard = match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome { session, .. } => Heard::Welcome { session },
            ServerMessage::Pong { nonce, .. } => Heard::Pong { nonce },
            ServerMessage::Ping { nonce } => Heard::Ping { nonce },
            other => return Err(wrong(&format!("unexpected: {other:?}"))),
        };
        Ok(Some((heard, consumed)))
    }

    /// What the baseline sends: answers as long as a node's.
    pub(super) fn answers(self, is_resumable: bool) -> Vec<Vec<u8>> {
        let framed = |message: &ServerMessage<'_>| {
            let mut out = Vec::new();
            match self.transport {
                Transport::Tcp => write_frame_with(&mut out, |out| message.encode(FORMAT, out)),
                Transport::WebSocket => {
                    let mut body = Vec::new();
                    message.encode(FORMAT, &mut body);
                    playfield_websocket::encode(&mut out, Opcode::Binary, &body, None);
                }
            }
            out
        };
        let token = if is_resumable { vec![0; playfield_session::TOKEN_BYTES] } else { Vec::new() };
        let welcome = framed(&ServerMessage::Welcome {
            protocol: playfield_wire::PROTOCOL,
            session: u64::MAX >> 8,
            heartbeat_ms: 30_000,
            max_message_bytes: 1 << 20,
            grace_ms: if is_resumable { 10_000 } else { 0 },
            resume: token.into(),
            resumed: None,
        });
        let pong = framed(&ServerMessage::Pong { nonce: 1 << 40, time_us: 1 << 24 });
        let upgraded = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        );
        match self.transport {
            Transport::Tcp => vec![welcome, pong],
            Transport::WebSocket => vec![upgraded.into_bytes(), welcome, pong],
        }
    }
}

pub(super) fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
