//! Updates of rooms' copies, and why something failed.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::{PlayerId, ShapeError};
use playfield_wire::{DecodeError, ErrorCode};

use super::{CommandError, Learned, Translation, Unusable};

/// The copy of a room's state, which the session keeps up to date:
/// [`Session::set_copy`](super::Session::set_copy).
pub trait RoomCopy {
    /// Applies a snapshot or a patch. The session has checked its version.
    ///
    /// # Errors
    /// If the body can't be applied. The session then asks for a snapshot. If two snapshots in a
    /// row fail, it stops: the copy is frozen until [`Session::resync`](super::Session::resync)
    /// brings a good one.
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError>;

    /// Returns whether the copy has this digest, or can't tell. If it has another, the session asks
    /// for a snapshot.
    fn digest_is(&mut self, digest: u64) -> bool;

    /// The node's schema is needed to read updates, and unknown: keeps them until
    /// [`translate`](Self::translate) is called.
    fn hold(&mut self) {}

    /// Sets how to read updates, and for which player; applies those that were kept. Returns whether
    /// the copy now needs a snapshot.
    ///
    /// # Errors
    /// If no room can have the node's schema.
    fn translate(
        &mut self,
        translation: &Translation,
        player: PlayerId,
    ) -> Result<bool, ShapeError> {
        let _ = (translation, player);
        Ok(false)
    }

    /// Checks the options of a new room, as JSON, by the schema that was learned from the node.
    ///
    /// # Errors
    /// If the room is not to be asked for with them.
    fn check_options(&self, learned: &Learned, options: &[u8]) -> Result<(), DecodeError> {
        let _ = (learned, options);
        Ok(())
    }

    /// Returns whether a snapshot was applied, once one has come. One that is kept for later does
    /// not count.
    fn is_filled(&self) -> bool {
        true
    }
}

/// A change to a room's copy: a snapshot or a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The kind: a snapshot or a patch.
    pub kind: UpdateKind,
    /// The version of the copy once this is applied.
    pub version: u64,
    /// The body.
    pub body: &'a [u8],
}

/// A fault of a copy that was found when it could apply what it had kept:
/// [`Session::repair`](super::Session::repair).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// An update could not be applied: the copy needs a snapshot.
    Snapshot,
    /// Two snapshots in a row could not be read, so a third is of no use: the room is left.
    Leave,
}

/// The kind of an [`Update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateKind {
    /// Replaces the copy.
    Snapshot,
    /// Changes the copy.
    Patch,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<'a> {
    /// The node or the room refused.
    Refused {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
        /// The time to wait before asking again, if the node says so.
        retry_after: Option<Duration>,
    },
    /// This client left the room, or was removed, before the room answered.
    Left {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
    },
    /// The connection was lost, and the node had to forget the answer, or no longer had the
    /// session: whether the request was carried out is unknown. If it was a request to enter a
    /// room, and it is granted after all, the client leaves that room.
    Lost,
    /// The connection ended before the answer came.
    Closed,
    /// This client can't use the room that it asked to [enter](super::Session::enter).
    Unusable(Unusable),
    /// The request had to wait, and then could not be sent.
    NotSent(CommandError),
}

/// Why a room's copy fell out of step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfStep {
    /// A patch starts at another version than the copy's. The client ignored it and asked for a
    /// snapshot.
    Base {
        /// The version at which the patch starts.
        base: u64,
        /// The copy's version.
        version: u64,
    },
    /// A patch does not advance the version, so it could be applied repeatedly. The client ignored
    /// it and asked for a snapshot.
    NoAdvance {
        /// The patch's version.
        version: u64,
    },
    /// A patch's body can't be applied. The client asked for a snapshot.
    Patch(DecodeError),
    /// A snapshot is of another epoch than the room that was joined. The client ignored it and
    /// asked for another.
    Epoch {
        /// The epoch that was joined.
        joined: u64,
        /// The snapshot's.
        got: u64,
    },
    /// A snapshot is older than the copy. The client ignored it and asked for another.
    Older {
        /// The copy's version.
        version: u64,
        /// The snapshot's.
        got: u64,
    },
    /// A snapshot's body can't be read. The client asked for another.
    Snapshot(DecodeError),
    /// A second snapshot in a row can't be read. The client did not ask for another.
    NoSnapshot(DecodeError),
    /// The copy's digest differs from the node's. The client asked for a snapshot.
    Digest {
        /// The copy's version.
        version: u64,
    },
}

impl Failure<'_> {
    /// Copies everything that is borrowed.
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
            Self::Unusable(why) => Failure::Unusable(why.clone()),
            Self::NotSent(error) => Failure::NotSent(*error),
        }
    }
}

impl std::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused { code, text, .. } | Self::Left { code, text } => {
                write!(f, "{} {text}", code.name())
            }
            Self::Lost => f.write_str("the answer was lost with the connection"),
            Self::Closed => f.write_str("the connection has ended"),
            Self::Unusable(why) => why.fmt(f),
            Self::NotSent(error) => error.fmt(f),
        }
    }
}

impl std::fmt::Display for OutOfStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base { base, version } => {
                write!(f, "a patch starts at version {base}, but the copy is at {version}")
            }
            Self::NoAdvance { version } => {
                write!(f, "a patch to version {version} does not advance the copy")
            }
            Self::Patch(error) => write!(f, "a patch can't be applied: {error}"),
            Self::Epoch { joined, got } => {
                write!(f, "a snapshot is of epoch {got}, but the room was joined in epoch {joined}")
            }
            Self::Older { version, got } => {
                write!(f, "a snapshot is of version {got}, but the copy is at {version}")
            }
            Self::Snapshot(error) => write!(f, "a snapshot can't be read: {error}"),
            Self::NoSnapshot(error) => write!(f, "two snapshots in a row can't be read: {error}"),
            Self::Digest { version } => {
                write!(f, "the copy's digest at version {version} differs from the node's")
            }
        }
    }
}
