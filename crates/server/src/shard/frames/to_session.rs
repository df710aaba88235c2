//! Frames of rooms for the sessions of their members.

use std::time::Duration;

use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_text, put_varint};
use playfield_wire::{DecodeError, ErrorCode, RequestNumber};

use crate::shard::allowance::Allowance;
use crate::shard::connection::Kind;
use crate::shard::frames::{Stay, number, optional, put, put_optional, unknown};
use crate::shard::keys::Seat;
use crate::shard::slab::Key;

/// A message from a room to the session of a member.
#[derive(Debug, PartialEq)]
pub(crate) enum ToSession<'a> {
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

impl ToSession<'_> {
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
        put(out, tag, stay.address(), |out| match *self {
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
                put_optional(out, answered.map(|request| request.0));
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
    let bytes = put(out, tag, stay.address(), |out| {
        let start = out.len();
        write(out).then(|| out.len() - start)
    });
    if bytes.is_none() {
        out.truncate(start);
    }
    bytes
}

pub(super) fn content<'a>(
    tag: u8,
    stay: Stay,
    reader: &mut Reader<'a>,
    now: Duration,
) -> Result<ToSession<'a>, DecodeError> {
    Ok(match tag {
        SEATED => ToSession::Seated(Seat {
            shard: number(reader)?,
            room: Key::from_bits(reader.varint()?),
            member: Key::from_bits(reader.varint()?),
        }),
        JOINED => ToSession::Joined(reader.rest()),
        COUNTED => ToSession::Message(Kind::Counted(Some(stay.room)), reader.rest()),
        FLEETING => ToSession::Message(Kind::Fleeting, reader.rest()),
        LOST => ToSession::Lost,
        DONE => ToSession::Done,
        TOOK => ToSession::Took(Duration::from_nanos(reader.varint()?)),
        HOLDS => ToSession::Holds { before: number(reader)?, after: number(reader)? },
        COPY_RESUMED => ToSession::CopyResumed { number: number(reader)?, body: reader.rest() },
        DOOM => {
            let code = ErrorCode::from_number(number(reader)?);
            let code = code.ok_or_else(|| unknown(reader, "error code"))?;
            ToSession::Doom { code, text: reader.text()?, unless_away: reader.bool()? }
        }
        LEFT => {
            let snapshots = Allowance::with_remaining([reader.varint()?, reader.varint()?], now);
            let answered = optional(reader)?.map(RequestNumber);
            ToSession::Left { snapshots, answered }
        }
        _ => return Err(unknown(reader, "frame")),
    })
}
