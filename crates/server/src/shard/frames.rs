//! Frames: what a room says to a session of another shard, as bytes that name all they are about.
//!
//! A frame is its length, a tag, the session's connection, the room's number in the session, and
//! what its kind adds. Frames of one shard for another leave in the order in which they were
//! written, in one piece of mail or in several, and that order is the order in which the session's
//! shard does what they say.
//!
//! Both names tell a session or a room from those before it: the key of a connection counts how
//! often its place was given away, and the number of a room is given again only after the room that
//! had it has refused the session. So frames that come late are about nothing, and change nothing.

use std::time::Duration;

use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_text, put_varint};
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};

use crate::shard::allowance::Allowance;
use crate::shard::connection::Kind;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::slab::Key;

/// The session and the room that a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) connection: ConnectionKey,
    /// The room's number in the session.
    pub(crate) room: RoomNumber,
}

/// The content of a frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    /// The room agreed. `joined` follows with its next sync.
    Seated(Seat),
    /// The message `joined`.
    Joined(&'a [u8]),
    /// Another message for the client.
    Message(Kind, &'a [u8]),
    /// A counted message would be here, but was too much to keep.
    Lost,
    /// An act of the member is done.
    Done,
    /// Work for this client alone took so long.
    Took(Duration),
    /// The room holds `after` bytes of events for a player who is entering, instead of `before`.
    Holds { before: usize, after: usize },
    /// The message that brings the copy up to date, for the return of the client with this number;
    /// empty if it is.
    CopyResumed { number: u32, body: &'a [u8] },
    /// The client is given up. `unless_away`: a session that turns out to have no connection goes
    /// on.
    Doom { code: ErrorCode, text: &'a str, unless_away: bool },
    /// The session has left the room. `snapshots` is what is left of its limit, and `answered` the
    /// request to leave that was answered, if there was one.
    Left { snapshots: Allowance, answered: Option<RequestNumber> },
}

const SEATED: u8 = 0;
const JOINED: u8 = 1;
const COUNTED: u8 = 2;
const FLEETING: u8 = 3;
const LOST: u8 = 4;
const DONE: u8 = 5;
const TOOK: u8 = 6;
const HOLDS: u8 = 7;
const COPY_RESUMED: u8 = 8;
const DOOM: u8 = 9;
const LEFT: u8 = 10;

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

impl Frame<'_> {
    /// Appends the frame. `now` is the time of this shard.
    pub(crate) fn put(&self, out: &mut Vec<u8>, stay: Stay, now: Duration) {
        let tag = match self {
            Self::Seated(_) => SEATED,
            Self::Joined(_) => JOINED,
            Self::Message(Kind::Counted(_), _) => COUNTED,
            Self::Message(Kind::Fleeting, _) => FLEETING,
            Self::Lost => LOST,
            Self::Done => DONE,
            Self::Took(_) => TOOK,
            Self::Holds { .. } => HOLDS,
            Self::CopyResumed { .. } => COPY_RESUMED,
            Self::Doom { .. } => DOOM,
            Self::Left { .. } => LEFT,
        };
        put_tagged(out, stay, tag, |out| match *self {
            Self::Lost | Self::Done => {}
            Self::Joined(body) | Self::Message(_, body) => out.extend_from_slice(body),
            Self::Seated(Seat { shard, room, member }) => {
                put_varint(out, u64::from(shard));
                put_varint(out, room.bits());
                put_varint(out, member.bits());
            }
            Self::Took(time) => put_varint(out, time.as_nanos() as u64),
            Self::Holds { before, after } => {
                put_varint(out, before as u64);
                put_varint(out, after as u64);
            }
            Self::CopyResumed { number, body } => {
                put_varint(out, u64::from(number));
                out.extend_from_slice(body);
            }
            Self::Doom { code, text, unless_away } => {
                put_varint(out, u64::from(code.number()));
                put_text(out, text);
                put_bool(out, unless_away);
            }
            Self::Left { snapshots, answered } => {
                snapshots.remaining(now).into_iter().for_each(|left| put_varint(out, left));
                put_varint(out, answered.map_or(0, |request| 1 + u64::from(request.0)));
            }
        });
    }
}

/// Appends a message for the client, which is what `write` appends, or nothing if it answers
/// `false`. The answer is how many bytes the message has.
#[inline]
pub(crate) fn put_message(
    out: &mut Vec<u8>,
    stay: Stay,
    kind: Kind,
    write: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Option<usize> {
    let tag = if kind == Kind::Fleeting { FLEETING } else { COUNTED };
    let start = out.len();
    let bytes = put_tagged(out, stay, tag, |out| {
        let start = out.len();
        write(out).then(|| out.len() - start)
    });
    if bytes.is_none() {
        out.truncate(start);
    }
    bytes
}

#[inline]
fn put_tagged<T>(
    out: &mut Vec<u8>,
    stay: Stay,
    tag: u8,
    write: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(tag);
    put_varint(out, stay.connection.bits());
    put_varint(out, u64::from(stay.room.0));
    let written = write(out);
    // No message has 4 GiB: the limit of what waits for a client is a quarter of that.
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    written
}

/// Takes the next frame off the front; `None` at the end. `now` is the time of this shard.
///
/// # Errors
/// If the bytes are no frame.
pub(crate) fn next<'a>(
    bytes: &mut &'a [u8],
    now: Duration,
) -> Result<Option<(Stay, Frame<'a>)>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(bytes);
    let mut length = [0; LENGTH_BYTES];
    length.copy_from_slice(reader.take(LENGTH_BYTES)?);
    let frame = reader.take(u32::from_le_bytes(length) as usize)?;
    *bytes = reader.rest();

    let mut reader = Reader::new(frame);
    let tag = reader.u8()?;
    let connection = Key::from_bits(reader.varint()?);
    let stay = Stay { connection, room: RoomNumber(reader.varint_u32()?) };
    let frame = content(tag, stay, &mut reader, now)?;
    reader.finish()?;
    Ok(Some((stay, frame)))
}

fn content<'a>(
    tag: u8,
    stay: Stay,
    reader: &mut Reader<'a>,
    now: Duration,
) -> Result<Frame<'a>, DecodeError> {
    Ok(match tag {
        SEATED => Frame::Seated(Seat {
            shard: number(reader)?,
            room: Key::from_bits(reader.varint()?),
            member: Key::from_bits(reader.varint()?),
        }),
        JOINED => Frame::Joined(reader.rest()),
        COUNTED => Frame::Message(Kind::Counted(Some(stay.room)), reader.rest()),
        FLEETING => Frame::Message(Kind::Fleeting, reader.rest()),
        LOST => Frame::Lost,
        DONE => Frame::Done,
        TOOK => Frame::Took(Duration::from_nanos(reader.varint()?)),
        HOLDS => Frame::Holds { before: number(reader)?, after: number(reader)? },
        COPY_RESUMED => Frame::CopyResumed { number: number(reader)?, body: reader.rest() },
        DOOM => {
            let code = ErrorCode::from_number(number(reader)?);
            let code = code.ok_or_else(|| unknown(reader, "error code"))?;
            Frame::Doom { code, text: reader.text()?, unless_away: reader.bool()? }
        }
        LEFT => {
            let snapshots = Allowance::with_remaining([reader.varint()?, reader.varint()?], now);
            let answered = number::<u32>(reader)?.checked_sub(1).map(RequestNumber);
            Frame::Left { snapshots, answered }
        }
        _ => return Err(unknown(reader, "frame")),
    })
}

fn number<T: TryFrom<u64>>(reader: &mut Reader<'_>) -> Result<T, DecodeError> {
    let value = reader.varint()?;
    T::try_from(value).map_err(|_| {
        DecodeError::new(reader.offset(), format!("the number {value} of a frame is too large"))
    })
}

fn unknown(reader: &Reader<'_>, what: &str) -> DecodeError {
    DecodeError::new(reader.offset(), format!("a frame with an unknown {what}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

    use super::{Frame, LENGTH_BYTES, Stay, next, put_message};
    use crate::shard::allowance::{Allowance, Rate};
    use crate::shard::connection::Kind;
    use crate::shard::keys::Seat;
    use crate::shard::slab::Key;

    const NOW: Duration = Duration::from_secs(7);
    const ROOM: RoomNumber = RoomNumber(300);
    const COUNTED: Kind = Kind::Counted(Some(ROOM));

    fn stay(bits: u64) -> Stay {
        Stay { connection: Key::from_bits(bits), room: ROOM }
    }

    fn frames() -> Vec<Frame<'static>> {
        let mut snapshots = Allowance::default();
        snapshots.take(NOW, Rate::per_second("x", 3));
        let (room, member) = (Key::from_bits(1 << 40 | 2), Key::from_bits(u64::MAX));
        let none = Frame::Left { snapshots: Allowance::default(), answered: None };
        vec![
            Frame::Seated(Seat { shard: 500, room, member }),
            Frame::Joined(b"joined"),
            Frame::Message(COUNTED, b"event"),
            Frame::Message(Kind::Fleeting, b"patch"),
            Frame::Lost,
            Frame::Done,
            Frame::Took(Duration::from_nanos(70_000)),
            Frame::Holds { before: 0, after: 1 << 33 },
            Frame::CopyResumed { number: u32::MAX, body: b"" },
            Frame::Doom { code: ErrorCode::TooSlow, text: "too slow", unless_away: true },
            Frame::Left { snapshots, answered: Some(RequestNumber(0)) },
            none,
        ]
    }

    fn put_all() -> Vec<u8> {
        let mut bytes = Vec::new();
        for (bits, frame) in (0..).zip(frames()) {
            frame.put(&mut bytes, stay(bits << 31), NOW);
        }
        bytes
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let (bytes, mut taken) = (put_all(), Vec::new());
        let mut rest = &bytes[..];
        while let Some((of, frame)) = next(&mut rest, NOW).unwrap() {
            assert_eq!(of, stay((taken.len() as u64) << 31));
            taken.push(frame);
        }
        assert_eq!(taken, frames());
    }

    #[test]
    fn a_message_that_is_not_written_leaves_nothing() {
        let mut bytes = put_all();
        let before = bytes.clone();
        for is_written in [false, true] {
            let bytes = put_message(&mut bytes, stay(0), COUNTED, |out| {
                out.extend_from_slice(b"body");
                is_written
            });
            assert_eq!(bytes, is_written.then_some(4));
        }
        let mut last = &bytes[before.len()..];
        let expected = (stay(0), Frame::Message(COUNTED, b"body"));
        assert_eq!(next(&mut last, NOW), Ok(Some(expected)));
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let bytes = put_all();
        let first = LENGTH_BYTES + usize::from(bytes[0]);
        for length in 1..first {
            assert!(next(&mut &bytes[..length], NOW).is_err(), "{length}");
        }
        for tag in 11..=u8::MAX {
            let mut unknown = bytes[..first].to_vec();
            unknown[LENGTH_BYTES] = tag;
            assert!(next(&mut &unknown[..], NOW).is_err(), "{tag}");
        }
        let mut longer = bytes[..first].to_vec();
        longer[0] += 1;
        longer.push(0);
        assert!(next(&mut &longer[..], NOW).is_err());
    }
}
