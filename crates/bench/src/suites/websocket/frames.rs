//! Masked frames from a client, read in place.

use std::hint::black_box;

use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};

use crate::harness::rounds::{Body, Form, Run, run};

/// The number of bytes that a shard reads at once.
const STREAM_BYTES: usize = 256 << 10;

/// The number of payloads before they repeat: not a power of two, so that their positions differ.
const PAYLOADS: usize = 251;

/// The result of one socket read: frames of one size, one after another, each with its own payload
/// and key.
pub(super) struct Stream {
    payload_bytes: usize,
    frame_bytes: usize,
    /// All payloads. That of frame `n` starts at byte `n` modulo [`PAYLOADS`].
    payloads: Vec<u8>,
    wire: Vec<u8>,
    /// The same, uncorrupted.
    sent: Vec<u8>,
}

impl Stream {
    pub(super) fn new(payload_bytes: usize, corrupt_one: bool) -> Self {
        let payloads: Vec<u8> =
            (0..payload_bytes + PAYLOADS).map(|place| (place * 7 + place / 256) as u8).collect();
        let mut stream =
            Self { payload_bytes, frame_bytes: 0, payloads, wire: Vec::new(), sent: Vec::new() };
        let mut frames = 0;
        while frames == 0 || stream.sent.len() + stream.frame_bytes <= STREAM_BYTES {
            let key = (frames as u32 + 1).wrapping_mul(0x9e37_79b9).to_ne_bytes();
            let payload = &stream.payloads[frames % PAYLOADS..][..payload_bytes];
            encode(&mut stream.sent, Opcode::Binary, payload, Some(key));
            frames += 1;
            stream.frame_bytes = stream.sent.len() / frames;
        }
        stream.wire.clone_from(&stream.sent);
        if corrupt_one {
            stream.wire[stream.frame_bytes - 1] ^= 1;
        }
        stream
    }

    fn frames(&self) -> usize {
        self.sent.len() / self.frame_bytes
    }

    fn header_bytes(&self) -> usize {
        self.frame_bytes - self.payload_bytes
    }

    fn payload(&self, frame: usize) -> &[u8] {
        &self.payloads[frame % PAYLOADS..][..self.payload_bytes]
    }

    /// A frame's payload as it was sent, masked.
    fn masked(&self, frame: usize) -> &[u8] {
        &self.sent[frame * self.frame_bytes + self.header_bytes()..][..self.payload_bytes]
    }
}

/// Parses and unmasks frames. Unmasking in place consumes each payload. Instead of copying new
/// frames, which would be measured too, the same frames are read again: that masks them as before,
/// and the next read unmasks them. The output is compared with either form in turn.
pub(super) struct Read(pub(super) Stream);

impl Body for Read {
    fn run(&self, form: Form, times: u64) -> Run {
        let stream = &self.0;
        let mut wire = stream.wire.clone();
        let limits = Limits { message_bytes_max: stream.payload_bytes, ..Limits::default() };
        let mut decoder = Decoder::new(Role::Server, limits);
        let (mut at, mut frame, mut is_unmasked) = (0, 0, true);
        run(times, stream.payload_bytes, |_| {
            let Ok(decoded) = decoder.decode(black_box(&mut wire[at..])) else { return false };
            let Some(Item::Binary(payload)) = decoded.item else { return false };
            let right = match form {
                Form::Same => black_box(payload).len() == stream.payload_bytes,
                Form::Verified if is_unmasked => payload == stream.payload(frame),
                Form::Verified => payload == stream.masked(frame),
            };
            at += decoded.consumed;
            frame += 1;
            if at == wire.len() {
                (at, frame, is_unmasked) = (0, 0, !is_unmasked);
            }
            right
        })
    }

    /// All frames are unmasked, and masked again.
    fn proof(&self) -> u64 {
        2 * self.0.frames() as u64
    }
}

/// The lower bound for any reader that copies: each payload of the stream is copied to the same
/// place.
pub(super) struct Memcpy(pub(super) Stream);

impl Body for Memcpy {
    fn run(&self, form: Form, times: u64) -> Run {
        let stream = &self.0;
        let mut copy = vec![0; stream.payload_bytes];
        let (mut at, mut frame) = (0, 0);
        run(times, stream.payload_bytes, |_| {
            let payload = &stream.wire[at + stream.header_bytes()..at + stream.frame_bytes];
            black_box(&mut copy).copy_from_slice(black_box(payload));
            let right = form == Form::Same || *black_box(&copy) == stream.masked(frame);
            at += stream.frame_bytes;
            frame += 1;
            if at == stream.wire.len() {
                (at, frame) = (0, 0);
            }
            right
        })
    }

    fn proof(&self) -> u64 {
        self.0.frames() as u64
    }
}
