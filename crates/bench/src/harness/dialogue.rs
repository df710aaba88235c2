//! Messages of clients and servers as bytes, in native framing or as WebSocket messages.

use std::io;

use playfield_websocket::Opcode;
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber};

use super::fleet::wrong;
use super::options::names;

names! {
    /// The transport of clients.
    Transport {
        /// Native framing over TCP.
        Tcp = "tcp",
        WebSocket = "ws",
    }
}

/// The format of all messages.
pub(crate) const FORMAT: Format = Format::Packed;
/// A mask as any other; the node has to unmask.
pub(crate) const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
/// The key of the upgrade, and the answer that it requires (RFC 6455, 1.3).
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The framing of messages.
#[derive(Clone, Copy)]
pub(crate) struct Dialogue {
    transport: Transport,
}

/// The front of what was read.
pub(crate) enum Frame<'a> {
    /// The answer to the request for a WebSocket.
    Upgraded,
    Message(&'a [u8]),
    /// A ping of WebSocket.
    Ping(&'a [u8]),
}

impl Dialogue {
    pub(crate) const fn new(transport: Transport) -> Self {
        Self { transport }
    }

    pub(crate) fn transport(self) -> Transport {
        self.transport
    }

    /// The first bytes of a client. On TCP its hello is among them.
    pub(crate) fn opening(self, is_resumable: bool) -> Vec<u8> {
        self.opening_at("/", is_resumable)
    }

    /// Same as [`opening`](Self::opening), with the path of a WebSocket.
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

    /// The answer to a frame that is no message: the hello after an upgrade, or the pong to a ping.
    pub(crate) fn reply(self, frame: &Frame<'_>, is_resumable: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match frame {
            Frame::Upgraded => self.hello(&mut out, is_resumable),
            Frame::Ping(payload) => {
                playfield_websocket::encode(&mut out, Opcode::Pong, payload, Some(MASK));
            }
            Frame::Message(_) => {}
        }
        out
    }

    pub(crate) fn pong(self, nonce: u64) -> Vec<u8> {
        self.framed(&ClientMessage::Pong(client::Pong { nonce }))
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

    /// The frame at the front, and its length; `None` if it is incomplete.
    pub(crate) fn frame(self, input: &[u8]) -> io::Result<Option<(Frame<'_>, usize)>> {
        match self.transport {
            Transport::Tcp => {
                let framing = Framing { message_bytes_max: 16 << 20 };
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
                // All that is sent here is in one frame, and not masked.
                let (header, length) = match *input {
                    [0x82 | 0x89, length @ 0..=125, ..] => (2, u64::from(length)),
                    [0x82, 126, a, b, ..] => (4, u64::from(u16::from_be_bytes([a, b]))),
                    [0x82, 127, a, b, c, d, e, f, g, h, ..] => {
                        (10, u64::from_be_bytes([a, b, c, d, e, f, g, h]))
                    }
                    [] | [_] | [0x82, 126 | 127, ..] => return Ok(None),
                    [0x88, ..] => {
                        let text = "the server closed the WebSocket";
                        return Err(io::Error::new(io::ErrorKind::ConnectionAborted, text));
                    }
                    _ => return Err(wrong(&format!("not a whole message: {:?}", &input[..2]))),
                };
                let end = header + usize::try_from(length).map_err(io::Error::other)?;
                let Some(body) = input.get(header..end) else { return Ok(None) };
                let is_ping = input[0] == 0x89;
                Ok(Some((if is_ping { Frame::Ping(body) } else { Frame::Message(body) }, end)))
            }
        }
    }

    /// Handles all complete frames. Returns how many bytes they take.
    #[inline]
    pub(crate) fn each(
        self,
        input: &[u8],
        mut handle: impl FnMut(Frame<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let mut handled = 0;
        while handled < input.len()
            && let Some((frame, consumed)) = self.frame(&input[handled..])?
        {
            handle(frame)?;
            handled += consumed;
        }
        Ok(handled)
    }

    /// A message of the server in its frame.
    pub(crate) fn answer_of(self, message: &ServerMessage<'_>) -> Vec<u8> {
        let (mut out, mut body) = (Vec::new(), Vec::new());
        message.encode(FORMAT, &mut body);
        self.answer(&mut out, &body);
        out
    }

    /// A message of the client in its frame.
    pub(crate) fn framed(self, message: &ClientMessage<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.say(&mut out, message);
        out
    }
}

/// The first bytes of a connection in native framing.
pub(crate) fn opening(hello: &Hello<'_>) -> Vec<u8> {
    let mut out = PREAMBLE.to_vec();
    Dialogue::new(Transport::Tcp).say(&mut out, &ClientMessage::Hello(hello.clone()));
    out
}

/// The request to find or create a room of a type, in a session's first message.
pub(crate) fn join_or_create(room_type: &str) -> ClientMessage<'_> {
    ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: room_type.into(),
        key: None,
        options: &[],
    })
}

/// The answer to the request for a WebSocket.
pub(crate) fn upgraded() -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    )
    .into_bytes()
}

/// A length as it stands before a field of bytes.
pub(crate) fn varint(mut length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while length > 127 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out
}
