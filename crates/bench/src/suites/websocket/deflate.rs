//! Compressing and decompressing chat messages sent by a node.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Direction, Item, Limits, Opcode, Role,
};

use super::chat::{self, MESSAGE_BYTES};
use crate::harness::allocations;
use crate::harness::rounds::{Body, Form, Run, run};

/// The context that messages are compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// None: each message is independent.
    Fresh,
    /// All earlier messages.
    Kept,
}

/// The number of messages before they repeat: far more than fit in a window.
const MESSAGES: usize = 1_024;

/// The number of messages compressed before they are checked.
const BATCH: usize = 64;

pub(super) fn messages() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| (0..MESSAGES as u64).map(chat::message).collect())
}

pub(super) fn agreed(context: Context) -> Deflate {
    let direction =
        Direction { context_takeover: context == Context::Kept, ..Direction::default() };
    Deflate { server: direction, client: direction }
}

/// Creates an encoder with a compression level from 1, a [`Deflater`]'s default, to 9.
pub(super) fn deflater(context: Context, level: u8) -> Deflater {
    Deflater::new(
        Role::Server,
        &agreed(context),
        DeflaterOptions { level, ..DeflaterOptions::default() },
    )
}

/// Creates a decoder for the output of a [`deflater`].
pub(super) fn decoder(context: Context) -> Decoder {
    Decoder::with_deflate(Role::Client, Limits::default(), &agreed(context))
}

/// The frames of all messages, one after another.
fn compressed(context: Context, level: u8) -> Vec<u8> {
    let (mut out, mut deflater) = (Vec::new(), deflater(context, level));
    messages()
        .iter()
        .for_each(|message| deflater.encode(&mut out, Opcode::Text, message.as_bytes(), None));
    out
}

/// The compressed size relative to the original size, frame headers included.
pub(super) fn compressed_to(context: Context, level: u8) -> f64 {
    compressed(context, level).len() as f64 / (MESSAGES * MESSAGE_BYTES) as f64
}

/// Reads the next frame. Returns its length if it contained this message.
fn read(decoder: &mut Decoder, wire: &mut [u8], expected: &str) -> Option<usize> {
    let decoded = decoder.decode(wire).ok()?;
    (decoded.item == Some(Item::Text(expected))).then_some(decoded.consumed)
}

/// Corrupts the first frame of a stream, in its middle.
fn corrupt(stream: &mut [u8]) {
    stream[MESSAGE_BYTES / 4] ^= 0x10;
}

/// Compresses the messages in turn. After each batch, with the clock stopped, the output is decoded
/// and compared.
pub(super) struct Compress {
    pub(super) context: Context,
    pub(super) level: u8,
    pub(super) corrupt_one: bool,
}

impl Body for Compress {
    fn run(&self, _: Form, times: u64) -> Run {
        let (mut deflater, mut decoder) =
            (deflater(self.context, self.level), decoder(self.context));
        let mut out = Vec::with_capacity(2 * BATCH * MESSAGE_BYTES);
        let (mut took, mut right, mut asked) = (Duration::ZERO, true, Some(0));
        let mut in_turn =
            (0..times).map(|time| messages()[time as usize % MESSAGES].as_str()).peekable();
        let mut batch = Vec::with_capacity(BATCH);
        let mut is_first = true;
        while in_turn.peek().is_some() {
            batch.clear();
            batch.extend(in_turn.by_ref().take(BATCH));
            out.clear();
            let before = allocations::so_far();
            let began = Instant::now();
            for message in &batch {
                deflater.encode(&mut out, Opcode::Text, message.as_bytes(), None);
            }
            took += began.elapsed();
            let allocated =
                allocations::so_far().zip(before).map(|(after, before)| after.count - before.count);
            asked = asked.zip(allocated).map(|(sum, more)| sum + more);
            if self.corrupt_one && std::mem::take(&mut is_first) {
                corrupt(&mut out);
            }
            let mut at = 0;
            right &=
                batch.iter().all(|message| match read(&mut decoder, &mut out[at..], message) {
                    Some(consumed) => {
                        at += consumed;
                        true
                    }
                    None => false,
                });
            right &= at == out.len();
        }
        Run { took, bytes_per_op: MESSAGE_BYTES as u64, right, allocations: asked }
    }
}

/// Decompresses messages and compares each one.
pub(super) struct Inflate {
    context: Context,
    wire: Vec<u8>,
}

impl Inflate {
    pub(super) fn new(context: Context, level: u8, corrupt_one: bool) -> Self {
        let mut wire = compressed(context, level);
        if corrupt_one {
            corrupt(&mut wire);
        }
        Self { context, wire }
    }
}

impl Body for Inflate {
    fn run(&self, _: Form, times: u64) -> Run {
        // Nothing is masked, so nothing is changed in place, and the same frames can be read again.
        // The first message refers to nothing before it, so the frames mean the same when they
        // repeat.
        let mut wire = self.wire.clone();
        let mut decoder = decoder(self.context);
        let (mut at, mut number) = (0, 0);
        run(times, MESSAGE_BYTES, |_| {
            let Some(consumed) = read(&mut decoder, &mut wire[at..], &messages()[number]) else {
                return false;
            };
            at += consumed;
            number += 1;
            if at == wire.len() {
                (at, number) = (0, 0);
            }
            true
        })
    }
}
