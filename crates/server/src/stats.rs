//! What a node counts.

use std::sync::{Mutex, PoisonError};

/// What one shard counted. Shards publish it at the end of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Open connections.
    pub connections: u64,
    /// Connections that have said hello.
    pub sessions: u64,
    /// Rooms.
    pub rooms: u64,
    /// Messages from clients.
    pub messages_in: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Patches and snapshots sent.
    pub patches: u64,
    /// Patches not sent because a connection had not drained.
    pub conflated: u64,
    /// Events sent.
    pub events: u64,
    /// Ticks.
    pub ticks: u64,
    /// Ticks left out because the shard was late.
    pub ticks_skipped: u64,
    /// The latest that a tick or sync began after its time, microseconds.
    pub late_us_max: u64,
}

/// What a node counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By shard.
    pub shards: Vec<ShardStats>,
    /// No shard is held up by a handler that does not return.
    pub healthy: bool,
}

impl Stats {
    /// All shards together (`late_us_max`: the greatest).
    pub fn total(&self) -> ShardStats {
        self.shards.iter().fold(ShardStats::default(), |total, shard| total.plus(*shard))
    }
}

impl ShardStats {
    fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            sessions: self.sessions + other.sessions,
            rooms: self.rooms + other.rooms,
            messages_in: self.messages_in + other.messages_in,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
            patches: self.patches + other.patches,
            conflated: self.conflated + other.conflated,
            events: self.events + other.events,
            ticks: self.ticks + other.ticks,
            ticks_skipped: self.ticks_skipped + other.ticks_skipped,
            late_us_max: self.late_us_max.max(other.late_us_max),
        }
    }
}

/// Where a shard publishes what it counted, once a turn. Nobody else holds the lock for longer than it takes to copy it.
#[derive(Debug, Default)]
pub(crate) struct Published(Mutex<ShardStats>);

impl Published {
    pub(crate) fn publish(&self, stats: ShardStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    pub(crate) fn read(&self) -> ShardStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
