//! What a node counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
        self.shards.iter().fold(ShardStats::default(), |sum, shard| {
            let (sum, shard) = (sum.to_array(), shard.to_array());
            let mut total = [0; FIELDS];
            for (place, total) in total.iter_mut().enumerate() {
                *total = if place == LATE { sum[place].max(shard[place]) } else { sum[place] + shard[place] };
            }
            ShardStats::from_array(total)
        })
    }
}

const FIELDS: usize = 12;
const LATE: usize = 11;

impl ShardStats {
    fn to_array(self) -> [u64; FIELDS] {
        let Self { connections, sessions, rooms, messages_in, bytes_in, bytes_out, .. } = self;
        let Self { patches, conflated, events, ticks, ticks_skipped, late_us_max, .. } = self;
        [
            connections,
            sessions,
            rooms,
            messages_in,
            bytes_in,
            bytes_out,
            patches,
            conflated,
            events,
            ticks,
            ticks_skipped,
            late_us_max,
        ]
    }

    fn from_array(of: [u64; FIELDS]) -> Self {
        let [
            connections,
            sessions,
            rooms,
            messages_in,
            bytes_in,
            bytes_out,
            patches,
            conflated,
            events,
            ticks,
            ticks_skipped,
            late_us_max,
        ] = of;
        Self {
            connections,
            sessions,
            rooms,
            messages_in,
            bytes_in,
            bytes_out,
            patches,
            conflated,
            events,
            ticks,
            ticks_skipped,
            late_us_max,
        }
    }
}

/// Where a shard publishes what it counted.
#[derive(Debug, Default)]
pub(crate) struct Published([AtomicU64; FIELDS]);

impl Published {
    pub(crate) fn publish(&self, stats: ShardStats) {
        for (cell, value) in self.0.iter().zip(stats.to_array()) {
            cell.store(value, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> ShardStats {
        let mut values = [0; FIELDS];
        for (value, cell) in values.iter_mut().zip(&self.0) {
            *value = cell.load(Relaxed);
        }
        ShardStats::from_array(values)
    }
}
