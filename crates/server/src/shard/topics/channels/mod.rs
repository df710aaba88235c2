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

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::SeedableRandomState;

use crate::channel::{Backlog, ChannelRule, Channels, Payload, TotalsMax};
use crate::node::Node;
use crate::shard::keys::ConnectionKey;
use crate::shard::topics::channels::frames::Frames;

/// All that a shard keeps of channels.
pub(crate) struct ShardChannels {
    /// Channels whose home this shard is.
    pub(crate) home: Channels,
    /// Channels that sessions of this shard subscribe to, by number.
    local: HashMap<u64, LocalChannel>,
    /// When the turn began.
    pub(crate) now: Duration,
    /// The number of subscriptions of this shard's sessions.
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
            channels: node.config.limits.channels.total,
            history_bytes: node.config.limits.history_bytes.total,
        };
        let totals = Arc::clone(&node.channel_totals);
        let linger = node.config.timeouts.channel;
        Self {
            home: Channels::new((shard, node.shards), (seed, hasher), linger, totals, max),
            local: HashMap::new(),
            now: Duration::ZERO,
            subscriptions: 0,
            frames: Frames::default(),
        }
    }
}
