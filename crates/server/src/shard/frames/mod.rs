//! Frames: what rooms and sessions of different shards say to each other, as bytes that name all
//! they are about. They hold no reference and no key of anything but the two ends, so that a link
//! to another node can carry them as they are.
//!
//! A frame is its length, its receiver, and what it says: the [parts](part) of each kind stand in
//! one table. A session is named by its connection and the room's number in the session, a member
//! by its room and its seat.
//! Frames of one shard for another leave in the order in which they were written, in one piece of
//! mail or in several, between other mail in its order; and the other shard does what they say in
//! that order.
//!
//! Names tell a receiver from those before it: keys count how often their place was given away, and
//! the number of a room is given again only after the room that had it has refused the session. So
//! frames that come late are about nothing, and change nothing. What is asked of a room for one
//! return of a client is answered with the number of that return.

mod part;
mod to_session;

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, RoomNumber};

use crate::shard::connection::Kind;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::member::ToMember;
use part::Part;

pub(crate) use to_session::ToSession;

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

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

impl<'a> Frame<'a> {
    /// Appends the frame.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        self.append_with(out, |_| ());
    }

    /// Appends the frame, which ends with the bytes that `rest` appends.
    #[inline]
    fn append_with<T>(&self, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        self.put(out);
        let appended = rest(out);
        // No message has 4 GiB: the limit of what waits for a client is a quarter of that.
        let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
        out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        appended
    }

    /// Takes the next frame off the front; `None` at the end.
    ///
    /// # Errors
    /// If the bytes are no frame.
    pub(crate) fn next(bytes: &mut &'a [u8]) -> Result<Option<Self>, DecodeError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(bytes);
        let mut length = [0; LENGTH_BYTES];
        length.copy_from_slice(reader.take(LENGTH_BYTES)?);
        let frame = reader.take(u32::from_le_bytes(length) as usize)?;
        *bytes = reader.rest();

        let mut reader = Reader::new(frame);
        let frame = Self::take(&mut reader)?;
        reader.finish()?;
        Ok(Some(frame))
    }
}

/// Appends a message for the client, which is what `write` appends, or nothing if it answers
/// `false`. The answer is how many bytes the message has.
#[inline]
pub(crate) fn append_message(
    out: &mut Vec<u8>,
    stay: Stay,
    kind: Kind,
    write: impl FnOnce(&mut Vec<u8>) -> bool,
) -> Option<usize> {
    let what = match kind {
        Kind::Counted(_) => ToSession::Counted(&[]),
        Kind::Fleeting => ToSession::Fleeting(&[]),
    };
    let start = out.len();
    let bytes = Frame::Session(stay, what).append_with(out, |out| {
        let start = out.len();
        write(out).then(|| out.len() - start)
    });
    if bytes.is_none() {
        out.truncate(start);
    }
    bytes
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

    use super::{Frame, LENGTH_BYTES, Stay, ToSession, append_message};
    use crate::addresses::AddressName;
    use crate::shard::connection::Kind;
    use crate::shard::keys::Seat;
    use crate::shard::mail::Act;
    use crate::shard::mail::member::{Farewell, ResumeCopy, ToMember};
    use crate::shard::slab::Key;

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
        vec![
            ToSession::Seated(seat(u64::MAX)),
            ToSession::Joined(b"joined"),
            ToSession::Counted(b"event"),
            ToSession::Fleeting(b"patch"),
            ToSession::Lost,
            ToSession::Done,
            ToSession::Waits,
            ToSession::Took(Duration::from_nanos(70_000)),
            ToSession::Holds { before: 0, after: 1 << 33 },
            ToSession::CopyResumed { number: u32::MAX, body: b"" },
            ToSession::Doom { code: ErrorCode::TooSlow, text: "too slow", unless_away: true },
            ToSession::Left { snapshots: [1, u64::MAX], answered: Some(RequestNumber(0)) },
            ToSession::Left { snapshots: [0, 0], answered: None },
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

    fn all() -> Vec<Frame<'static>> {
        let to_session = (0..).zip(to_session());
        let to_session = to_session.map(|(bits, what)| Frame::Session(stay(bits << 31), what));
        let to_member = (0..).zip(to_member());
        let to_member = to_member.map(|(bits, what)| Frame::Member(seat(bits << 31), what));
        to_session.chain(to_member).collect()
    }

    fn append_all() -> Vec<u8> {
        let mut bytes = Vec::new();
        all().iter().for_each(|frame| frame.append(&mut bytes));
        bytes
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let (bytes, mut taken) = (append_all(), Vec::new());
        let mut rest = &bytes[..];
        while let Some(frame) = Frame::next(&mut rest).unwrap() {
            taken.push(frame);
        }
        assert_eq!(taken, all());
    }

    #[test]
    fn a_message_that_is_not_written_leaves_nothing() {
        let mut bytes = append_all();
        let before = bytes.clone();
        for is_written in [false, true] {
            assert_eq!(bytes, before);
            let written = append_message(&mut bytes, stay(0), COUNTED, |out| {
                out.extend_from_slice(b"body");
                is_written
            });
            assert_eq!(written, is_written.then_some(4));
        }
        let mut last = &bytes[before.len()..];
        let expected = Frame::Session(stay(0), ToSession::Counted(b"body"));
        assert_eq!(Frame::next(&mut last), Ok(Some(expected)));
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let bytes = append_all();
        let first = LENGTH_BYTES + usize::from(bytes[0]);
        let refuses = |bytes: &[u8]| Frame::next(&mut &*bytes).is_err();
        assert!((1..first).all(|length| refuses(&bytes[..length])));
        // Of the first frame, the tags of its receiver, and of what it says to a session.
        for (place, tags) in [(0, 2), (4, 11)] {
            for tag in tags..=u8::MAX {
                let mut unknown = bytes[..first].to_vec();
                unknown[LENGTH_BYTES + place] = tag;
                assert!(refuses(&unknown), "{tag}");
            }
        }
        let mut longer = bytes[..first].to_vec();
        longer[0] += 1;
        longer.push(0);
        assert!(refuses(&longer));
    }
}
