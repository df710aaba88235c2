//! The bytes that clients send repeatedly, and the bytes expected back.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::{Class, Mode, Options};
use crate::harness::dialogue::{Dialogue, Transport, varint};

/// The number of each client's room.
pub(super) const ROOM: RoomNumber = RoomNumber(1);
/// About how many bytes of frames differ: they stay in the processor's cache.
const CYCLE_BYTES: usize = 32 << 10;
/// The most frames that differ: the numbers of their requests all take two bytes.
const FRAMES_MAX: usize = 1_021;
const FIRST_REQUEST: usize = 128;

/// Frames of one length, each different from the others.
pub(super) struct Cycle {
    /// All of them, twice: there is as much as all of them from any place on.
    twice: Vec<u8>,
    pub(super) frame_bytes: usize,
}

impl Cycle {
    fn of(frames: &[Vec<u8>]) -> Self {
        Self { frame_bytes: frames[0].len(), twice: frames.concat().repeat(2) }
    }

    /// The bytes of all frames.
    pub(super) fn bytes(&self) -> usize {
        self.twice.len() / 2
    }

    /// At most so many bytes, from this place on.
    pub(super) fn at(&self, place: usize, bytes: usize) -> &[u8] {
        &self.twice[place..][..bytes.min(self.bytes())]
    }

    /// The place that follows.
    pub(super) fn after(&self, place: usize, bytes: usize) -> usize {
        (place + bytes) % self.bytes()
    }

    /// Returns the length of the part of `input`, which begins at this place, that is as it should
    /// be: in full, or in whole frames.
    pub(super) fn agrees(&self, place: usize, input: &[u8]) -> usize {
        let mut agreed = 0;
        while agreed < input.len() {
            let expected = self.at(self.after(place, agreed), input.len() - agreed);
            let found = &input[agreed..][..expected.len()];
            if found != expected {
                let frames = found.chunks(self.frame_bytes).zip(expected.chunks(self.frame_bytes));
                return agreed + self.frame_bytes * frames.take_while(|(a, b)| a == b).count();
            }
            agreed += expected.len();
        }
        agreed
    }
}

/// The way to compare what comes back.
pub(super) enum Replies {
    /// Exactly these bytes, and nothing else.
    Stream(Cycle),
    /// Between these frames other messages may come.
    Frames(Cycle),
    /// Events with these payloads, numbered in sequence.
    Events(Vec<Vec<u8>>),
}

/// All that clients of a case send and get.
pub(super) struct Traffic {
    pub(super) sent: Cycle,
    pub(super) replies: Replies,
}

impl Traffic {
    /// For clients of the node.
    pub(super) fn new(options: &Options) -> Self {
        let dialogue = Dialogue::new(options.transport);
        match options.class {
            Class::A => Self::raw(dialogue, options),
            Class::B | Class::Room => {
                let sample = room_message(dialogue, options, 0);
                let count = frames(options.window, sample.len());
                let sent: Vec<_> =
                    (0..count).map(|at| room_message(dialogue, options, at)).collect();
                let payloads = (0..count).map(|at| field(options.payload, at));
                let replies = match options.mode {
                    Mode::Send => Replies::Events(payloads.collect()),
                    Mode::Request | Mode::Callback => {
                        let replies: Vec<_> = payloads
                            .enumerate()
                            .map(|(at, payload)| {
                                dialogue.answer_of(&ServerMessage::Reply(server::Reply {
                                    request: number(at),
                                    payload: (&payload).into(),
                                }))
                            })
                            .collect();
                        Replies::Frames(Cycle::of(&replies))
                    }
                };
                Self { sent: Cycle::of(&sent), replies }
            }
        }
    }

    /// For clients of a service that returns its frames; by WebSocket, each is a message.
    fn raw(dialogue: Dialogue, options: &Options) -> Self {
        let Self { sent, replies } = Self::bare(options, options.frame_bytes);
        if options.transport == Transport::Tcp {
            return Self { sent, replies };
        }
        let frames = || sent.at(0, sent.bytes()).chunks(options.frame_bytes);
        let framed = |write: fn(Dialogue, &mut Vec<u8>, &[u8])| -> Vec<Vec<u8>> {
            let frame = |frame| {
                let mut out = Vec::new();
                write(dialogue, &mut out, frame);
                out
            };
            frames().map(frame).collect()
        };
        let [sent, replies] = [framed(Dialogue::message), framed(Dialogue::answer)];
        Self { sent: Cycle::of(&sent), replies: Replies::Stream(Cycle::of(&replies)) }
    }

    /// For clients of a server that returns frames of this many bytes.
    pub(super) fn bare(options: &Options, frame_bytes: usize) -> Self {
        let count = frames(options.window, frame_bytes);
        let frames: Vec<_> = (0..count)
            .map(|at| {
                let body = frame_bytes - super::PREFIX_BYTES;
                [&(body as u32).to_le_bytes()[..], &data(body, at)].concat()
            })
            .collect();
        Self { sent: Cycle::of(&frames), replies: Replies::Stream(Cycle::of(&frames)) }
    }
}

/// Returns the number of frames of this size that differ: more than are under way, so that one that
/// comes twice or in the place of another is noticed.
fn frames(window: usize, frame_bytes: usize) -> usize {
    (CYCLE_BYTES / frame_bytes).min(FRAMES_MAX).max(window + 1)
}

/// The data of a message: as much of its number as has space, and bytes that differ.
pub(super) fn data(bytes: usize, at: usize) -> Vec<u8> {
    let number = (at as u32).to_le_bytes();
    let rest = (number.len()..bytes).map(|byte| (byte * 7 + at * 31) as u8);
    number.into_iter().take(bytes).chain(rest).collect()
}

/// The data as a field of bytes: with its length before it.
fn field(bytes: usize, at: usize) -> Vec<u8> {
    [varint(bytes), data(bytes, at)].concat()
}

fn number(at: usize) -> RequestNumber {
    RequestNumber((FIRST_REQUEST + at) as u32)
}

fn room_message(dialogue: Dialogue, options: &Options, at: usize) -> Vec<u8> {
    let payload = &field(options.payload, at);
    let message = match options.mode {
        Mode::Send => {
            ClientMessage::Send(client::Send { room: ROOM, message: MessageRef::Index(0), payload })
        }
        Mode::Request | Mode::Callback => ClientMessage::Request(client::Request {
            room: ROOM,
            request: number(at),
            message: MessageRef::Index(1),
            payload,
        }),
    };
    dialogue.framed(&message)
}

#[cfg(test)]
mod tests {
    use super::Cycle;

    #[test]
    fn what_agrees_ends_before_the_first_frame_that_differs() {
        let frames: Vec<Vec<u8>> = (0..5).map(|at| vec![at, 10 + at, 20 + at]).collect();
        let cycle = Cycle::of(&frames);
        let mut input = frames.concat().repeat(3)[4..40].to_vec();
        assert_eq!(cycle.agrees(4, &input), 36);
        input[30] += 1;
        assert_eq!(cycle.agrees(4, &input), 30);
        assert_eq!(cycle.after(4, 36), 10);
    }
}
