//! Both directions of a transport: splits input into messages, and frames output.

use playfield_websocket::handshake::{ClientHandshake, HandshakeError, HeadLimits, Response};
use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Item, Limits, Opcode, Role, encode, encode_close,
    encode_with,
};
use playfield_wire::framing::{Framing, HEADER_BYTES, PREAMBLE, write_frame_with};

use super::{ClientError, Masks, Transport};

/// An empty output buffer with more capacity than this is freed.
const IDLE_OUTPUT_BYTES_MAX: usize = 4 << 10;

/// Shorter messages are not compressed, as in the node's default settings.
const DEFLATE_BYTES_MIN: usize = 256;

/// Both directions in their initial state.
pub(super) fn open(
    transport: Transport,
    deflate: bool,
    message_bytes_max: usize,
) -> Result<(Inbound, Outbound), HandshakeError> {
    match transport {
        Transport::Native => {
            let inbound = Inbound::Native(Framing { message_bytes_max });
            Ok((inbound, Outbound { ready: PREAMBLE.to_vec(), held: None, frames: Frames::Native }))
        }
        Transport::WebSocket { host, target, key, masks } => {
            let mut handshake = ClientHandshake::new(&host, &target, key, &[], &[])?;
            if deflate {
                handshake = handshake.with_deflate(Deflate::default());
            }
            let frames = Frames::WebSocket { masks, deflater: None, closed: false };
            // Nothing may be sent until the request is answered (RFC 6455, 4.1).
            let outbound =
                Outbound { ready: handshake.request().to_vec(), held: Some(Vec::new()), frames };
            Ok((Inbound::Handshake { handshake: Box::new(handshake), message_bytes_max }, outbound))
        }
    }
}

/// Splits input into pieces.
#[derive(Debug)]
pub(super) enum Inbound {
    Native(Framing),
    Handshake { handshake: Box<ClientHandshake>, message_bytes_max: usize },
    WebSocket(Decoder),
}

/// The first piece of the input.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// A message of the protocol.
    Message(&'a [u8]),
    /// A WebSocket ping, to answer with [`Outbound::pong`].
    Ping(&'a [u8]),
    /// A WebSocket pong, or a fragment of a message: the node is alive.
    Alive,
    /// The WebSocket handshake is done, with the compression agreed on: call
    /// [`Outbound::release`].
    Upgraded(Option<Deflate>),
    /// A WebSocket close frame, with its code.
    Close(Option<u16>),
}

impl Inbound {
    /// The first piece of `input`, and its length in bytes. `None` if more bytes are needed.
    #[inline]
    pub(super) fn next<'a>(
        &'a mut self,
        input: &'a mut [u8],
    ) -> Result<Option<(usize, Piece<'a>)>, ClientError> {
        match self {
            Self::Native(framing) => {
                let frame = framing.decode(input).map_err(ClientError::Frame)?;
                Ok(frame.map(|frame| (frame.consumed, Piece::Message(frame.body))))
            }
            Self::WebSocket(decoder) => {
                let decoded = decoder.decode(input).map_err(ClientError::WebSocket)?;
                if decoded.consumed == 0 {
                    return Ok(None);
                }
                let piece = match decoded.item {
                    Some(Item::Binary(body)) => Piece::Message(body),
                    Some(Item::Text(_)) => return Err(ClientError::Text),
                    Some(Item::Ping(payload)) => Piece::Ping(payload),
                    Some(Item::Pong(_)) | None => Piece::Alive,
                    Some(Item::Close(close)) => Piece::Close(close.map(|close| close.code)),
                };
                Ok(Some((decoded.consumed, piece)))
            }
            Self::Handshake { handshake, message_bytes_max } => {
                let response = handshake.parse_response(input, &HeadLimits::default());
                match response.map_err(ClientError::Handshake)? {
                    Response::Partial => Ok(None),
                    Response::Complete { head_bytes, deflate, .. } => {
                        let limits =
                            Limits { message_bytes_max: *message_bytes_max, ..Limits::default() };
                        *self = Self::WebSocket(match &deflate {
                            Some(agreed) => Decoder::with_deflate(Role::Client, limits, agreed),
                            None => Decoder::new(Role::Client, limits),
                        });
                        Ok(Some((head_bytes, Piece::Upgraded(deflate))))
                    }
                }
            }
        }
    }

    /// The last message, which was reassembled from its fragments or decompressed.
    pub(super) fn held_message(&self) -> &[u8] {
        match self {
            Self::WebSocket(decoder) => decoder.held_message().unwrap_or_default(),
            Self::Native(_) | Self::Handshake { .. } => &[],
        }
    }
}

/// Bytes to send.
#[derive(Debug)]
pub(super) struct Outbound {
    ready: Vec<u8>,
    /// Frames that wait for the WebSocket handshake.
    held: Option<Vec<u8>>,
    frames: Frames,
}

#[derive(Debug)]
enum Frames {
    Native,
    WebSocket {
        masks: Masks,
        /// Compresses long messages, if the node agreed.
        deflater: Option<Deflater>,
        /// The close frame, which is the last, was written.
        closed: bool,
    },
}

impl Outbound {
    /// Appends a message. One longer than `bytes_max` is removed again, and its length is the
    /// error.
    #[inline]
    pub(super) fn message(
        &mut self,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let out = self.held.as_mut().unwrap_or(&mut self.ready);
        let start = out.len();
        let bytes = match &mut self.frames {
            Frames::Native => {
                write_frame_with(out, write);
                out.len() - start - HEADER_BYTES
            }
            Frames::WebSocket { masks, deflater: Some(deflater), closed: false } => {
                let mut body = Vec::new();
                write(&mut body);
                if body.len() <= bytes_max {
                    deflater.encode(out, Opcode::Binary, &body, Some(masks.draw()));
                }
                body.len()
            }
            Frames::WebSocket { masks, deflater: None, closed: false } => {
                encode_with(out, Opcode::Binary, Some(masks.draw()), |out| {
                    let body = out.len();
                    write(out);
                    out.len() - body
                })
            }
            Frames::WebSocket { closed: true, .. } => 0,
        };
        if bytes <= bytes_max {
            return Ok(());
        }
        out.truncate(start);
        Err(bytes)
    }

    /// Answers a WebSocket ping.
    pub(super) fn pong(&mut self, payload: &[u8]) {
        if let Frames::WebSocket { masks, closed: false, .. } = &mut self.frames {
            encode(&mut self.ready, Opcode::Pong, payload, Some(masks.draw()));
        }
    }

    /// Sends the WebSocket close frame; native framing has none. Before the handshake there is
    /// nothing to close.
    pub(super) fn close(&mut self, code: u16) {
        if self.held.take().is_some() {
            return;
        }
        if let Frames::WebSocket { masks, closed, .. } = &mut self.frames
            && !std::mem::replace(closed, true)
        {
            encode_close(&mut self.ready, code, "", Some(masks.draw()));
        }
    }

    /// The handshake is done: sends the held frames, and compresses later ones if that was agreed
    /// on.
    pub(super) fn release(&mut self, agreed: Option<&Deflate>) {
        if let Frames::WebSocket { deflater, .. } = &mut self.frames {
            let options = DeflaterOptions {
                message_bytes_min: DEFLATE_BYTES_MIN,
                ..DeflaterOptions::default()
            };
            *deflater = agreed.map(|agreed| Deflater::new(Role::Client, agreed, options));
        }
        if let Some(held) = self.held.take() {
            self.ready.extend_from_slice(&held);
        }
    }

    /// Returns the number of bytes that wait to be taken, or for the handshake.
    pub(super) fn bytes(&self) -> usize {
        self.ready.len() + self.held.as_ref().map_or(0, Vec::len)
    }

    /// Appends what can be sent to `out`.
    #[inline]
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.ready);
        if self.ready.capacity() > IDLE_OUTPUT_BYTES_MAX {
            self.ready = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFLATE_BYTES_MIN, IDLE_OUTPUT_BYTES_MAX, Outbound, open};
    use crate::session::{Masks, Transport};
    use playfield_websocket::Deflate;

    fn outbound(transport: Transport) -> Outbound {
        agreed(transport, None)
    }

    fn agreed(transport: Transport, deflate: Option<&Deflate>) -> Outbound {
        let (_, mut outbound) = open(transport, deflate.is_some(), 100).unwrap();
        outbound.release(deflate);
        outbound.take(&mut Vec::new());
        outbound
    }

    fn web_socket() -> Transport {
        let (host, target) = ("here".to_owned(), "/".to_owned());
        Transport::WebSocket { host, target, key: [0; 16], masks: Masks::seeded([0; 16]) }
    }

    #[test]
    fn a_message_past_the_limit_is_removed() {
        let compressing = agreed(web_socket(), Some(&Deflate::default()));
        for mut outbound in [outbound(Transport::Native), outbound(web_socket()), compressing] {
            assert_eq!(outbound.message(3, |out| out.extend_from_slice(b"four")), Err(4));
            assert_eq!(outbound.bytes(), 0);
            assert_eq!(outbound.message(3, |out| out.extend_from_slice(b"3ee")), Ok(()));
            assert!(outbound.bytes() > 3);
        }
    }

    #[test]
    fn long_messages_are_compressed_once_agreed() {
        for (deflate, expected) in [(None, [0x82, 0x82]), (Some(&Deflate::default()), [0x82, 0xC2])]
        {
            let mut outbound = agreed(web_socket(), deflate);
            let mut firsts = Vec::new();
            for bytes in [DEFLATE_BYTES_MIN - 1, DEFLATE_BYTES_MIN] {
                outbound.message(1000, |out| out.extend_from_slice(&vec![7; bytes])).unwrap();
                let mut out = Vec::new();
                outbound.take(&mut out);
                firsts.push(out[0]);
            }
            assert_eq!(firsts, expected);
        }
    }

    #[test]
    fn nothing_follows_the_close_frame() {
        let mut outbound = outbound(web_socket());
        outbound.close(1000);
        let bytes = outbound.bytes();
        outbound.close(1000);
        outbound.pong(b"late");
        outbound.message(9, |out| out.push(1)).unwrap();
        assert_eq!(outbound.bytes(), bytes);
    }

    #[test]
    fn a_large_buffer_is_freed() {
        let mut outbound = outbound(Transport::Native);
        let body = vec![7; IDLE_OUTPUT_BYTES_MAX];
        outbound.message(usize::MAX, |out| out.extend_from_slice(&body)).unwrap();
        outbound.take(&mut Vec::new());
        assert_eq!(outbound.ready.capacity(), 0);
    }
}
