//! Compressed messages (RFC 7692): what many clients are sent alike is compressed once.

use std::cell::RefCell;

use playfield_websocket::{Deflate, Deflater, DeflaterOptions, Direction, Opcode, Role};

/// The compression of messages to a client: at level 1, which takes a third of the time of level 6
/// (`docs/benchmarks.md`). No message refers to those before it, so that one that was compressed
/// for a client can be read by every other with the same window, and a client costs nothing between
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deflated {
    window_bits: u8,
    /// The longest message that is sent as it is. In three bytes: connections are many.
    plain_bytes_max: [u8; 3],
}

/// The largest number of three bytes, which is the setting's maximum.
const PLAIN_BYTES_MAX: usize = (1 << 24) - 1;
/// The number of messages remembered: a room's players may be of several formats, and each of these
/// is at hand at once.
const MESSAGES_MAX: usize = 4;
/// The longest message that is remembered.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

thread_local! {
    /// Of the thread and not of the shard, since messages are framed where nothing is known but the
    /// dialect.
    static LATELY: RefCell<Lately> = const { RefCell::new(Lately { messages: Vec::new(), oldest: 0 }) };
}

impl Deflated {
    /// Compresses messages of `bytes_min` and more as both ends agreed.
    pub(crate) fn new(agreed: &Deflate, bytes_min: usize) -> Self {
        Self::with_window(agreed.server.window_bits, bytes_min)
    }

    /// Compresses messages of `bytes_min` and more with a window of this size.
    pub(crate) fn with_window(window_bits: u8, bytes_min: usize) -> Self {
        let plain_bytes_max = bytes_min.saturating_sub(1).min(PLAIN_BYTES_MAX) as u32;
        let [low, middle, high, _] = plain_bytes_max.to_le_bytes();
        let plain_bytes_max = [low, middle, high];
        Self { window_bits, plain_bytes_max }
    }

    pub(crate) fn window_bits(self) -> u8 {
        self.window_bits
    }

    fn plain_bytes_max(self) -> usize {
        let [low, middle, high] = self.plain_bytes_max;
        u32::from_le_bytes([low, middle, high, 0]) as usize
    }

    /// Compresses the last frame of `out`, which begins at `start` and holds a message of `bytes`
    /// bytes as it is, unless the message is short. Most are, and stay as they are.
    pub(crate) fn compress_long(
        self,
        out: &mut Vec<u8>,
        opcode: Opcode,
        start: usize,
        bytes: usize,
    ) {
        if bytes > self.plain_bytes_max() {
            let plain_start = out.len() - bytes;
            LATELY.with_borrow_mut(|lately| lately.compress(self, opcode, out, start, plain_start));
        }
    }

    /// Appends a compressed frame, or one that is not if that is shorter.
    fn encode(self, out: &mut Vec<u8>, opcode: Opcode, plain: &[u8]) {
        let server = Direction { context_takeover: false, window_bits: self.window_bits };
        let agreed = Deflate { server, ..Deflate::default() };
        let options = DeflaterOptions { message_bytes_min: 0, ..DeflaterOptions::default() };
        Deflater::new(Role::Server, &agreed, options).encode(out, opcode, plain, None);
    }
}

/// The last messages that were compressed, and what came of it. To compare one with another takes a
/// fiftieth of the time that compressing takes, or less.
struct Lately {
    messages: Vec<Compressed>,
    /// The place of the one that goes next.
    oldest: usize,
}

struct Compressed {
    window_bits: u8,
    opcode: Opcode,
    plain: Vec<u8>,
    frame: Vec<u8>,
}

impl Lately {
    /// Puts a compressed frame in place of the one at the end of `out`, which begins at `start` and
    /// its message at `plain_start`.
    fn compress(
        &mut self,
        how: Deflated,
        opcode: Opcode,
        out: &mut Vec<u8>,
        start: usize,
        plain_start: usize,
    ) {
        let plain = &out[plain_start..];
        if plain.len() > MESSAGE_BYTES_MAX {
            let mut frame = Vec::new();
            how.encode(&mut frame, opcode, plain);
            out.truncate(start);
            return out.extend_from_slice(&frame);
        }
        let known = self.messages.iter().position(|message| {
            (message.window_bits, message.opcode) == (how.window_bits, opcode)
                && message.plain == plain
        });
        let place = known.unwrap_or_else(|| {
            let place = self.place();
            let message = &mut self.messages[place];
            (message.window_bits, message.opcode) = (how.window_bits, opcode);
            message.plain.clear();
            message.plain.extend_from_slice(plain);
            message.frame.clear();
            how.encode(&mut message.frame, opcode, plain);
            place
        });
        out.truncate(start);
        out.extend_from_slice(&self.messages[place].frame);
    }

    /// The place for another message.
    fn place(&mut self) -> usize {
        if self.messages.len() < MESSAGES_MAX {
            let (plain, frame) = (Vec::new(), Vec::new());
            self.messages.push(Compressed { window_bits: 0, opcode: Opcode::Binary, plain, frame });
            return self.messages.len() - 1;
        }
        let place = self.oldest;
        self.oldest = (place + 1) % MESSAGES_MAX;
        place
    }
}

/// Returns the number of messages remembered on this thread.
#[cfg(test)]
pub(in crate::shard) fn remembered() -> usize {
    LATELY.with_borrow(|lately| lately.messages.len())
}

/// Tests may share a thread.
#[cfg(test)]
pub(in crate::shard) fn forget() {
    LATELY.with_borrow_mut(|lately| lately.messages.clear());
}

#[cfg(test)]
mod tests {
    use playfield_websocket::{
        Decoder, Deflate, Direction, Item, Limits, Opcode, Role, begin_frame, end_frame,
    };

    use super::{Deflated, MESSAGE_BYTES_MAX, MESSAGES_MAX, forget, remembered};

    fn deflated(window_bits: u8) -> Deflated {
        let server = Direction { context_takeover: false, window_bits };
        Deflated::new(&Deflate { server, ..Deflate::default() }, 100)
    }

    /// A frame behind others, and that it says what it is to say.
    fn frame(how: Deflated, opcode: Opcode, plain: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        let start = begin_frame(&mut out, opcode);
        out.extend_from_slice(plain);
        let bytes = end_frame(&mut out, opcode, start);
        how.compress_long(&mut out, opcode, start, bytes);
        let frame = out.split_off(6);
        assert_eq!(out, b"before");
        let limits = Limits { message_bytes_max: 1 << 24, ..Limits::default() };
        let mut decoder = Decoder::with_deflate(Role::Client, limits, &Deflate::default());
        let read = match decoder.decode(&mut frame.clone()).unwrap().item {
            Some(Item::Text(text)) if opcode == Opcode::Text => text.as_bytes().to_vec(),
            Some(Item::Binary(bytes)) if opcode == Opcode::Binary => bytes.to_vec(),
            other => panic!("{other:?}"),
        };
        assert!(read == plain);
        frame
    }

    #[test]
    fn what_is_sent_again_is_not_compressed_again() {
        forget();
        let plain = b"the same for all ".repeat(20);
        let first = frame(deflated(15), Opcode::Text, &plain);
        assert!(first.len() < 50 && first[0] == 0xC1);
        assert_eq!(frame(deflated(15), Opcode::Text, &plain), first);
        assert_eq!(remembered(), 1);
        frame(deflated(9), Opcode::Text, &plain);
        frame(deflated(15), Opcode::Binary, &plain);
        frame(deflated(15), Opcode::Text, &plain[1..]);
        assert_eq!(remembered(), 4, "another window, another kind, another message");
        frame(deflated(15), Opcode::Text, &plain);
        assert_eq!(remembered(), 4);
    }

    #[test]
    fn short_messages_go_as_they_are() {
        forget();
        assert_eq!(frame(deflated(15), Opcode::Binary, &[7; 99])[..2], [0x82, 99]);
        assert_eq!(remembered(), 0);
        assert_eq!(frame(deflated(15), Opcode::Binary, &[7; 100])[0], 0xC2);
    }

    #[test]
    fn what_does_not_compress_goes_as_it_is() {
        let plain: Vec<u8> =
            (0..200_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect();
        assert_eq!(frame(deflated(15), Opcode::Binary, &plain)[0], 0x82);
        assert_eq!(
            frame(deflated(8), Opcode::Binary, &[7; 200])[0],
            0x82,
            "there is no compressor for it"
        );
    }

    #[test]
    fn only_so_much_is_remembered() {
        forget();
        frame(deflated(15), Opcode::Binary, &vec![7; MESSAGE_BYTES_MAX + 1]);
        assert_eq!(remembered(), 0);
        for round in 0..3 * MESSAGES_MAX {
            frame(deflated(15), Opcode::Binary, &vec![round as u8; MESSAGE_BYTES_MAX]);
        }
        assert_eq!(remembered(), MESSAGES_MAX);
    }
}
