//! The calls that can change a room, as values and as bytes.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bytes, put_text, put_u8, put_varint};
use playfield_wire::{DecodeError, RequestNumber};

use super::coding::{Coded, unknown};
use crate::{
    Admission, AnyRoom, EndReason, Entrant, Error, LeaveReason, Mail, Operation, RoomOutput,
    SeatFor,
};

/// A call of an [`AnyRoom`] that can change it: the method of the same name. A room is
/// deterministic, so what it does follows from these, their times and the answers of its
/// [host](Answer).
#[derive(Clone, Debug, PartialEq)]
pub enum Input<'a> {
    /// A step of the simulation, with its number.
    Tick(u64),
    /// A sync.
    Sync,
    /// The work that was due.
    Wake,
    /// Syncs that changed nothing.
    PassSyncs(u64),
    /// A player's message.
    Message {
        /// The player.
        player: PlayerId,
        /// The message.
        message: MessageRef<'a>,
        /// Its payload, in the player's format.
        payload: Cow<'a, [u8]>,
        /// Its number, if it is a request.
        request: Option<RequestNumber>,
    },
    /// A player wants to join. The link is not part of the bytes.
    Join(Cow<'a, Entrant>),
    /// A seat is reserved from outside.
    Reserve(Cow<'a, SeatFor>, Duration),
    /// A player's connection was lost.
    Lost(PlayerId),
    /// A player is back, after this time.
    Returned(PlayerId, Duration),
    /// A ping to a player was answered after this time.
    Measured(PlayerId, Duration),
    /// A player left.
    Leave(PlayerId, LeaveReason),
    /// A message from others than the players.
    Mail(Cow<'a, Mail>),
    /// An operator's wish.
    Operate(Cow<'a, Operation>),
    /// The room's end begins; its players receive the text.
    Close(EndReason, Cow<'a, str>),
    /// The players leave a room that ends.
    Part,
    /// The room ends at once.
    Abandon,
    /// The room goes on after it stood still for this time.
    Resumed(Duration),
}

/// An answer of the host to the room, in the course of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The id of the room that was looked for.
    Found(Option<String>),
    /// A refusal: of a search, of a task, or of a room that was to be created.
    Refused(Error),
}

/// An entry of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<'a> {
    /// A call of the room, at its time.
    Input(Duration, Input<'a>),
    /// The answer to one of the questions that the room asked its host in the course of the input
    /// before: to the one with this number, from 0. An answer that is missing is a yes.
    Answer(u64, Answer),
    /// The [hash](AnyRoom::state_hash) of the room after the input before.
    Hash(u64),
}

/// The values that the next entry counts on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The time of the last input.
    pub at: Duration,
    /// The number of the last tick.
    pub tick: u64,
}

/// The kinds of entries, in the lower bits of the first byte.
mod kind {
    pub(super) const TICK: u8 = 0;
    pub(super) const SYNC: u8 = 1;
    pub(super) const WAKE: u8 = 2;
    /// A message by its number that wants no reply, one that does, and the same by name.
    pub(super) const SEND: u8 = 3;
    pub(super) const REQUEST: u8 = 4;
    pub(super) const SEND_NAMED: u8 = 5;
    pub(super) const REQUEST_NAMED: u8 = 6;
    /// A tick that does not follow the one before.
    pub(super) const TICK_OF: u8 = 7;
    pub(super) const PASS_SYNCS: u8 = 8;
    pub(super) const JOIN: u8 = 9;
    pub(super) const RESERVE: u8 = 10;
    pub(super) const LOST: u8 = 11;
    pub(super) const RETURNED: u8 = 12;
    pub(super) const MEASURED: u8 = 13;
    pub(super) const LEAVE: u8 = 14;
    pub(super) const MAIL: u8 = 15;
    pub(super) const OPERATE: u8 = 16;
    pub(super) const CLOSE: u8 = 17;
    pub(super) const PART: u8 = 18;
    pub(super) const ABANDON: u8 = 19;
    pub(super) const FOUND: u8 = 20;
    pub(super) const REFUSED: u8 = 21;
    pub(super) const HASH: u8 = 22;
    pub(super) const RESUMED: u8 = 23;
    /// Set if time has passed since the input before: it follows.
    pub(super) const LATER: u8 = 0x80;
}

impl Cursor {
    /// Appends an input.
    #[inline]
    pub fn put(&mut self, at: Duration, input: &Input<'_>, out: &mut Vec<u8>) {
        let passed = at.saturating_sub(self.at);
        let kind = self.kind_of(input);
        if passed.is_zero() {
            put_u8(out, kind);
        } else {
            put_u8(out, kind | kind::LATER);
            put_passed(passed, out);
            self.at = at;
        }
        match input {
            Input::Tick(number) => {
                if kind == kind::TICK_OF {
                    number.put(out);
                }
                self.tick = *number;
            }
            Input::Message { player, message, payload, request } => {
                player.put(out);
                match message {
                    MessageRef::Index(index) => put_varint(out, u64::from(*index)),
                    MessageRef::Name(name) => put_text(out, name),
                }
                if let Some(RequestNumber(request)) = request {
                    put_varint(out, u64::from(*request));
                }
                put_bytes(out, payload);
            }
            Input::Sync | Input::Wake | Input::Part | Input::Abandon => {}
            rare => rare.put_rest(out),
        }
    }

    fn kind_of(&self, input: &Input<'_>) -> u8 {
        match input {
            Input::Tick(number) if self.tick.checked_add(1) == Some(*number) => kind::TICK,
            Input::Tick(_) => kind::TICK_OF,
            Input::Sync => kind::SYNC,
            Input::Wake => kind::WAKE,
            Input::PassSyncs(_) => kind::PASS_SYNCS,
            Input::Message { message, request, .. } => match (message, request) {
                (MessageRef::Index(_), None) => kind::SEND,
                (MessageRef::Index(_), Some(_)) => kind::REQUEST,
                (MessageRef::Name(_), None) => kind::SEND_NAMED,
                (MessageRef::Name(_), Some(_)) => kind::REQUEST_NAMED,
            },
            Input::Join(_) => kind::JOIN,
            Input::Reserve(..) => kind::RESERVE,
            Input::Lost(_) => kind::LOST,
            Input::Returned(..) => kind::RETURNED,
            Input::Measured(..) => kind::MEASURED,
            Input::Leave(..) => kind::LEAVE,
            Input::Mail(_) => kind::MAIL,
            Input::Operate(_) => kind::OPERATE,
            Input::Close(..) => kind::CLOSE,
            Input::Part => kind::PART,
            Input::Abandon => kind::ABANDON,
            Input::Resumed(_) => kind::RESUMED,
        }
    }

    /// Reads the next entry.
    ///
    /// # Errors
    /// If the bytes are not one, at their offset.
    pub fn read<'a>(&mut self, reader: &mut Reader<'a>) -> Result<Entry<'a>, DecodeError> {
        let start = reader.offset();
        let first = reader.u8()?;
        let kind = first & !kind::LATER;
        match (kind, first & kind::LATER != 0) {
            (kind::FOUND, false) => {
                let (question, id) = (reader.varint()?, Coded::read(reader)?);
                return Ok(Entry::Answer(question, Answer::Found(id)));
            }
            (kind::REFUSED, false) => {
                let (question, error) = (reader.varint()?, Coded::read(reader)?);
                return Ok(Entry::Answer(question, Answer::Refused(error)));
            }
            (kind::HASH, false) => return reader.u64().map(Entry::Hash),
            (_, true) => {
                let passed = match reader.varint()? {
                    ms if ms % 2 == 0 => Duration::from_millis(ms / 2),
                    ns => Duration::from_nanos(ns / 2),
                };
                let at = self.at.checked_add(passed).filter(|at| at.as_secs() < 1 << 60);
                self.at = at.ok_or_else(|| DecodeError::new(start, "a time past any other"))?;
            }
            _ => {}
        }
        let input = match kind {
            kind::TICK => Input::Tick(self.tick.saturating_add(1)),
            kind::TICK_OF => Input::Tick(reader.varint()?),
            kind::SYNC => Input::Sync,
            kind::WAKE => Input::Wake,
            kind::SEND | kind::REQUEST | kind::SEND_NAMED | kind::REQUEST_NAMED => {
                let player = Coded::read(reader)?;
                let message = match kind {
                    kind::SEND | kind::REQUEST => MessageRef::Index(reader.varint_u32()?),
                    _ => MessageRef::Name(reader.text()?.into()),
                };
                let is_request = matches!(kind, kind::REQUEST | kind::REQUEST_NAMED);
                let request = is_request.then(|| reader.varint_u32()).transpose()?;
                let (request, payload) = (request.map(RequestNumber), reader.bytes()?.into());
                Input::Message { player, message, payload, request }
            }
            rare => Input::read_rest(rare, start, reader)?,
        };
        if let Input::Tick(number) = input {
            self.tick = number;
        }
        Ok(Entry::Input(self.at, input))
    }
}

/// Appends a time: twice its milliseconds, or if these are not whole, twice its nanoseconds and 1.
fn put_passed(passed: Duration, out: &mut Vec<u8>) {
    let (secs, ns) = (passed.as_secs(), passed.subsec_nanos());
    let twice = if ns.is_multiple_of(1_000_000) {
        secs.saturating_mul(2_000).saturating_add(u64::from(ns / 500_000))
    } else {
        secs.saturating_mul(2_000_000_000).saturating_add(2 * u64::from(ns)) | 1
    };
    put_varint(out, twice);
}

/// Appends the host's answer to a question of the input before.
pub(super) fn put_answer(question: u64, answer: &Answer, out: &mut Vec<u8>) {
    match answer {
        Answer::Found(id) => {
            put_u8(out, kind::FOUND);
            question.put(out);
            id.put(out);
        }
        Answer::Refused(error) => {
            put_u8(out, kind::REFUSED);
            question.put(out);
            error.put(out);
        }
    }
}

/// Appends the hash of the room after the input before.
pub(super) fn put_hash(hash: u64, out: &mut Vec<u8>) {
    put_u8(out, kind::HASH);
    out.extend(hash.to_le_bytes());
}

impl<'a> Input<'a> {
    fn put_rest(&self, out: &mut Vec<u8>) {
        match self {
            Self::PassSyncs(syncs) => syncs.put(out),
            Self::Resumed(paused) => paused.put(out),
            Self::Join(entrant) => entrant.put(out),
            Self::Reserve(who, wait) => {
                who.put(out);
                wait.put(out);
            }
            Self::Lost(player) => player.put(out),
            Self::Returned(player, time) | Self::Measured(player, time) => {
                player.put(out);
                time.put(out);
            }
            Self::Leave(player, why) => {
                player.put(out);
                why.put(out);
            }
            Self::Mail(mail) => mail.put(out),
            Self::Operate(operation) => operation.put(out),
            Self::Close(why, text) => {
                why.put(out);
                put_text(out, text);
            }
            Self::Tick(_) | Self::Sync | Self::Wake | Self::Message { .. } => {}
            Self::Part | Self::Abandon => {}
        }
    }

    fn read_rest(kind: u8, start: usize, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match kind {
            kind::PASS_SYNCS => Self::PassSyncs(reader.varint()?),
            kind::JOIN => Self::Join(Cow::Owned(Coded::read(reader)?)),
            kind::RESERVE => Self::Reserve(Cow::Owned(Coded::read(reader)?), Coded::read(reader)?),
            kind::LOST => Self::Lost(Coded::read(reader)?),
            kind::RETURNED => Self::Returned(Coded::read(reader)?, Coded::read(reader)?),
            kind::MEASURED => Self::Measured(Coded::read(reader)?, Coded::read(reader)?),
            kind::LEAVE => Self::Leave(Coded::read(reader)?, Coded::read(reader)?),
            kind::MAIL => Self::Mail(Cow::Owned(Coded::read(reader)?)),
            kind::OPERATE => Self::Operate(Cow::Owned(Coded::read(reader)?)),
            kind::CLOSE => Self::Close(Coded::read(reader)?, reader.text()?.into()),
            kind::PART => Self::Part,
            kind::ABANDON => Self::Abandon,
            kind::RESUMED => Self::Resumed(Coded::read(reader)?),
            _ => return Err(unknown(start, "an entry of a record", kind)),
        })
    }

    /// The input, to be applied later.
    #[must_use]
    pub fn into_owned(self) -> Input<'static> {
        match self {
            Self::Tick(number) => Input::Tick(number),
            Self::Sync => Input::Sync,
            Self::Wake => Input::Wake,
            Self::PassSyncs(syncs) => Input::PassSyncs(syncs),
            Self::Message { player, message, payload, request } => {
                let message = match message {
                    MessageRef::Index(index) => MessageRef::Index(index),
                    MessageRef::Name(name) => MessageRef::Name(name.into_owned().into()),
                };
                let payload = Cow::Owned(payload.into_owned());
                Input::Message { player, message, payload, request }
            }
            Self::Join(entrant) => Input::Join(Cow::Owned(entrant.into_owned())),
            Self::Reserve(who, wait) => Input::Reserve(Cow::Owned(who.into_owned()), wait),
            Self::Lost(player) => Input::Lost(player),
            Self::Returned(player, away) => Input::Returned(player, away),
            Self::Measured(player, round_trip) => Input::Measured(player, round_trip),
            Self::Leave(player, why) => Input::Leave(player, why),
            Self::Mail(mail) => Input::Mail(Cow::Owned(mail.into_owned())),
            Self::Operate(operation) => Input::Operate(Cow::Owned(operation.into_owned())),
            Self::Close(why, text) => Input::Close(why, Cow::Owned(text.into_owned())),
            Self::Part => Input::Part,
            Self::Abandon => Input::Abandon,
            Self::Resumed(paused) => Input::Resumed(paused),
        }
    }

    /// Calls the room. Returns the outcome of a join.
    pub fn apply(
        self,
        at: Duration,
        room: &mut (impl AnyRoom + ?Sized),
        out: &mut dyn RoomOutput,
    ) -> Option<Result<Admission, Error>> {
        match self {
            Self::Tick(number) => room.tick(at, number, out),
            Self::Sync => room.sync(at, out),
            Self::Wake => room.wake(at, out),
            Self::PassSyncs(syncs) => room.pass_syncs(syncs),
            Self::Message { player, message, payload, request } => {
                room.message(at, player, &message, &payload, request, out);
            }
            Self::Join(entrant) => return Some(room.join(at, entrant.into_owned(), out)),
            Self::Reserve(who, wait) => drop(room.reserve(at, who.into_owned(), wait, out)),
            Self::Lost(player) => room.lost(at, player, out),
            Self::Returned(player, away) => room.returned(at, player, away, out),
            Self::Measured(player, round_trip) => room.measured(at, player, round_trip, out),
            Self::Leave(player, why) => room.leave(at, player, why, out),
            Self::Mail(mail) => room.mail(at, mail.into_owned(), out),
            Self::Operate(operation) => drop(room.operate(at, operation.into_owned(), out)),
            Self::Close(why, text) => room.close(at, why, &text, out),
            Self::Part => room.part(at, out),
            Self::Abandon => room.abandon(at, out),
            Self::Resumed(paused) => room.resumed(at, paused, out),
        }
        None
    }
}
