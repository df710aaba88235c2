//! The channels of one session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::RequestNumber;

use crate::shard::allowance::Allowance;

/// The channels of one session.
#[derive(Default)]
pub(crate) struct SessionChannels {
    pub(in crate::shard) subscriptions: Vec<Subscription>,
    /// The number of the last request to subscribe.
    pub(in crate::shard) serial: u32,
    /// After it was resumed: when it is a member no longer of channels to which it has not
    /// subscribed again.
    pub(in crate::shard) returns_by: Option<Duration>,
    /// The channels that it named last.
    pub(in crate::shard) named: VecDeque<Box<str>>,
    pub(in crate::shard) opened: Allowance,
    pub(in crate::shard) publishes: Allowance,
    pub(in crate::shard) subscribes: Allowance,
    pub(in crate::shard) reads: Allowance,
}

/// A session's subscription.
pub(in crate::shard) struct Subscription {
    pub(in crate::shard) name: Arc<str>,
    pub(in crate::shard) stage: Stage,
}

/// The stage of a subscription.
pub(in crate::shard) enum Stage {
    /// The home was asked. `member_of`: it is a member already, of the channel with this number.
    Pending { serial: u32, request: RequestNumber, wants_presence: bool, member_of: Option<u64> },
    /// Listed in the table of the channel with this number, at this place.
    Live { channel: u64, place: usize },
    /// The session's connection was lost, but it is a member of the channel with this number.
    Away { channel: u64 },
}
