//! The callbacks through which a client reports what happens.

use std::borrow::Cow;
use std::time::Duration;

use playfield_wire::server;
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};

use super::{ClientError, Subscribed, SubscriptionNumber};

/// Callbacks for everything that happens, called in order. Arguments are borrowed from the input.
///
/// Each method does nothing by default. [`EventQueue`](super::EventQueue) is a handler that stores
/// everything for later.
#[allow(unused_variables, reason = "the parameters' names are for those who implement them")]
pub trait Handler {
    /// The node has answered the first hello.
    fn welcome(&mut self, welcome: &server::Welcome<'_>) {}

    /// The connection was lost. The session, its rooms and its requests wait for
    /// [`Client::reconnect`](super::Client::reconnect).
    fn connection_lost(&mut self, error: &ClientError) {}

    /// The session goes on over a new connection. What happened meanwhile follows. If the node had
    /// to forget some of it, the requests concerned [fail](Self::failed) right after this.
    fn resumed(&mut self, resumed: &server::Resumed) {}

    /// The connection is weak: a room with ticks was not heard for about a second, nor was anything
    /// else (`docs/protocol.md`, "Weak connections"). Or it is so no longer. A connection that is
    /// lost is no longer weak, without this.
    fn weak(&mut self, is_weak: bool) {}

    /// The node did not keep the session, and has opened a new one. This client is no longer in any
    /// room, and all requests have [`failed`](Self::failed) just before: whether they were carried
    /// out is unknown.
    fn new_session(&mut self, welcome: &server::Welcome<'_>) {}

    /// The session is over, and the node has not confirmed this many messages that expect no answer
    /// ([`Client::send`](super::Client::send) and the like): whether they were carried out is
    /// unknown. Called right before [`new_session`](Self::new_session) or
    /// [`closed`](Self::closed), unless there are none.
    fn unconfirmed(&mut self, sends: u64) {}

    /// A request to enter a room was granted. The room's snapshot follows.
    fn joined(&mut self, joined: &server::Joined<'_>) {}

    /// The answer to `list`.
    fn listed(&mut self, listed: &server::Listed<'_>) {}

    /// The schema of a room type, as JSON: the answer to the `schema` request that it names, or,
    /// right after the welcome, the schema of a room type for which this client
    /// [sent](super::ClientConfig::schemas) a different fingerprint.
    fn schema(&mut self, schema: &server::Schema<'_>) {}

    /// This client is no longer in a room. Requests that the room had not answered have
    /// [`failed`](Self::failed) just before.
    fn left(&mut self, left: &server::Left<'_>) {}

    /// The answer to a user message, or to a report.
    fn reply(&mut self, reply: &server::Reply<'_>) {}

    /// A request of any kind failed.
    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {}

    /// An event of a room.
    fn event(&mut self, event: &server::Event<'_>) {}

    /// The node had to forget this many events of a room while the connection was lost. Called
    /// right before the next event.
    fn missed(&mut self, room: RoomNumber, events: u64) {}

    /// A snapshot or a patch to apply to a room's copy. The client has checked its version.
    ///
    /// # Errors
    /// If the body can't be applied. The client then asks for a snapshot. If two snapshots in a row
    /// fail, it stops: the copy is frozen until [`Client::resync`](super::Client::resync) brings a
    /// good one.
    fn update(&mut self, room: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        Ok(())
    }

    /// The digest that a room's copy should have at its current version. Return whether it has; if
    /// not, the client asks for a snapshot. Return `true` if the copy's digest is unknown.
    fn check(&mut self, room: RoomNumber, digest: u64) -> bool {
        true
    }

    /// A room's copy fell out of step. It is frozen until the next snapshot. If this happens more
    /// than [`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX) times in a row, the connection
    /// ends.
    fn out_of_step(&mut self, room: RoomNumber, why: &OutOfStep) {}

    /// The node refused a `send` to `room`, or reports an error of the connection.
    fn error(&mut self, error: &server::Error<'_>) {}

    /// The node has answered a subscription, on this connection. Publications follow.
    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {}

    /// A subscription has ended: the node has refused it, or ended it. Subscribe again with the
    /// position that was reached, if that makes sense.
    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {}

    /// A publication of a channel. Each comes once, in order.
    fn publication(
        &mut self,
        subscription: SubscriptionNumber,
        publication: &server::Publication<'_>,
    ) {
    }

    /// The node has dropped this many publications, because this client was too slow. Called right
    /// before the next publication.
    fn publications_missed(&mut self, subscription: SubscriptionNumber, publications: u64) {}

    /// A publication came again, or after a later one. The client ignores it.
    fn publication_ignored(&mut self, subscription: SubscriptionNumber, offset: u64) {}

    /// Another session subscribes to a channel, or does no longer.
    fn presence(&mut self, subscription: SubscriptionNumber, presence: &server::Presence<'_>) {}

    /// The answer to a confirmed `publish`: the publication's offset.
    fn published(&mut self, published: &server::Published) {}

    /// The answer to `members`.
    fn members(&mut self, members: &server::Members<'_>) {}

    /// The answer to `history`. Payloads are in the connection's format.
    fn history(&mut self, history: &server::History<'_>) {}

    /// This session is registered as a device: the answer to a request, or, without one, because
    /// the client has registered again in a new session. `bytes` says that commands, reports and
    /// their replies are bytes, and not JSON.
    fn registered(&mut self, request: Option<RequestNumber>, is_new: bool, bytes: bool) {}

    /// The node refused to register the device again in a new session.
    fn unregistered(&mut self, code: ErrorCode, text: &str) {}

    /// A command to this device. If it has a number, it is to be
    /// [answered](super::Client::answer) in this session.
    fn command(&mut self, command: &server::Command<'_>) {}

    /// The answer to [`Client::ping`](super::Client::ping).
    fn pong(&mut self, nonce: u64, round_trip: Duration) {}

    /// An error about the connection says how long the node wants the client to wait before it
    /// connects again. [`goodbye`](Self::goodbye) may follow.
    fn retry_after(&mut self, retry_after: Duration) {}

    /// The node ends the connection, and says why.
    fn goodbye(&mut self, goodbye: &server::Goodbye<'_>) {}

    /// The session has ended, by a goodbye or by an error. This is the last call. Unanswered
    /// requests have [`failed`](Self::failed) just before.
    fn closed(&mut self, error: Option<&ClientError>) {}
}

/// A change to a room's copy: a snapshot or a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Which of the two it is.
    pub kind: UpdateKind,
    /// The version of the copy once this is applied.
    pub version: u64,
    /// The body, in the connection's format.
    pub body: &'a [u8],
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
        /// How long to wait before asking again, if the node says so.
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
