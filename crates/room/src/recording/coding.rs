//! The values in inputs, as bytes: what [`put`](Coded::put) appends, [`read`](Coded::read) reads.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_bytes, put_text, put_u8, put_varint};
use playfield_wire::{DecodeError, ErrorCode};

use crate::{
    Claims, EndReason, Entrant, Error, InternalMessage, LeaveReason, Link, Mail, Operation,
    SeatFor, Sender, StoreError, StoreErrorKind,
};

/// A value with a form in bytes.
pub(super) trait Coded: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Reads what [`put`](Self::put) wrote.
    ///
    /// # Errors
    /// If the bytes are not that, at their offset.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// The error for an unknown number.
pub(super) fn unknown(at: usize, what: &str, number: impl std::fmt::Display) -> DecodeError {
    DecodeError::new(at, format!("{what} has no number {number}"))
}

impl Coded for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, *self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint()
    }
}

impl Coded for bool {
    fn put(&self, out: &mut Vec<u8>) {
        put_bool(out, *self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()
    }
}

impl Coded for PlayerId {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint().map(Self)
    }
}

/// Nanoseconds: up to 584 years.
impl Coded for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint().map(Self::from_nanos)
    }
}

impl Coded for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.text().map(str::to_owned)
    }
}

impl Coded for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bytes().map(<[u8]>::to_vec)
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bool(out, self.is_some());
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()?.then(|| T::read(reader)).transpose()
    }
}

impl Coded for Format {
    fn put(&self, out: &mut Vec<u8>) {
        put_u8(out, self.number());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at, number) = (reader.offset(), reader.u8()?);
        Self::from_number(number).ok_or_else(|| unknown(at, "a format", number))
    }
}

impl Coded for Arc<Sender> {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, &self.room_id);
        put_text(out, &self.room_type);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (room_id, room_type) = (String::read(reader)?, String::read(reader)?);
        Ok(Self::new(Sender { room_id, room_type }))
    }
}

impl Coded for InternalMessage {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, &self.name);
        put_bytes(out, &self.payload);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { name: Cow::Owned(String::read(reader)?), payload: Vec::read(reader)? })
    }
}

impl Coded for Error {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.code().number().into());
        put_text(out, self.text());
        self.retry_after_ms().map(u64::from).put(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at, number) = (reader.offset(), reader.varint()?);
        let code = u16::try_from(number).ok().and_then(ErrorCode::from_number);
        let code = code.ok_or_else(|| unknown(at, "an error", number))?;
        let error = Self::new(code, reader.text()?);
        Ok(match Option::<u64>::read(reader)? {
            Some(ms) => error.with_retry_after(Duration::from_millis(ms)),
            None => error,
        })
    }
}

impl Coded for SeatFor {
    fn put(&self, out: &mut Vec<u8>) {
        let (is_user, text) = match self {
            Self::Name(name) => (false, name),
            Self::User(user) => (true, user),
        };
        put_bool(out, is_user);
        put_text(out, text);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let of = if reader.bool()? { Self::User } else { Self::Name };
        String::read(reader).map(of)
    }
}

/// The caller of the replay gives the link.
impl Coded for Entrant {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { link: _, format, name, user, claims, seat, reservation } = self;
        format.put(out);
        put_text(out, name);
        user.put(out);
        (!claims.is_empty()).then(|| claims.to_json()).put(out);
        seat.put(out);
        reservation.put(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (format, name, user) =
            (Coded::read(reader)?, Coded::read(reader)?, Coded::read(reader)?);
        let at = reader.offset();
        let claims = Option::<String>::read(reader)?.map(|text| Claims::from_json(&text));
        let claims = claims.transpose();
        let claims = claims.map_err(|error| DecodeError::new(at, error.text().to_owned()))?;
        let (seat, reservation) = (Coded::read(reader)?, Coded::read(reader)?);
        let claims = claims.unwrap_or_default();
        Ok(Self { link: Link(0), format, name, user, claims, seat, reservation })
    }
}

/// Values that are known by their number.
macro_rules! numbered {
    ($Type:ident, $what:literal: $($value:pat => $number:literal = $made:expr,)*) => {
        impl Coded for $Type {
            fn put(&self, out: &mut Vec<u8>) {
                put_u8(out, match self { $($value => $number,)* });
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let (at, number) = (reader.offset(), reader.u8()?);
                match number {
                    $($number => Ok($made),)*
                    _ => Err(unknown(at, $what, number)),
                }
            }
        }
    };
}

numbered! { EndReason, "the end of a room":
    Self::Closed => 0 = Self::Closed,
    Self::Empty => 1 = Self::Empty,
    Self::ShuttingDown => 2 = Self::ShuttingDown,
    Self::Drained => 3 = Self::Drained,
    Self::Moved => 4 = Self::Moved,
}

numbered! { LeaveReason, "the reason of a player who left":
    Self::Left => 0 = Self::Left,
    Self::ConnectionLost => 1 = Self::ConnectionLost,
    Self::TakenOver => 2 = Self::TakenOver,
    Self::Kicked => 3 = Self::Kicked,
    Self::RoomEnded(EndReason::Closed) => 4 = Self::RoomEnded(EndReason::Closed),
    Self::RoomEnded(EndReason::Empty) => 5 = Self::RoomEnded(EndReason::Empty),
    Self::RoomEnded(EndReason::ShuttingDown) => 6 = Self::RoomEnded(EndReason::ShuttingDown),
    Self::RoomEnded(EndReason::Drained) => 7 = Self::RoomEnded(EndReason::Drained),
    Self::RoomEnded(EndReason::Moved) => 8 = Self::RoomEnded(EndReason::Moved),
}

numbered! { StoreErrorKind, "the failure of a store":
    Self::Busy => 0 = Self::Busy,
    Self::InUse => 1 = Self::InUse,
    Self::Fenced => 2 = Self::Fenced,
    Self::Away => 3 = Self::Away,
    Self::Full => 4 = Self::Full,
    Self::Io => 5 = Self::Io,
    Self::Damaged => 6 = Self::Damaged,
    Self::Other => 7 = Self::Other,
}

impl Coded for StoreError {
    fn put(&self, out: &mut Vec<u8>) {
        self.kind().put(out);
        self.to_string().put(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::new(Coded::read(reader)?, reader.text()?))
    }
}

impl Coded for Mail {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done { task, message } => {
                put_u8(out, 0);
                task.put(out);
                message.put(out);
            }
            Self::Panicked { task } => {
                put_u8(out, 1);
                task.put(out);
            }
            Self::Saved { save, outcome } => {
                put_u8(out, 2);
                save.put(out);
                outcome.clone().err().put(out);
            }
            Self::Told { from, message } => {
                put_u8(out, 3);
                from.put(out);
                message.put(out);
            }
            Self::Asked { from, ask, message } => {
                put_u8(out, 4);
                from.put(out);
                ask.put(out);
                message.put(out);
            }
            Self::Answered { ask, reply } => {
                put_u8(out, 5);
                ask.put(out);
                match reply {
                    Ok(reply) => {
                        put_bool(out, true);
                        reply.put(out);
                    }
                    Err(error) => {
                        put_bool(out, false);
                        error.put(out);
                    }
                }
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at, kind) = (reader.offset(), reader.u8()?);
        Ok(match kind {
            0 => Self::Done { task: Coded::read(reader)?, message: Coded::read(reader)? },
            1 => Self::Panicked { task: Coded::read(reader)? },
            2 => {
                let (save, error) = (Coded::read(reader)?, Option::read(reader)?);
                Self::Saved { save, outcome: error.map_or(Ok(()), Err) }
            }
            3 => Self::Told { from: Coded::read(reader)?, message: Coded::read(reader)? },
            4 => Self::Asked {
                from: Coded::read(reader)?,
                ask: Coded::read(reader)?,
                message: Coded::read(reader)?,
            },
            5 => {
                let ask = Coded::read(reader)?;
                let is_reply = reader.bool()?;
                let reply =
                    if is_reply { Ok(Coded::read(reader)?) } else { Err(Coded::read(reader)?) };
                Self::Answered { ask, reply }
            }
            _ => return Err(unknown(at, "mail", kind)),
        })
    }
}

impl Coded for Operation {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Kick { player, text } => {
                put_u8(out, 0);
                player.put(out);
                text.put(out);
            }
            Self::Lock(locked) => put_u8(out, 1 + u8::from(*locked)),
            Self::Record(records) => put_u8(out, 4 + u8::from(*records)),
            Self::Emit { event, payloads, to } => {
                put_u8(out, 3);
                put_varint(out, u64::from(*event));
                payloads.iter().for_each(|payload| payload.put(out));
                to.put(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at, kind) = (reader.offset(), reader.u8()?);
        Ok(match kind {
            0 => Self::Kick { player: Coded::read(reader)?, text: Coded::read(reader)? },
            1 | 2 => Self::Lock(kind == 2),
            4 | 5 => Self::Record(kind == 5),
            3 => {
                let event = reader.varint_u32()?;
                let mut payloads: [Vec<u8>; Format::ALL.len()] = Default::default();
                for payload in &mut payloads {
                    *payload = Coded::read(reader)?;
                }
                Self::Emit { event, payloads, to: Coded::read(reader)? }
            }
            _ => return Err(unknown(at, "an operation", kind)),
        })
    }
}
