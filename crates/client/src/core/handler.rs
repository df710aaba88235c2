//! What a client tells whoever drives it, as it happens.

use std::borrow::Cow;
use std::time::Duration;

use playfield_wire::message::MessageRef;
use playfield_wire::server::RoomInfo;
use playfield_wire::{DecodeError, ErrorCode};

use super::ClientError;

/// Told what happens, in the order in which it does. What it is handed is borrowed from the input.
///
/// Every method does nothing unless it is written, so a handler names only what it cares for.
/// [`EventQueue`](super::EventQueue) is one that keeps everything for later.
#[allow(unused_variables, reason = "the parameters' names are for those who implement them")]
pub trait Handler {
    /// The node has answered the hello.
    fn welcome(&mut self, welcome: &Welcome<'_>) {}

    /// A request to enter a room was granted. The room's snapshot follows.
    fn joined(&mut self, request: u32, joined: &Joined<'_>) {}

    /// The answer to `list`.
    fn listed(&mut self, request: u32, rooms: &[RoomInfo<'_>]) {}

    /// The schema of a room type, as JSON: the answer to `schema` (then `request` says which), or,
    /// right after the welcome, that of a room type of which this client
    /// [named](super::ClientConfig::schemas) another fingerprint.
    fn schema(&mut self, request: Option<u32>, room_type: &str, schema: &[u8]) {}

    /// A room is over for this client, at its own `leave` (then `request` says which) or otherwise.
    /// Requests that the room had not answered have [`failed`](Self::failed) just before.
    fn left(&mut self, room: u32, request: Option<u32>, code: ErrorCode, text: &str) {}

    /// The answer to a user message.
    fn reply(&mut self, request: u32, payload: &[u8]) {}

    /// A request of any kind came to nothing.
    fn failed(&mut self, request: u32, failure: &Failure<'_>) {}

    /// An event of a room.
    fn event(&mut self, event: &RoomEvent<'_>) {}

    /// Events of a room were lost in messages that could not be read: so many before the one that
    /// comes next.
    fn missed(&mut self, room: u32, events: u64) {}

    /// The whole state of a room, for its mirror.
    ///
    /// # Errors
    /// That the body can't be read. The client asks for another one then; if that can't be read
    /// either, the copy stands still until one comes, which
    /// [`Client::resync`](super::Client::resync) asks for.
    fn snapshot(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    /// What changed in a room, for its mirror: it leads from the copy's version to `version`.
    ///
    /// # Errors
    /// That the body can't be applied. The client asks for a snapshot then.
    fn patch(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }

    /// What a room's copy is to come to at the version that it is at. Says whether it does, as far
    /// as that is known; if not, the client asks for a snapshot.
    fn check(&mut self, room: u32, digest: u64) -> bool {
        true
    }

    /// A room's copy fell out of step. It stands still until the next snapshot. More often than
    /// [`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX) in a row, it ends the connection.
    fn out_of_step(&mut self, room: u32, why: &OutOfStep) {}

    /// The node refused a `send` in `room`, or says what is wrong with the connection.
    fn error(&mut self, room: Option<u32>, code: ErrorCode, text: &str) {}

    /// The answer to [`Client::ping`](super::Client::ping).
    fn pong(&mut self, nonce: u64, round_trip: Duration) {}

    /// The node says why it ends the connection.
    fn goodbye(&mut self, code: ErrorCode, text: &str) {}

    /// The connection is over, by a goodbye or by an error. This is the last call. Requests without
    /// an answer have [`failed`](Self::failed) just before.
    fn closed(&mut self, error: Option<&ClientError>) {}
}

/// The node's answer to the hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The session's number.
    pub session: u64,
    /// The resume token.
    pub resume: Cow<'a, [u8]>,
    /// The node wants to hear the client at least this often; the client sees to it. Zero if it
    /// doesn't mind.
    pub heartbeat: Duration,
    /// The longest message that the node takes.
    pub message_bytes_max: u32,
}

/// A room that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined<'a> {
    /// The room's number in this session.
    pub room: u32,
    /// The room's id.
    pub id: Cow<'a, str>,
    /// The room's type.
    pub room_type: Cow<'a, str>,
    /// The player's number in the room.
    pub player: u64,
    /// New for each creation of the room.
    pub epoch: u64,
    /// How often the room's simulation steps, per second.
    pub tick_hz: u32,
    /// How often the room sends patches, per second.
    pub sync_hz: u32,
    /// Of the room type's state and messages.
    pub fingerprint: u64,
}

/// An event of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomEvent<'a> {
    /// The room's number.
    pub room: u32,
    /// Counts the events of this room, from 1.
    pub sequence: u64,
    /// The room's version when the event was raised.
    pub version: u64,
    /// Which of the room type's events: by position in `packed`, by name in `msgpack` and `json`.
    pub message: MessageRef<'a>,
    /// The event itself, in the connection's format.
    pub payload: Cow<'a, [u8]>,
}

/// Why a request came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<'a> {
    /// The node or the room said no.
    Refused {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
        /// How long to wait before asking again, if the node says so.
        retry_after: Option<Duration>,
    },
    /// The room was over for this client before it answered.
    Left {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
    },
    /// A message came that can't be read, while a room was joined. It may have been the answer, so
    /// it is no longer waited for: whether the request was granted isn't known. A room that is
    /// entered by it after all is left again.
    Lost,
    /// The connection ended before the answer came.
    Closed,
}

/// Why a room's copy fell out of step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfStep {
    /// A patch begins at another version than the copy's. It was not applied, and a snapshot was
    /// asked for.
    Base {
        /// Where the patch begins.
        base: u64,
        /// The copy's version.
        version: u64,
    },
    /// A patch leads to no later version, so that it would fit again and again. It was not applied,
    /// and a snapshot was asked for.
    NoAdvance {
        /// Where it leads.
        version: u64,
    },
    /// A patch's body can't be applied. A snapshot was asked for.
    Patch(DecodeError),
    /// A snapshot is of another creation of the room than the one that was joined. It was not
    /// applied, and one was asked for anew.
    Epoch {
        /// The epoch that was joined.
        joined: u64,
        /// The snapshot's.
        got: u64,
    },
    /// A snapshot is older than the copy. It was not applied, and one was asked for anew.
    Older {
        /// The copy's version.
        version: u64,
        /// The snapshot's.
        got: u64,
    },
    /// A snapshot's body can't be read. One was asked for anew.
    Snapshot(DecodeError),
    /// Nor can that of the snapshot be read that came instead. None was asked for: the next would
    /// be no better.
    NoSnapshot(DecodeError),
    /// A message can't be read. It may have been a patch of any room, so each of them is told of
    /// it, and a snapshot was asked for.
    Message(DecodeError),
    /// The copy is not what it is to be at this version. A snapshot was asked for.
    Digest {
        /// The copy's version.
        version: u64,
    },
}

impl Welcome<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn to_static(&self) -> Welcome<'static> {
        Welcome { resume: Cow::Owned(self.resume.to_vec()), ..*self }
    }
}

impl Joined<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn to_static(&self) -> Joined<'static> {
        let (id, room_type) = (self.id.to_string(), self.room_type.to_string());
        Joined { id: id.into(), room_type: room_type.into(), ..*self }
    }
}

impl RoomEvent<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn to_static(&self) -> RoomEvent<'static> {
        let message = match &self.message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(Cow::Owned(name.to_string())),
        };
        RoomEvent { message, payload: Cow::Owned(self.payload.to_vec()), ..*self }
    }
}

impl Failure<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn to_static(&self) -> Failure<'static> {
        match self {
            &Self::Refused { code, ref text, retry_after } => {
                Failure::Refused { code, text: Cow::Owned(text.to_string()), retry_after }
            }
            Self::Left { code, text } => {
                Failure::Left { code: *code, text: Cow::Owned(text.to_string()) }
            }
            Self::Lost => Failure::Lost,
            Self::Closed => Failure::Closed,
        }
    }
}

impl std::fmt::Display for OutOfStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base { base, version } => {
                write!(f, "a patch begins at version {base}, the copy is at {version}")
            }
            Self::NoAdvance { version } => {
                write!(f, "a patch leads to version {version}, where it begins")
            }
            Self::Patch(error) => write!(f, "a patch can't be applied: {error}"),
            Self::Epoch { joined, got } => {
                write!(f, "a snapshot is of epoch {got}, the room was joined in epoch {joined}")
            }
            Self::Older { version, got } => {
                write!(f, "a snapshot is of version {got}, the copy is at {version}")
            }
            Self::Snapshot(error) => write!(f, "a snapshot can't be read: {error}"),
            Self::NoSnapshot(error) => write!(f, "two snapshots in a row can't be read: {error}"),
            Self::Message(error) => write!(f, "a message can't be read: {error}"),
            Self::Digest { version } => {
                write!(f, "the copy is not what it is to be at version {version}")
            }
        }
    }
}
