//! Events: what happens to a session.

use std::borrow::Cow;
use std::time::Duration;

use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use super::report::Report;
use super::{
    ClientError, Failure, OutOfStep, Subscribed, SubscriptionNumber, Translation, Unusable,
    UpdateKind,
};

/// Something that happened. Events come in order. What is borrowed is borrowed from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The node has answered the first hello.
    Welcome(server::Welcome<'a>),
    /// The connection was lost. The session, its rooms and its requests wait for
    /// [`Session::reconnect`](super::Session::reconnect).
    ConnectionLost {
        /// Why.
        error: ClientError,
    },
    /// An attempt to restore the connection ended before the node's welcome.
    AttemptFailed {
        /// Why.
        error: ClientError,
        /// Says whether the session gives up. [`Closed`](Self::Closed) follows.
        is_last: bool,
    },
    /// The session goes on over a new connection. What happened meanwhile follows. If the node had
    /// to forget some of it, the requests concerned [fail](Self::Failed) right after this.
    Resumed(server::Resumed),
    /// The connection is weak: a room with ticks was not heard for about a second, nor was anything
    /// else (`docs/protocol.md`, "Weak connections"). Or it is so no longer. A connection that is
    /// lost is no longer weak, without this.
    Weak {
        /// Says whether it is so now.
        is_weak: bool,
    },
    /// The node did not keep the session, and has opened a new one. This client is no longer in any
    /// room, and all requests have [failed](Self::Failed) just before: whether they were carried
    /// out is unknown.
    NewSession(server::Welcome<'a>),
    /// The session is over, and the node has not confirmed this many messages that expect no answer
    /// ([`Session::send`](super::Session::send) and the like): whether they were carried out is
    /// unknown. Comes right before [`NewSession`](Self::NewSession) or
    /// [`Closed`](Self::Closed), unless there are none.
    Unconfirmed {
        /// The number of sends.
        sends: u64,
    },
    /// A request to enter a room was granted. The room's snapshot follows.
    Joined(server::Joined<'a>),
    /// A request to enter a room was answered by a redirect: the room is at another node. The copy
    /// that was to be kept is dropped. A [`Route`](super::Route) says how the join goes on.
    Redirected(server::Redirect<'a>),
    /// A room that was asked for with [`Session::enter`](super::Session::enter) has its copy.
    Entered {
        /// The room, which was [joined](Self::Joined).
        room: RoomNumber,
        /// The translation to read and write its messages and events.
        translation: Translation,
    },
    /// This client can't be in a room that was [joined](Self::Joined), and leaves it.
    Unusable {
        /// The room.
        room: RoomNumber,
        /// Why.
        why: Unusable,
    },
    /// The answer to `list`.
    Listed(server::Listed<'a>),
    /// The schema of a room type, as JSON: the answer to the `schema` request that it names, or,
    /// right after the welcome, the schema of a room type for which this client
    /// [sent](super::ClientConfig::schemas) a different fingerprint; or, later, the one with which
    /// the node continues the rooms of a type. The session converts what it sends and receives in a
    /// room that it has [entered](super::Session::enter), and the program keeps its earlier schema.
    Schema(server::Schema<'a>),
    /// This client is no longer in a room. Requests that the room had not answered have
    /// [failed](Self::Failed) just before.
    Left(server::Left<'a>),
    /// The answer to a user message, or to a report.
    Reply(server::Reply<'a>),
    /// A request of any kind failed.
    Failed {
        /// The request.
        request: RequestNumber,
        /// Why.
        failure: Failure<'static>,
    },
    /// An event of a room.
    Event(server::Event<'a>),
    /// The node had to forget this many events of a room while the connection was lost. Comes
    /// right before the next event.
    Missed {
        /// The room's number.
        room: RoomNumber,
        /// The number of events.
        events: u64,
    },
    /// A snapshot or a patch was applied to a room's copy, or would be if there were one.
    Update {
        /// The room's number.
        room: RoomNumber,
        /// The kind: a snapshot or a patch.
        kind: UpdateKind,
        /// The version of the copy now.
        version: u64,
        /// The body, as the node sent it.
        body: Cow<'a, [u8]>,
    },
    /// A room's copy has the digest that it should have, or can't tell. Reported only if there is a
    /// copy.
    Checked {
        /// The room's number.
        room: RoomNumber,
        /// The version of the copy.
        version: u64,
    },
    /// A room's copy fell out of step. It is frozen until the next snapshot. If this happens more
    /// than [`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX) times in a row, the connection
    /// ends.
    OutOfStep {
        /// The room's number.
        room: RoomNumber,
        /// Why.
        why: OutOfStep,
    },
    /// The node refused a `send` to `room`, or reports an error of the connection.
    Error(server::Error<'a>),
    /// The node has answered a subscription, on this connection. Publications follow.
    Subscribed(SubscriptionNumber, Subscribed),
    /// A subscription has ended: the node has refused it, or ended it. Subscribe again with the
    /// position that was reached, if that makes sense.
    Unsubscribed {
        /// The subscription.
        subscription: SubscriptionNumber,
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// A publication of a channel. Each comes once, in order.
    Publication(SubscriptionNumber, server::Publication<'a>),
    /// The node has dropped this many publications, because this client was too slow. Comes right
    /// before the next publication.
    PublicationsMissed {
        /// Of which.
        subscription: SubscriptionNumber,
        /// The number of publications.
        publications: u64,
    },
    /// A publication came again, or after a later one. The client ignores it.
    PublicationIgnored {
        /// Of which.
        subscription: SubscriptionNumber,
        /// The publication's.
        offset: u64,
    },
    /// Another session subscribes to a channel, or does no longer.
    Presence(SubscriptionNumber, server::Presence<'a>),
    /// The answer to a confirmed `publish`: the publication's offset.
    Published(server::Published),
    /// The answer to `members`.
    Members(server::Members<'a>),
    /// The answer to `history`.
    History(server::History<'a>),
    /// This session is registered as a device: the answer to a request, or, without one, because
    /// the client has registered again in a new session.
    Registered {
        /// The request that this answers, if it does.
        request: Option<RequestNumber>,
        /// Says whether no device was registered under the id.
        is_new: bool,
        /// Says whether the payloads of the fleet are bytes, and not JSON.
        bytes: bool,
    },
    /// The node refused to register the device again in a new session.
    Unregistered {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// A command to this device. If it has a number, it is to be
    /// [answered](super::Session::answer) in this session.
    Command(server::Command<'a>),
    /// The answer to [`Session::ping`](super::Session::ping).
    Pong {
        /// That of the ping.
        nonce: u64,
        /// From ping to pong.
        round_trip: Duration,
    },
    /// The node ends the connection, and says why.
    Goodbye(server::Goodbye<'a>),
    /// The session has ended, by a goodbye or by an error. This is the last event. Unanswered
    /// requests have [failed](Self::Failed) just before.
    Closed {
        /// The error, if there is one.
        error: Option<ClientError>,
    },
}

impl<'a> Event<'a> {
    /// The event that a message is.
    #[inline]
    pub(super) fn of(message: ServerMessage<'a>, report: &Report) -> Option<Self> {
        Some(match (message, report) {
            (_, Report::Nothing) => return None,
            (ServerMessage::Patch(server::Patch { room, version, body, .. }), _) => {
                Self::Update { room, kind: UpdateKind::Patch, version, body }
            }
            (ServerMessage::Reply(reply), _) => Self::Reply(reply),
            (ServerMessage::Event(event), _) => Self::Event(event),
            (ServerMessage::Publication(publication), &Report::Of(subscription)) => {
                Self::Publication(subscription, publication)
            }
            (ServerMessage::Presence(presence), &Report::Of(subscription)) => {
                Self::Presence(subscription, presence)
            }
            (ServerMessage::Snapshot(server::Snapshot { room, version, body, .. }), _) => {
                Self::Update { room, kind: UpdateKind::Snapshot, version, body }
            }
            (ServerMessage::Joined(joined), _) => Self::Joined(joined),
            (ServerMessage::Redirect(redirect), _) => Self::Redirected(redirect),
            (ServerMessage::Left(left), _) => Self::Left(left),
            (ServerMessage::Listed(listed), _) => Self::Listed(listed),
            (ServerMessage::Schema(schema), _) => Self::Schema(schema),
            (ServerMessage::Published(published), _) => Self::Published(published),
            (ServerMessage::Members(members), _) => Self::Members(members),
            (ServerMessage::History(history), _) => Self::History(history),
            (ServerMessage::Command(command), _) => Self::Command(command),
            (ServerMessage::Error(error), _) => Self::Error(error),
            // These are never reported themselves.
            (
                ServerMessage::Welcome(_)
                | ServerMessage::Check(_)
                | ServerMessage::Ping(_)
                | ServerMessage::Pong(_)
                | ServerMessage::Ack(_)
                | ServerMessage::Publication(_)
                | ServerMessage::Presence(_)
                | ServerMessage::Subscribed(_)
                | ServerMessage::Unsubscribed(_)
                | ServerMessage::Registered(_)
                | ServerMessage::Goodbye(_),
                _,
            ) => return None,
        })
    }

    /// Copies everything that is borrowed.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Self::Welcome(welcome) => Event::Welcome(welcome.into_owned()),
            Self::ConnectionLost { error } => Event::ConnectionLost { error },
            Self::AttemptFailed { error, is_last } => Event::AttemptFailed { error, is_last },
            Self::Resumed(resumed) => Event::Resumed(resumed),
            Self::Weak { is_weak } => Event::Weak { is_weak },
            Self::NewSession(welcome) => Event::NewSession(welcome.into_owned()),
            Self::Unconfirmed { sends } => Event::Unconfirmed { sends },
            Self::Joined(joined) => Event::Joined(joined.into_owned()),
            Self::Redirected(redirect) => Event::Redirected(redirect.into_owned()),
            Self::Entered { room, translation } => Event::Entered { room, translation },
            Self::Unusable { room, why } => Event::Unusable { room, why },
            Self::Listed(listed) => Event::Listed(listed.into_owned()),
            Self::Schema(schema) => Event::Schema(schema.into_owned()),
            Self::Left(left) => Event::Left(left.into_owned()),
            Self::Reply(reply) => Event::Reply(reply.into_owned()),
            Self::Failed { request, failure } => Event::Failed { request, failure },
            Self::Event(event) => Event::Event(event.into_owned()),
            Self::Missed { room, events } => Event::Missed { room, events },
            Self::Update { room, kind, version, body } => {
                Event::Update { room, kind, version, body: Cow::Owned(body.into_owned()) }
            }
            Self::Checked { room, version } => Event::Checked { room, version },
            Self::OutOfStep { room, why } => Event::OutOfStep { room, why },
            Self::Error(error) => Event::Error(error.into_owned()),
            Self::Subscribed(subscription, subscribed) => {
                Event::Subscribed(subscription, subscribed)
            }
            Self::Unsubscribed { subscription, code, text } => {
                Event::Unsubscribed { subscription, code, text }
            }
            Self::Publication(subscription, publication) => {
                Event::Publication(subscription, publication.into_owned())
            }
            Self::PublicationsMissed { subscription, publications } => {
                Event::PublicationsMissed { subscription, publications }
            }
            Self::PublicationIgnored { subscription, offset } => {
                Event::PublicationIgnored { subscription, offset }
            }
            Self::Presence(subscription, presence) => {
                Event::Presence(subscription, presence.into_owned())
            }
            Self::Published(published) => Event::Published(published),
            Self::Members(members) => Event::Members(members.into_owned()),
            Self::History(history) => Event::History(history.into_owned()),
            Self::Registered { request, is_new, bytes } => {
                Event::Registered { request, is_new, bytes }
            }
            Self::Unregistered { code, text } => Event::Unregistered { code, text },
            Self::Command(command) => Event::Command(command.into_owned()),
            Self::Pong { nonce, round_trip } => Event::Pong { nonce, round_trip },
            Self::Goodbye(goodbye) => Event::Goodbye(goodbye.into_owned()),
            Self::Closed { error } => Event::Closed { error },
        }
    }
}
