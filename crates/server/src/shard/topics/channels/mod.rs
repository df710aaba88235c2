//! Channels, as a shard knows them: those whose home it is, and those that its sessions subscribe
//! to.
//!
//! A channel has a home, the shard that its name picks, which orders its publications, keeps its
//! history and knows its members. The home sends each publication once to every shard with
//! subscribers; that shard writes it once for each way in which its clients are spoken to, and
//! appends those bytes to the outbox of each.

mod ending;
mod frames;
mod home;
mod lifetime;
mod requests;
mod subscribers;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::SeedableRandomState;
use playfield_room::Error;
use playfield_wire::RequestNumber;
use playfield_wire::client::Position;

use crate::addresses::Address;
use crate::channel::{
    Backlog, Change, ChannelRule, Channels, Member, Members, Past, Payload, PayloadKind, Start,
    TotalsMax,
};
use crate::node::Node;
use crate::shard::allowance::Allowance;
use crate::shard::keys::ConnectionKey;
pub(crate) use crate::shard::topics::channels::ending::{Unsubscribe, Whose};
use crate::shard::topics::channels::frames::Frames;

/// All that a shard keeps of channels.
pub(crate) struct ShardChannels {
    /// Channels whose home this shard is.
    pub(crate) home: Channels,
    /// Channels that sessions of this shard subscribe to, by number.
    local: HashMap<u64, LocalChannel>,
    /// When the turn began.
    pub(crate) now: Duration,
    /// How many subscriptions sessions of this shard have.
    pub(crate) subscriptions: u64,
    /// Kept for their memory.
    frames: Frames,
}

/// A channel that sessions of this shard subscribe to.
struct LocalChannel {
    rule: Arc<ChannelRule>,
    subscribers: Vec<Subscriber>,
}

/// A session that subscribes.
struct Subscriber {
    connection: ConnectionKey,
    wants_presence: bool,
    /// Publications that wait for it, if it reads too slowly.
    backlog: Option<Box<Backlog>>,
}

/// The channels of one session.
#[derive(Default)]
pub(crate) struct SessionChannels {
    subscriptions: Vec<Subscription>,
    /// The number of the last request to subscribe.
    serial: u32,
    /// After it was resumed: when it is a member no longer of channels to which it has not
    /// subscribed again.
    returns_by: Option<Duration>,
    /// The channels that it named last.
    named: VecDeque<Box<str>>,
    opened: Allowance,
    publishes: Allowance,
    subscribes: Allowance,
    reads: Allowance,
}

/// A session's subscription.
struct Subscription {
    name: Arc<str>,
    stage: Stage,
}

enum Stage {
    /// The home was asked. `member_of`: it is a member already, of the channel with this number.
    Pending { serial: u32, request: RequestNumber, wants_presence: bool, member_of: Option<u64> },
    /// Listed in the table of the channel with this number, at this place.
    Live { channel: u64, place: usize },
    /// The session's connection was lost, but it is a member of the channel with this number.
    Away { channel: u64 },
}

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

/// Converts a payload that a room or the program publishes.
pub(crate) fn payload_of(payload: playfield_room::Payload) -> Payload {
    match payload {
        playfield_room::Payload::Json(text) => Payload::Json(text.into()),
        playfield_room::Payload::Bytes(bytes) => Payload::Bytes(bytes.into()),
    }
}

impl ShardChannels {
    pub(crate) fn new(node: &Node, shard: u16, seed: u64, hasher: SeedableRandomState) -> Self {
        let max = TotalsMax {
            channels: node.config.channels_max,
            history_bytes: node.config.channel_history_bytes_max,
        };
        let totals = Arc::clone(&node.channel_totals);
        let linger = node.config.channel_linger();
        Self {
            home: Channels::new((shard, node.shards), (seed, hasher), linger, totals, max),
            local: HashMap::new(),
            now: Duration::ZERO,
            subscriptions: 0,
            frames: Frames::default(),
        }
    }
}
