//! A request to join a room, and whose it is, on the way from the session to the room.

use std::mem;
use std::sync::Arc;

use playfield_room::{Claims, Error, KeyOrigin, split_reservation};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, excerpt};

use crate::addresses::Address;
use crate::directory::Directory;
use crate::directory::keys::{Key, code};
use crate::room_id::RoomId;
use crate::shard::allowance::Allowance;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::resume::ResumeRequest;
use crate::tickets::TicketPass;

/// The number of times that another room is tried when the picked one falls through.
pub(crate) const RETRIES: u8 = 7;

/// The target of a join.
pub(crate) enum JoinTarget {
    /// The room with this id, or a seat that is reserved in one.
    Room(String),
    /// The room of this type with this key.
    Key(u16, String),
    /// A new room.
    New(RoomSpec),
    /// The room with the key, or without one any room of the type; or a new one.
    Any(RoomSpec),
}

impl JoinTarget {
    /// Returns the specification of the room to create, if that may be needed.
    pub(crate) fn spec(&self) -> Option<&RoomSpec> {
        match self {
            Self::Room(_) | Self::Key(..) => None,
            Self::New(spec) | Self::Any(spec) => Some(spec),
        }
    }

    /// Returns whether another room, or a later one with the key, may accept after a refusal with this
    /// code.
    fn falls_through(&self, code: ErrorCode) -> bool {
        match self {
            Self::Room(_) => false,
            Self::New(spec) => match spec.key_origin() {
                KeyOrigin::Chosen => false,
                KeyOrigin::Drawn => code == ErrorCode::RoomExists,
                KeyOrigin::Spelled => code == ErrorCode::RoomNotFound,
            },
            _ if self.is_by_key() => has_ended(code),
            _ => has_ended(code) || matches!(code, ErrorCode::RoomFull | ErrorCode::RoomLocked),
        }
    }

    /// Returns the specification of the room to create, if that may be needed.
    pub(crate) fn spec_mut(&mut self) -> Option<&mut RoomSpec> {
        match self {
            Self::Room(_) | Self::Key(..) => None,
            Self::New(spec) | Self::Any(spec) => Some(spec),
        }
    }

    /// The secret of the reservation, if there is one.
    pub(crate) fn reservation(&self) -> Option<&str> {
        match self {
            Self::Room(text) => split_reservation(text).map(|(_, secret)| secret),
            Self::Key(..) | Self::New(_) | Self::Any(_) => None,
        }
    }

    /// Returns whether it names a room by its key.
    pub(crate) fn is_by_key(&self) -> bool {
        match self {
            Self::Key(..) => true,
            Self::Any(spec) => spec.key.is_some(),
            Self::Room(_) | Self::New(_) => false,
        }
    }
}

/// A room of this type, or how to create one.
#[derive(Clone)]
pub(crate) struct RoomSpec {
    pub(crate) room_type: u16,
    pub(crate) key: Option<Key>,
    /// The node picks a code as its key.
    pub(crate) code: bool,
    pub(crate) reading: Reading,
    pub(crate) private: bool,
    /// The values of its criteria.
    pub(crate) criteria: Vec<u8>,
    pub(crate) options: Vec<u8>,
    pub(crate) format: Format,
}

/// The reading of a key that someone wrote, for a room that is not open.
#[derive(Clone, Default)]
pub(crate) enum Reading {
    /// Read as it was written, unless it spells a code.
    #[default]
    Undecided,
    /// Read as the code that it spells. If no saved room has that, it is read as this key, which is
    /// what was written.
    Code(Key),
    /// Read as it was written: it is not a code.
    Literal,
}

impl RoomSpec {
    pub(crate) fn key_origin(&self) -> KeyOrigin {
        match &self.reading {
            _ if self.code => KeyOrigin::Drawn,
            Reading::Code(_) => KeyOrigin::Spelled,
            Reading::Undecided | Reading::Literal => KeyOrigin::Chosen,
        }
    }

    /// Reads the key as the code that it spells, if no room has either. Whether a saved room has
    /// that code, its shard finds out.
    pub(crate) fn read_as_code(&mut self, directory: &Directory) {
        if let (Reading::Undecided, Some(key)) = (&self.reading, &self.key)
            && let Some(code) = code::spelled(&key.text)
            && ![key, &code].iter().any(|key| directory.has_key(self.room_type, &key.text))
        {
            self.reading = self.key.replace(code).map_or(Reading::Undecided, Reading::Code);
        }
    }

    /// After a refusal: if no room has the code, the key is read as it was written. A code that was
    /// drawn is drawn again.
    fn note_refusal(&mut self, code: ErrorCode) {
        if self.code {
            self.key = None;
        } else if code == ErrorCode::RoomNotFound
            && let Reading::Code(_) = &self.reading
            && let Reading::Code(key) = mem::replace(&mut self.reading, Reading::Literal)
        {
            self.key = Some(key);
        }
    }
}

/// A request to join the room that was picked for it; a seat is reserved there.
pub(crate) struct JoinRequest {
    pub(crate) request: RequestNumber,
    /// The number that the room will have in the session.
    pub(crate) number: RoomNumber,
    pub(crate) id: RoomId,
    /// The target that the client asked for.
    pub(crate) target: JoinTarget,
    /// Whether the room has to be created first.
    pub(crate) create: bool,
    /// The number of times that another room may be picked.
    pub(crate) retries: u8,
    /// Whether a refusal is final: no other room is tried.
    pub(crate) is_final: bool,
    /// The player's ticket, if there is one.
    pub(crate) ticket: Option<Box<TicketPass>>,
}

impl JoinRequest {
    /// The target to ask for after a refusal with this code.
    pub(crate) fn next_target(self, code: ErrorCode) -> JoinTarget {
        let mut target = self.target;
        if let Some(spec) = target.spec_mut() {
            spec.note_refusal(code);
        }
        target
    }

    /// Returns whether another room may be picked after it was refused with this code.
    pub(crate) fn may_retry(&self, code: ErrorCode) -> bool {
        !self.is_final && self.retries > 0 && self.target.falls_through(code)
    }

    /// The error that the client receives if no other room is picked. If rooms have ended that it
    /// did not name, the answer is to try again.
    pub(crate) fn answer(&self, refusal: Error) -> Error {
        let code = refusal.code();
        if self.is_final || !has_ended(code) || !self.target.falls_through(code) {
            return refusal;
        }
        let tried = 1 + RETRIES;
        let mut text = format!("{tried} rooms have ended before this join was decided; try again");
        if code == ErrorCode::RoomClosed {
            text = format!("{text}; the last said: {}", excerpt(refusal.text(), 128));
        }
        Error::new(ErrorCode::Busy, text)
    }
}

/// Returns whether a refusal with this code says that there is no room any more.
fn has_ended(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RoomNotFound | ErrorCode::RoomClosed)
}

/// The session that joins, of this shard or another.
pub(crate) struct Joiner {
    /// The session's shard.
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    pub(crate) format: Format,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) claims: Claims,
    pub(crate) snapshots: Allowance,
    /// Whether the session outlives its connection.
    pub(crate) is_resumable: bool,
    /// The address that its client connects from.
    pub(crate) address: Arc<Address>,
}

/// A connection's way to another shard, or to another connection of this one.
pub(crate) struct Departure {
    pub(crate) target: u16,
    pub(crate) purpose: Purpose,
}

/// The purpose of a connection's move to another shard.
pub(crate) enum Purpose {
    /// Joining the first room of its session.
    Join(Box<JoinRequest>),
    /// Resuming a session.
    Resume(Box<ResumeRequest>),
}
