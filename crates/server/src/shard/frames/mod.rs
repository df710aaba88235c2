//! Frames: what rooms and sessions of different shards say to each other, as bytes that name all
//! they are about. They hold no reference and no key of anything but the two ends, so that a link
//! to another node can carry them as they are.
//!
//! A frame is its length, a tag, the address of its receiver, and what its kind adds. A session is
//! named by its connection and the room's number in the session, a member by its room and its seat.
//! Frames of one shard for another leave in the order in which they were written, in one piece of
//! mail or in several, between other mail in its order; and the other shard does what they say in
//! that order.
//!
//! Names tell a receiver from those before it: keys count how often their place was given away, and
//! the number of a room is given again only after the room that had it has refused the session. So
//! frames that come late are about nothing, and change nothing. What is asked of a room for one
//! return of a client is answered with the number of that return.

mod to_member;
mod to_session;

use std::time::Duration;

use playfield_wire::reader::Reader;
use playfield_wire::writer::put_varint;
use playfield_wire::{DecodeError, RoomNumber};

use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::member::ToMember;
use crate::shard::slab::Key;

pub(crate) use to_member::put_to_member;
pub(crate) use to_session::{ToSession, put_message};

/// A frame, and its receiver.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    /// For the session of a member.
    Session(Stay, ToSession<'a>),
    /// For a member of a room.
    Member(Seat, ToMember<'a>),
}

/// A session in a room, as its shard knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) connection: ConnectionKey,
    /// The room's number in the session.
    pub(crate) room: RoomNumber,
}

impl Stay {
    fn address(self) -> [u64; 2] {
        [self.connection.bits(), u64::from(self.room.0)]
    }
}

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// Tags from here on are of frames for members.
const MEMBER: u8 = 0x80;

/// Appends a frame with this tag, address and content.
#[inline]
fn put<T>(
    out: &mut Vec<u8>,
    tag: u8,
    address: [u64; 2],
    content: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(tag);
    address.into_iter().for_each(|part| put_varint(out, part));
    let written = content(out);
    // No message has 4 GiB: the limit of what waits for a client is a quarter of that.
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    written
}

/// Takes the next frame off the front; `None` at the end. `shard` is this shard, and `now` its time.
///
/// # Errors
/// If the bytes are no frame.
pub(crate) fn next<'a>(
    bytes: &mut &'a [u8],
    shard: u16,
    now: Duration,
) -> Result<Option<Frame<'a>>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(bytes);
    let mut length = [0; LENGTH_BYTES];
    length.copy_from_slice(reader.take(LENGTH_BYTES)?);
    let frame = reader.take(u32::from_le_bytes(length) as usize)?;
    *bytes = reader.rest();

    let mut reader = Reader::new(frame);
    let (tag, first) = (reader.u8()?, reader.varint()?);
    let frame = if tag < MEMBER {
        let stay =
            Stay { connection: Key::from_bits(first), room: RoomNumber(number(&mut reader)?) };
        Frame::Session(stay, to_session::content(tag, stay, &mut reader, now)?)
    } else {
        let (room, member) = (Key::from_bits(first), Key::from_bits(reader.varint()?));
        Frame::Member(Seat { shard, room, member }, to_member::content(tag, &mut reader)?)
    };
    reader.finish()?;
    Ok(Some(frame))
}

fn number<T: TryFrom<u64>>(reader: &mut Reader<'_>) -> Result<T, DecodeError> {
    let value = reader.varint()?;
    T::try_from(value).map_err(|_| {
        DecodeError::new(reader.offset(), format!("the number {value} of a frame is too large"))
    })
}

/// A number that may be missing: one more than it is, or 0.
fn put_optional(out: &mut Vec<u8>, number: Option<u32>) {
    put_varint(out, number.map_or(0, |number| 1 + u64::from(number)));
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
    let Some(value) = reader.varint()?.checked_sub(1) else { return Ok(None) };
    let too_large = || DecodeError::new(reader.offset(), "a number of a frame is too large");
    u32::try_from(value).map(Some).map_err(|_| too_large())
}

fn unknown(reader: &Reader<'_>, what: &str) -> DecodeError {
    DecodeError::new(reader.offset(), format!("a frame with an unknown {what}"))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::net::IpAddr;
    use std::time::Duration;

    use playfield_room::{EndReason, LeaveReason};
    use playfield_wire::client::ResumeRoom;
    use playfield_wire::message::MessageRef;
    use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

    use super::{Frame, LENGTH_BYTES, Stay, ToSession, next, put_message, put_to_member};
    use crate::addresses::AddressName;
    use crate::config::RateLimit;
    use crate::shard::allowance::{Allowance, Rate};
    use crate::shard::connection::Kind;
    use crate::shard::keys::Seat;
    use crate::shard::mail::Act;
    use crate::shard::mail::member::{Farewell, ResumeCopy, ToMember};
    use crate::shard::slab::Key;

    const NOW: Duration = Duration::from_secs(7);
    const SHARD: u16 = 500;
    const ROOM: RoomNumber = RoomNumber(300);
    const COUNTED: Kind = Kind::Counted(Some(ROOM));

    fn stay(bits: u64) -> Stay {
        Stay { connection: Key::from_bits(bits), room: ROOM }
    }

    fn seat(bits: u64) -> Seat {
        let (room, member) = (Key::from_bits(1 << 40 | 2), Key::from_bits(bits));
        Seat { shard: SHARD, room, member }
    }

    fn to_session() -> Vec<ToSession<'static>> {
        let mut snapshots = Allowance::default();
        snapshots.take(NOW, Rate::new("x", RateLimit::per_second(3)));
        let none = ToSession::Left { snapshots: Allowance::default(), answered: None };
        vec![
            ToSession::Seated(seat(u64::MAX)),
            ToSession::Joined(b"joined"),
            ToSession::Message(COUNTED, b"event"),
            ToSession::Message(Kind::Fleeting, b"patch"),
            ToSession::Lost,
            ToSession::Done,
            ToSession::Took(Duration::from_nanos(70_000)),
            ToSession::Holds { before: 0, after: 1 << 33 },
            ToSession::CopyResumed { number: u32::MAX, body: b"" },
            ToSession::Doom { code: ErrorCode::TooSlow, text: "too slow", unless_away: true },
            ToSession::Left { snapshots, answered: Some(RequestNumber(0)) },
            none,
        ]
    }

    fn to_member() -> Vec<ToMember<'static>> {
        let message = |message, request| {
            let payload = Cow::Borrowed(&b"payload"[..]);
            ToMember::Act(Act::Message { message, payload, request })
        };
        let go = |why, farewell| ToMember::Go { why, farewell };
        let resumed = |ip: &str, is_trusted| {
            let address = AddressName { ip: ip.parse::<IpAddr>().unwrap(), is_trusted };
            ToMember::Resumed { away: Duration::from_millis(5), address }
        };
        let copy = ResumeRoom { room: ROOM, epoch: 1 << 40, version: 9 };
        vec![
            message(MessageRef::Index(u32::MAX), Some(RequestNumber(u32::MAX))),
            message(MessageRef::Name("move".into()), None),
            ToMember::Act(Act::Leave { request: RequestNumber(7) }),
            ToMember::Act(Act::Resync),
            go(LeaveReason::Left, Farewell::None),
            go(LeaveReason::ConnectionLost, Farewell::GraceOver),
            go(LeaveReason::TakenOver, Farewell::TooMuch),
            go(LeaveReason::Kicked, Farewell::Asked(RequestNumber(0))),
            go(LeaveReason::RoomEnded(EndReason::Drained), Farewell::None),
            ToMember::Lost,
            ToMember::Measured(Duration::from_nanos(u64::MAX)),
            resumed("192.0.2.1", false),
            resumed("2001:db8::", true),
            ToMember::ResumeCopy(ResumeCopy { number: 1, copy: Some(copy) }),
            ToMember::ResumeCopy(ResumeCopy { number: 0, copy: None }),
            ToMember::ResumeEnded,
            ToMember::Blocked,
            ToMember::Received(1 << 33),
        ]
    }

    fn put_all() -> Vec<u8> {
        let mut bytes = Vec::new();
        for (bits, frame) in (0..).zip(to_session()) {
            frame.put(&mut bytes, stay(bits << 31), NOW);
        }
        for (bits, frame) in (0..).zip(to_member()) {
            put_to_member(&mut bytes, seat(bits << 31), &frame);
        }
        bytes
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let (bytes, mut taken) = (put_all(), Vec::new());
        let mut rest = &bytes[..];
        while let Some(frame) = next(&mut rest, SHARD, NOW).unwrap() {
            taken.push(frame);
        }
        let to_session = (0..).zip(to_session());
        let to_session = to_session.map(|(bits, frame)| Frame::Session(stay(bits << 31), frame));
        let to_member = (0..).zip(to_member());
        let to_member = to_member.map(|(bits, frame)| Frame::Member(seat(bits << 31), frame));
        assert_eq!(taken, to_session.chain(to_member).collect::<Vec<_>>());
    }

    #[test]
    fn a_message_that_is_not_written_leaves_nothing() {
        let mut bytes = put_all();
        let before = bytes.clone();
        for is_written in [false, true] {
            assert_eq!(bytes, before);
            let written = put_message(&mut bytes, stay(0), COUNTED, |out| {
                out.extend_from_slice(b"body");
                is_written
            });
            assert_eq!(written, is_written.then_some(4));
        }
        let mut last = &bytes[before.len()..];
        let expected = Frame::Session(stay(0), ToSession::Message(COUNTED, b"body"));
        assert_eq!(next(&mut last, SHARD, NOW), Ok(Some(expected)));
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let bytes = put_all();
        let first = LENGTH_BYTES + usize::from(bytes[0]);
        let refuses = |bytes: &[u8]| next(&mut &*bytes, SHARD, NOW).is_err();
        assert!((1..first).all(|length| refuses(&bytes[..length])));
        for tag in (11..0x80).chain(0x8B..=u8::MAX) {
            let mut unknown = bytes[..first].to_vec();
            unknown[LENGTH_BYTES] = tag;
            assert!(refuses(&unknown), "{tag}");
        }
        let mut longer = bytes[..first].to_vec();
        longer[0] += 1;
        longer.push(0);
        assert!(refuses(&longer));
    }
}
