//! Mail about channels.

use std::sync::Arc;

use playfield_room::Error;
use playfield_wire::RequestNumber;
use playfield_wire::client::Position;

use crate::addresses::Address;
use crate::channel::{Change, Member, Members, Past, Pattern, Payload, PayloadKind, Start};
use crate::shard::keys::ConnectionKey;
use crate::users::Place;

/// Messages between shards about channels.
pub(crate) enum ChannelMail {
    /// To the home: a session subscribes.
    Subscribe {
        shard: u16,
        connection: ConnectionKey,
        serial: u32,
        name: Arc<str>,
        member: Member,
        since: Option<Position>,
        creator: Arc<Address>,
    },
    /// To the session's shard: how it begins. What is published from here on follows.
    Subscribed {
        connection: ConnectionKey,
        serial: u32,
        name: Arc<str>,
        session: u64,
        start: Result<Start, Error>,
    },
    /// To the home: a publication, and who is to hear its offset.
    Publish {
        name: Arc<str>,
        user: Option<Arc<str>>,
        payload: Payload,
        /// The client's address, if one publishes.
        creator: Option<Arc<Address>>,
        answers: Option<(u16, ConnectionKey, RequestNumber)>,
    },
    /// To the session's shard: what became of its publication.
    Published { connection: ConnectionKey, request: RequestNumber, offset: Result<u64, Error> },
    /// To another home: all channels keep too much, and those there more than an equal part.
    RelieveHistories,
    /// To shards with subscribers: a change of the members.
    Change { channel: u64, change: Arc<Change> },
    /// To the home: a session asks for the members.
    ListMembers { shard: u16, connection: ConnectionKey, request: RequestNumber, name: Arc<str> },
    /// To the session's shard: the members.
    Members { connection: ConnectionKey, request: RequestNumber, members: Members },
    /// To the home: a session asks for past publications.
    ReadHistory {
        shard: u16,
        connection: ConnectionKey,
        request: RequestNumber,
        name: Arc<str>,
        kind: PayloadKind,
        since: Option<Position>,
        count_max: usize,
    },
    /// To the session's shard: past publications.
    History { connection: ConnectionKey, request: RequestNumber, kind: PayloadKind, past: Past },
}

/// Subscriptions that are to end.
#[derive(Debug)]
pub(crate) struct Unsubscribe {
    pub(crate) whose: Whose,
    /// The channels to unsubscribe from.
    pub(crate) channels: Pattern,
    /// The text that clients are sent.
    pub(crate) text: String,
}

/// The sessions whose subscriptions are meant.
#[derive(Debug)]
pub(crate) enum Whose {
    /// Subscriptions of these sessions, as far as they are on the shard.
    At(Vec<Place>),
    /// Subscriptions of the session with this number, whichever shard it is on.
    Session(u64),
}

impl ChannelMail {
    /// The address of the client that subscribes or publishes.
    pub(in crate::shard) fn creator(&self) -> Option<&Arc<Address>> {
        match self {
            Self::Subscribe { creator, .. } => Some(creator),
            Self::Publish { creator, .. } => creator.as_ref(),
            _ => None,
        }
    }
}
