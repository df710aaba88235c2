//! Decodes received bytes into messages.

use crate::{
    Close, CloseFinder, Deflate, Error, Opcode, Role,
    deflate::{Direction, Inflater},
    early::Early,
    encode::encode_fragment,
    frame::{Length, Start},
    mask,
    message::{Compressed, Message},
    utf8::Utf8,
};

/// Limits on what a peer may send to a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest message, in bytes, all fragments included (default 1 MiB). A longer message is
    /// rejected when its frame header arrives, before any of the frame is buffered. A compressed
    /// message is decompressed when its last frame has arrived, and rejected as soon as its
    /// decompressed size exceeds the limit, or what has arrived exceeds twice the limit.
    pub message_bytes_max: usize,
    /// The longest payload of one frame, in bytes (default: bounded only by `message_bytes_max`).
    pub frame_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes_max: 1 << 20, frame_bytes_max: usize::MAX }
    }
}

/// A complete message or control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// A ping. Answer it with a pong that has the same payload (5.5.2).
    Ping(&'a [u8]),
    /// A pong. Unsolicited pongs are allowed (5.5.3).
    Pong(&'a [u8]),
    /// The peer closes the connection. If you have not sent a Close frame yet, answer with one,
    /// usually with the same code.
    Close(Option<Close<'a>>),
}

/// The result of one call to [`Decoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The bytes consumed at the front of the input.
    pub consumed: usize,
    /// The completed item. `None` with bytes consumed means a fragment that is not the last one.
    /// `None` with no bytes consumed means that more input is needed.
    pub item: Option<Item<'a>>,
    /// Whether the item ends its message. `false` only for a fragment that a decoder passes on
    /// ([`Decoder::passing_fragments`]).
    pub fin: bool,
}

/// The reading half of a connection. It enforces every rule of RFC 6455 on received frames and
/// reassembles fragments.
///
/// A decoder owns a buffer only while a fragmented or compressed message is in progress. The next
/// call to [`decode`](Self::decode), even with empty input, releases the buffer of a completed
/// message. After a Close frame or an error, all further input is consumed and ignored.
#[derive(Debug)]
pub struct Decoder {
    /// The fragments so far. After the last fragment, the message that was returned.
    message: Option<Box<Message>>,
    /// The peer's compression of messages, if that was negotiated.
    inflate: Option<Box<Inflate>>,
    /// The text frame at the front of the input, while it is incomplete.
    early: Option<Box<Early>>,
    limits: Limits,
    role: Role,
    phase: Phase,
    /// Each fragment is an item.
    passes_fragments: bool,
}

/// The compression of received messages.
#[derive(Debug)]
struct Inflate {
    direction: Direction,
    /// The context between messages, if it is kept and a compressed message has arrived.
    kept: Option<Box<Inflater>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// `message` was completed and returned by the last call.
    HandedOut,
    /// A Close frame or an error was found.
    Stopped,
}

impl Inflate {
    fn buffered_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |_| Inflater::BYTES)
    }
}

impl Decoder {
    /// Creates a decoder for our `role` on a connection that has completed its handshake.
    pub fn new(role: Role, limits: Limits) -> Self {
        let (message, inflate, early, phase) = (None, None, None, Phase::Open);
        Self { message, inflate, early, limits, role, phase, passes_fragments: false }
    }

    /// Creates a decoder for a connection that negotiated permessage-deflate in its handshake.
    pub fn with_deflate(role: Role, limits: Limits, agreed: &Deflate) -> Self {
        let from = match role {
            Role::Server => Role::Client,
            Role::Client => Role::Server,
        };
        let inflate = Inflate { direction: agreed.sent_by(from), kept: None };
        Self { inflate: Some(Box::new(inflate)), ..Self::new(role, limits) }
    }

    /// Converts this decoder into one that makes an item of each fragment of a message, instead of
    /// one item of them all: [`Item::Text`] or [`Item::Binary`], with [`Decoded::fin`] unset before
    /// the last one. A character that is split between fragments is in the later one. Compressed
    /// fragments are decompressed as they arrive. The limits are still those of the whole message.
    #[must_use]
    pub fn passing_fragments(mut self) -> Self {
        self.passes_fragments = true;
        self
    }

    /// Converts this decoder into one that only looks for a Close frame. Pass it the bytes that
    /// [`decode`](Self::decode) has not consumed, and then all further input.
    pub fn into_close_finder(self) -> CloseFinder {
        CloseFinder::new(self.role, self.inflate.is_some())
    }

    /// Changes [`Limits::message_bytes_max`], from the next frame on.
    pub fn set_message_bytes_max(&mut self, bytes_max: usize) {
        self.limits.message_bytes_max = bytes_max;
    }

    /// Whether fragments of a message have come, and the last one has not.
    pub fn is_unfinished(&self) -> bool {
        self.phase == Phase::Open && self.message.is_some()
    }

    /// Whether a new decoder with the same limits would go on exactly as this one. An owner of many
    /// connections can drop a decoder in this state, and make one when bytes arrive.
    pub fn is_idle(&self) -> bool {
        let Self { message, inflate, early, limits: _, role: _, phase, passes_fragments: _ } = self;
        let keeps_nothing = match phase {
            Phase::Open => message.is_none(),
            Phase::HandedOut => true,
            Phase::Stopped => false,
        };
        keeps_nothing && inflate.is_none() && early.is_none()
    }

    /// Appends the unfinished message, if there is one, as frames by which it could have come so
    /// far. A new decoder with the same limits and compression that reads them goes on exactly as
    /// this one: a connection can move to another process as bytes.
    ///
    /// Returns `false` and appends nothing where frames can't tell the state: within a compressed
    /// message, where messages may refer to earlier ones, where fragments are passed on, and after
    /// a Close frame or an error.
    pub fn encode_unfinished(&self, out: &mut Vec<u8>) -> bool {
        let Self { message, inflate, early: _, limits, role, phase, passes_fragments } = self;
        let takes_over = |inflate: &Inflate| inflate.direction.context_takeover;
        if *phase == Phase::Stopped
            || *passes_fragments
            || inflate.as_deref().is_some_and(takes_over)
        {
            return false;
        }
        let Some(message) = message.as_deref().filter(|_| *phase == Phase::Open) else {
            return true;
        };
        let Some((mut opcode, bytes)) = message.so_far() else { return false };
        let mask = match role {
            Role::Server => Some([0; 4]),
            Role::Client => None,
        };
        let mut rest = bytes.as_slice();
        loop {
            let (frame, after) = rest.split_at(rest.len().min(limits.frame_bytes_max));
            encode_fragment(out, opcode, false, frame, mask);
            if after.is_empty() || frame.is_empty() {
                return true;
            }
            (rest, opcode) = (after, Opcode::Continuation);
        }
    }

    /// Returns the memory that the unfinished message takes, together with what is kept to
    /// decompress messages, in bytes.
    pub fn buffered_bytes(&self) -> usize {
        self.message.as_deref().map_or(0, Message::buffered_bytes)
            + self.inflate.as_deref().map_or(0, Inflate::buffered_bytes)
    }

    /// Decodes the frame at the front of `input`, unmasking it in place.
    ///
    /// Nothing changes until the frame is complete. If more bytes are needed, keep the input and
    /// call again when more has arrived. Otherwise, drop [`Decoded::consumed`] bytes and call again
    /// with the rest.
    ///
    /// # Errors
    ///
    /// The first rule that the frame violates, as soon as enough bytes have arrived to detect it.
    pub fn decode<'a>(&'a mut self, input: &'a mut [u8]) -> Result<Decoded<'a>, Error> {
        match self.phase {
            Phase::Open => {
                if let (true, Some(message)) = (self.passes_fragments, &mut self.message) {
                    message.forget_piece();
                }
            }
            Phase::HandedOut => {
                self.message = None;
                self.phase = Phase::Open;
            }
            Phase::Stopped => {
                return Ok(Decoded { consumed: input.len(), item: None, fin: true });
            }
        }
        let header = self.header(input);
        let Some(header) = self.stop_on_error(header)? else {
            return Ok(Decoded { consumed: 0, item: None, fin: true });
        };
        let consumed = header.frame_bytes;
        if input.len() < consumed {
            let checked = self.check_early(&header, input);
            self.stop_on_error(checked)?;
            return Ok(Decoded { consumed: 0, item: None, fin: true });
        }
        self.early = None;
        let frame = &mut input[..consumed];

        let key = header.length.mask(frame);
        let payload = &mut frame[header.length.header_bytes..];
        if let Some(key) = key {
            mask::apply(payload, key);
        }
        let Start { fin, opcode, rsv1 } = header.start;
        if fin && opcode != Opcode::Continuation && !rsv1 {
            let item = self.stop_on_error(whole(opcode, payload))?;
            if matches!(item, Item::Close(_)) {
                self.stop();
            }
            return Ok(Decoded { consumed, item: Some(item), fin: true });
        }
        let pushed = self.push_fragment(header.start, payload);
        self.stop_on_error(pushed)?;
        if fin {
            self.phase = Phase::HandedOut;
        }
        let is_item = fin || self.passes_fragments;
        let item = self.message.as_deref().filter(|_| is_item).map(Message::item);
        Ok(Decoded { consumed, item, fin })
    }

    /// The message that the last call of [`decode`](Self::decode) returned, if it came in fragments
    /// or compressed. Another message is in the input.
    pub fn held_message(&self) -> Option<&[u8]> {
        if self.phase != Phase::HandedOut {
            return None;
        }
        match self.message.as_deref()?.item() {
            Item::Text(text) => Some(text.as_bytes()),
            Item::Binary(body) => Some(body),
            Item::Ping(_) | Item::Pong(_) | Item::Close(_) => None,
        }
    }

    /// The size in bytes of the frame at the front of `input`, header included, once it is known. A
    /// caller can use it to size a buffer. It is bounded by the [`Limits`] plus 14 bytes of header.
    ///
    /// # Errors
    ///
    /// The errors that [`decode`](Self::decode) returns for the header.
    pub fn frame_bytes(&self, input: &[u8]) -> Result<Option<usize>, Error> {
        match self.phase {
            Phase::Open | Phase::HandedOut => {
                Ok(self.header(input)?.map(|header| header.frame_bytes))
            }
            Phase::Stopped => Ok(None),
        }
    }

    /// Parses and checks the header at the front. Returns `None` while its length is incomplete.
    fn header(&self, input: &[u8]) -> Result<Option<Header>, Error> {
        let Some(&first) = input.first() else { return Ok(None) };
        let start = Start::parse(first, self.inflate.is_some())?;
        let in_progress = match self.phase {
            Phase::Open => self.message.as_deref(),
            Phase::HandedOut | Phase::Stopped => None,
        };
        match (start.opcode, in_progress) {
            (Opcode::Continuation, None) => return Err(Error::ContinuationUnexpected),
            (opcode @ (Opcode::Text | Opcode::Binary), Some(_)) => {
                return Err(Error::ContinuationExpected { opcode });
            }
            (Opcode::Continuation, Some(_))
            | (Opcode::Text | Opcode::Binary, None)
            | (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => {}
        }
        let Some(length) = Length::parse(self.role, start.opcode, input)? else { return Ok(None) };

        let bytes = length.payload_bytes;
        if let Some(error) = self.too_large(start, bytes, in_progress) {
            return Err(error);
        }
        let frame_bytes = usize::try_from(bytes)
            .ok()
            .and_then(|payload_bytes| payload_bytes.checked_add(length.header_bytes))
            .ok_or(Error::FrameTooLarge { bytes, bytes_max: usize::MAX })?;
        Ok(Some(Header { start, length, frame_bytes }))
    }

    /// Checks a data frame against the limits. Control frames are not part of a message; their own
    /// rule bounds them.
    fn too_large(
        &self,
        start: Start,
        payload_bytes: u64,
        in_progress: Option<&Message>,
    ) -> Option<Error> {
        let Limits { message_bytes_max, frame_bytes_max } = self.limits;
        if start.opcode.is_control() {
            return None;
        }
        if payload_bytes > frame_bytes_max as u64 {
            return Some(Error::FrameTooLarge { bytes: payload_bytes, bytes_max: frame_bytes_max });
        }
        // A compressed message's size is checked during decompression. Here its frames only get a
        // coarse limit, since incompressible data grows by 1/5000.
        let is_compressed = start.rsv1 || in_progress.is_some_and(Message::is_compressed);
        let (before, bytes_max) = if is_compressed {
            (0, message_bytes_max.saturating_add(message_bytes_max / 1_000).saturating_add(64))
        } else {
            (in_progress.map_or(0, Message::bytes), message_bytes_max)
        };
        let bytes = payload_bytes.saturating_add(before as u64);
        (bytes > bytes_max as u64)
            .then_some(Error::MessageTooLarge { bytes, bytes_max: message_bytes_max })
    }

    /// Validates the text in an incomplete frame.
    fn check_early(&mut self, header: &Header, input: &[u8]) -> Result<(), Error> {
        let Start { opcode, rsv1, .. } = header.start;
        let before = match opcode {
            Opcode::Text if !rsv1 => Some(Utf8::default()),
            Opcode::Continuation => self.message.as_deref().and_then(Message::text),
            _ => None,
        };
        match (before, input.get(header.length.header_bytes..)) {
            (Some(before), Some(payload)) if !payload.is_empty() => {
                let key = header.length.mask(input);
                self.early.get_or_insert_with(|| Box::new(Early::new(before))).check(payload, key)
            }
            _ => Ok(()),
        }
    }

    fn push_fragment(&mut self, start: Start, payload: &[u8]) -> Result<(), Error> {
        let Self { message, inflate, limits, passes_fragments, .. } = self;
        let message = message.get_or_insert_with(|| {
            let inflate = inflate.as_deref_mut().filter(|_| start.rsv1);
            let compressed =
                inflate.map(|inflate| Compressed::new(inflate.direction, inflate.kept.take()));
            Box::new(Message::new(start.opcode == Opcode::Text, compressed, *passes_fragments))
        });
        if !start.fin {
            return message.push(payload, limits.message_bytes_max);
        }
        let kept = message.finish(payload, limits.message_bytes_max)?;
        if let (Some(inflate), Some(kept)) = (inflate, kept) {
            inflate.kept = Some(kept);
        }
        Ok(())
    }

    fn stop_on_error<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.stop();
        }
        result
    }

    fn stop(&mut self) {
        self.message = None;
        self.inflate = None;
        self.early = None;
        self.phase = Phase::Stopped;
    }
}

/// A checked header.
struct Header {
    start: Start,
    length: Length,
    frame_bytes: usize,
}

/// The item of a single final frame.
fn whole(opcode: Opcode, payload: &[u8]) -> Result<Item<'_>, Error> {
    Ok(match opcode {
        Opcode::Text => Item::Text(std::str::from_utf8(payload).map_err(|_| Error::InvalidText)?),
        Opcode::Binary | Opcode::Continuation => Item::Binary(payload),
        Opcode::Close => Item::Close(Close::parse(payload)?),
        Opcode::Ping => Item::Ping(payload),
        Opcode::Pong => Item::Pong(payload),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_owned_only_while_a_message_is_in_progress() {
        let mut decoder = Decoder::new(Role::Client, Limits::default());
        assert!(decoder.decode(&mut b"\x81\x01a".to_vec()).unwrap().item.is_some());
        assert!(decoder.message.is_none(), "a message in one frame needs no buffer");
        decoder.decode(&mut b"\x01\x01a".to_vec()).unwrap();
        assert!(decoder.message.is_some(), "a fragment is buffered");
        decoder.decode(&mut b"\x80\x01b".to_vec()).unwrap();
        decoder.decode(&mut []).unwrap();
        assert!(decoder.message.is_none(), "the next call releases it, even with empty input");
    }

    /// Messages from `wire`, read in pieces of `size` bytes, each piece by a new decoder.
    fn read_by_many(
        role: Role,
        deflate: Option<&Deflate>,
        wire: &[u8],
        size: usize,
    ) -> Vec<String> {
        let limits = Limits { message_bytes_max: 40, frame_bytes_max: 7 };
        let new = || match deflate {
            Some(deflate) => Decoder::with_deflate(role, limits, deflate),
            None => Decoder::new(role, limits),
        };
        let (mut input, mut items) = (Vec::new(), Vec::new());
        for piece in wire.chunks(size) {
            input.extend_from_slice(piece);
            let mut decoder = new();
            loop {
                let decoded = decoder.decode(&mut input).unwrap();
                let consumed = decoded.consumed;
                items.extend(decoded.item.map(|item| format!("{item:?}")));
                input.drain(..consumed);
                if consumed == 0 {
                    break;
                }
            }
            let mut before = Vec::new();
            assert!(decoder.encode_unfinished(&mut before));
            before.append(&mut input);
            input = before;
        }
        items
    }

    #[test]
    fn a_new_decoder_goes_on_with_an_unfinished_message() {
        let text = "ab€cdé😀";
        for role in [Role::Server, Role::Client] {
            let mask = (role == Role::Server).then_some([1, 2, 3, 4]);
            let mut wire = Vec::new();
            encode_fragment(&mut wire, Opcode::Binary, false, b"", mask);
            encode_fragment(&mut wire, Opcode::Continuation, true, b"xyz", mask);
            let mut opcode = Opcode::Text;
            for piece in text.as_bytes().chunks(2) {
                encode_fragment(&mut wire, opcode, false, piece, mask);
                encode_fragment(&mut wire, Opcode::Ping, true, b"p", mask);
                opcode = Opcode::Continuation;
            }
            encode_fragment(&mut wire, Opcode::Continuation, true, b"", mask);
            let whole = read_by_many(role, None, &wire, wire.len());
            assert_eq!(whole.last(), Some(&format!("{:?}", Item::Text(text))));
            for size in 1..wire.len() {
                assert_eq!(read_by_many(role, None, &wire, size), whole, "{size}");
                let deflate = Some(&Deflate::default());
                assert_eq!(read_by_many(role, deflate, &wire, size), whole, "{size}");
            }
        }
    }

    #[test]
    fn frames_do_not_tell_all_states() {
        let tells = |decoder: &Decoder| decoder.encode_unfinished(&mut Vec::new());
        let limits = Limits::default();
        let keeps = Direction { context_takeover: true, ..Direction::default() };
        let keeps = Deflate { server: keeps, client: keeps };
        assert!(!tells(&Decoder::with_deflate(Role::Client, limits, &keeps)));
        let mut decoder = Decoder::with_deflate(Role::Client, limits, &Deflate::default());
        assert!(tells(&decoder));
        decoder.decode(&mut b"\x41\x01a".to_vec()).unwrap();
        assert!(!tells(&decoder), "a compressed message is under way");
        let mut decoder = Decoder::new(Role::Client, limits);
        decoder.decode(&mut b"\x88\x00".to_vec()).unwrap();
        assert!(!tells(&decoder), "it was closed");
    }

    #[test]
    fn a_decoder_that_stopped_owns_no_buffer() {
        for end in [&b"\x88\x00"[..], b"\xFF", b"\x80\x01\xFF"] {
            let mut decoder = Decoder::new(Role::Client, Limits::default());
            decoder.decode(&mut b"\x01\x01a".to_vec()).unwrap();
            let _ = decoder.decode(&mut end.to_vec());
            assert!(decoder.message.is_none(), "{end:x?}");
        }
    }
}
