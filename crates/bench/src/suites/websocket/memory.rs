//! The memory that a connection keeps for compression.

use playfield_websocket::{Decoder, Deflater, Opcode, encode_fragment};

use super::deflate::{Context, decoder, deflater, messages};
use super::rows::Kind;
use crate::harness::allocations;

/// The number of connections that the mean is taken over.
const CONNECTIONS: usize = 64;

/// The number of messages that each connection has transferred when it is idle again.
const CARRIED: usize = 8;

/// The header's length of an unmasked frame of 126 bytes or more (RFC 6455, 5.2), as every message
/// has.
const HEADER_BYTES: usize = 4;

/// The bit in a frame's first byte that marks a compressed message (RFC 7692, 6).
const COMPRESSED: u8 = 0x40;

/// The mean number of bytes that one end of a connection keeps, including the value itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Before the first message.
    pub(super) new_bytes: f64,
    /// Between messages.
    pub(super) idle_bytes: f64,
    /// While a message is arriving: the first half of a compressed one has arrived in its own
    /// frame.
    pub(super) in_use_bytes: f64,
    /// The bytes that a thread keeps for all its connections together.
    pub(super) shared_bytes: f64,
}

/// Measures the memory that a row's end keeps, if allocations are counted. It uses a separate
/// thread, which starts without memory shared by its connections.
pub(super) fn of(kind: Kind) -> Option<Kept> {
    allocations::so_far()?;
    let measure = || match kind {
        Kind::Compress(context, level) => Some(deflaters(context, level)),
        Kind::Inflate(context, level) => Some(decoders(context, level)),
        Kind::Frames(_) | Kind::Memcpy(_) => None,
    };
    messages();
    std::thread::scope(|scope| scope.spawn(measure).join().ok().flatten())
}

fn live_bytes() -> f64 {
    allocations::so_far().map_or(0.0, |allocations| allocations.live_bytes as f64)
}

/// Returns the change of the allocated bytes by `work`, divided by `of`.
fn grown<T>(of: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let before = live_bytes();
    let result = work();
    ((live_bytes() - before) / of as f64, result)
}

fn deflaters(context: Context, level: u8) -> Kept {
    let mut out = Vec::with_capacity(1 << 20);
    let mut talk = |deflater: &mut Deflater| {
        for message in &messages()[..CARRIED] {
            out.clear();
            deflater.encode(&mut out, Opcode::Text, message.as_bytes(), None);
        }
    };
    let (shared_bytes, ()) = grown(1, || talk(&mut deflater(context, level)));
    let (new_bytes, mut all) = grown(CONNECTIONS, || {
        (0..CONNECTIONS).map(|_| deflater(context, level)).collect::<Vec<_>>()
    });
    let (more, ()) = grown(CONNECTIONS, || all.iter_mut().for_each(&mut talk));
    // A message is compressed within one call, which leaves nothing of it behind.
    let idle_bytes = new_bytes + more;
    Kept { new_bytes, idle_bytes, in_use_bytes: idle_bytes, shared_bytes }
}

fn decoders(context: Context, level: u8) -> Kept {
    let mut wire = Vec::with_capacity(1 << 20);
    let mut deflater = deflater(context, level);
    for message in &messages()[..CARRIED] {
        deflater.encode(&mut wire, Opcode::Text, message.as_bytes(), None);
    }
    let mut last = Vec::new();
    deflater.encode(&mut last, Opcode::Text, messages()[CARRIED].as_bytes(), None);
    let mut last = first_half(&last);
    let mut talk = |decoder: &mut Decoder| {
        let mut at = 0;
        // Reads until no input is left: that call releases the last message that was returned.
        while let Ok(decoded) = decoder.decode(&mut wire[at..])
            && decoded.consumed > 0
        {
            at += decoded.consumed;
        }
    };
    let (shared_bytes, ()) = grown(1, || talk(&mut decoder(context)));
    let (new_bytes, mut all) =
        grown(CONNECTIONS, || (0..CONNECTIONS).map(|_| decoder(context)).collect::<Vec<_>>());
    let (more, ()) = grown(CONNECTIONS, || all.iter_mut().for_each(&mut talk));
    let idle_bytes = new_bytes + more;
    let (more, ()) = grown(CONNECTIONS, || {
        for decoder in &mut all {
            let _ = decoder.decode(&mut last);
        }
    });
    Kept { new_bytes, idle_bytes, in_use_bytes: idle_bytes + more, shared_bytes }
}

/// The first half of a compressed frame as a separate frame of an unfinished message.
fn first_half(frame: &[u8]) -> Vec<u8> {
    let payload = &frame[HEADER_BYTES..];
    let mut out = Vec::new();
    encode_fragment(&mut out, Opcode::Text, false, &payload[..payload.len() / 2], None);
    out[0] |= COMPRESSED;
    out
}
