//! One client's socket, and splitting its input into messages.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use mio::net::TcpStream;
use playfield_websocket::handshake::{ClientHandshake, HeadLimits, Response};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use socket2::{Domain, Protocol, Type};

use crate::rooms::Transport;
use crate::tls::end::{End, Settings};

/// The number of connections per source address: well below the number of ephemeral ports.
const CONNECTIONS_A_SOURCE: usize = 12_000;

/// The longest accepted message.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// A fixed masking key is enough: only this program's own server reads the frames.
const MASK: [u8; 4] = [0x5a, 0xc3, 0x17, 0x88];

/// A connection to the server.
pub(super) struct Socket {
    pub(super) stream: TcpStream,
    /// The start of an incomplete message.
    partial: Vec<u8>,
    /// Bytes that the socket has not accepted yet.
    unsent: Vec<u8>,
    tls: Option<End>,
}

/// Splits received bytes into messages.
pub(super) enum Cutter {
    /// The response to the WebSocket upgrade comes first.
    Handshake(Box<ClientHandshake>),
    WebSocket(Decoder),
    Native(Framing),
}

/// A piece of the input.
pub(super) enum Piece<'a> {
    /// The connection is open.
    Opened,
    Message(&'a [u8]),
    /// A ping. Answer it with the same payload.
    Ping(&'a [u8]),
    /// Anything that does not matter here.
    Other,
    Closed,
}

impl Socket {
    /// Starts connection number `number`.
    pub(super) fn connect(
        to: SocketAddr,
        number: usize,
        tls: Option<&Settings>,
    ) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let source = number / CONNECTIONS_A_SOURCE;
        if source > 0 {
            let address = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + source as u32);
            socket.bind(&SocketAddr::from((address, 0)).into())?;
        }
        match socket.connect(&to.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                Err(error)
            }
            _ => Ok(Self {
                stream: TcpStream::from_std(socket.into()),
                partial: Vec::new(),
                unsent: Vec::new(),
                tls: tls.map(End::new).transpose()?,
            }),
        }
    }

    /// Reads into `buffer`, after the bytes left over from the previous read. Returns how much of
    /// the buffer is filled and whether there may be more; `None` at the end of the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        let kept = self.partial.len();
        buffer[..kept].copy_from_slice(&self.partial);
        if self.tls.is_some() {
            return self.read_tls(buffer, kept);
        }
        match self.stream.read(&mut buffer[kept..]) {
            Ok(0) => Ok(None),
            Ok(read) => {
                self.partial.clear();
                // A read that did not fill the buffer has drained the socket; an event reports new
                // data.
                Ok(Some((kept + read, kept + read == buffer.len())))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Some((0, false))),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some((0, true))),
            Err(error) => Err(error),
        }
    }

    /// As [`read`](Self::read), behind so many bytes.
    fn read_tls(&mut self, buffer: &mut [u8], kept: usize) -> io::Result<Option<(usize, bool)>> {
        let mut plaintext = Vec::new();
        let more = match self.stream.read(&mut buffer[kept..]) {
            Ok(0) => return Ok(None),
            Ok(read) => {
                let raw = &buffer[kept..kept + read];
                if let Some(tls) = &mut self.tls {
                    tls.open(raw, &mut plaintext)?;
                }
                kept + read == buffer.len()
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some((0, false))),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Some((0, true))),
            Err(error) => return Err(error),
        };
        // Answers to the handshake, and what waited for its end.
        self.write(&[])?;
        if plaintext.is_empty() {
            return Ok(Some((0, more)));
        }
        // A record that was cut by the read before may make it longer than what was read.
        let end = kept + plaintext.len();
        let Some(space) = buffer.get_mut(kept..end) else {
            return Err(io::Error::other("more came than the buffer holds"));
        };
        space.copy_from_slice(&plaintext);
        self.partial.clear();
        Ok(Some((end, more)))
    }

    /// Keeps the start of a message until the rest arrives.
    pub(super) fn keep(&mut self, rest: &[u8]) {
        self.partial.extend_from_slice(rest);
        if self.partial.is_empty() {
            self.partial = Vec::new();
        }
    }

    /// Writes now, or when the socket becomes writable.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.seal(bytes, &mut self.unsent)?,
            None => self.unsent.extend_from_slice(bytes),
        }
        self.flush()
    }

    /// Writes the remaining bytes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Cutter {
    /// Creates the cutter of a new connection, and the first bytes to write.
    pub(super) fn open(
        transport: Transport,
        to: SocketAddr,
        number: usize,
    ) -> io::Result<(Self, Vec<u8>)> {
        if !transport.is_web_socket() {
            let framing = Framing { message_bytes_max: MESSAGE_BYTES_MAX };
            return Ok((Self::Native(framing), PREAMBLE.to_vec()));
        }
        let key = (number as u128).to_le_bytes();
        let handshake =
            ClientHandshake::new(&to.to_string(), "/", key, &[], &[]).map_err(io::Error::other)?;
        let request = handshake.request().to_vec();
        Ok((Self::Handshake(Box::new(handshake)), request))
    }

    /// Splits one piece off the front of `input` and returns how many bytes it took; `None` until
    /// more have arrived.
    pub(super) fn cut<'a>(
        &'a mut self,
        input: &'a mut [u8],
    ) -> Result<Option<(usize, Piece<'a>)>, String> {
        match self {
            Self::Handshake(handshake) => {
                let answer = handshake.parse_response(input, &HeadLimits::default());
                match answer.map_err(|error| error.to_string())? {
                    Response::Partial => Ok(None),
                    Response::Complete { head_bytes, .. } => {
                        *self = Self::WebSocket(Decoder::new(
                            Role::Client,
                            Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() },
                        ));
                        Ok(Some((head_bytes, Piece::Opened)))
                    }
                }
            }
            Self::WebSocket(decoder) => {
                let decoded = decoder.decode(input).map_err(|error| error.to_string())?;
                let piece = match decoded.item {
                    Some(Item::Binary(message)) => Piece::Message(message),
                    Some(Item::Ping(payload)) => Piece::Ping(payload),
                    Some(Item::Close(_)) => Piece::Closed,
                    Some(Item::Text(_) | Item::Pong(_)) => Piece::Other,
                    None if decoded.consumed == 0 => return Ok(None),
                    None => Piece::Other,
                };
                Ok(Some((decoded.consumed, piece)))
            }
            Self::Native(framing) => {
                let frame = framing.decode(input).map_err(|error| error.to_string())?;
                Ok(frame.map(|frame| (frame.consumed, Piece::Message(frame.body))))
            }
        }
    }
}

/// Appends a message in the transport's framing.
pub(super) fn put_message(transport: Transport, out: &mut Vec<u8>, message: &[u8]) {
    if transport.is_web_socket() {
        encode(out, Opcode::Binary, message, Some(MASK));
    } else {
        write_frame(out, message);
    }
}

/// Appends the answer to a WebSocket ping.
pub(super) fn put_pong(out: &mut Vec<u8>, payload: &[u8]) {
    encode(out, Opcode::Pong, payload, Some(MASK));
}
