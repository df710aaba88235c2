//! The environment of a shard: its node, its number, and the time. Every part may use it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::entropy::Entropy;
use crate::node::Node;
use crate::pulse::Watch;
use crate::stats::Counters;

/// The facts and tools that all parts of a shard share.
pub(crate) struct Env {
    pub(in crate::shard) node: Arc<Node>,
    /// The shard's own number.
    pub(in crate::shard) shard: u16,
    /// When the turn began: the time since the node started.
    pub(crate) now: Duration,
    /// Counts the turns.
    pub(in crate::shard) turn: u64,
    pub(in crate::shard) is_shutting_down: bool,
    /// Set while the rooms and sessions are about to go on in another process.
    pub(in crate::shard) is_frozen: bool,
    pub(in crate::shard) counters: Counters,
    pub(in crate::shard) watch: Watch,
    pub(in crate::shard) stopwatch: Stopwatch,
    pub(in crate::shard) entropy: Entropy,
}

/// Measures how long something takes. Nothing but counters and the log depends on it.
#[derive(Clone)]
pub(crate) enum Stopwatch {
    Running(Instant),
    /// Set by a test: the time, and how much of it passes with each look, in nanoseconds.
    Held(Arc<[AtomicU64; 2]>),
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self::Running(Instant::now())
    }

    pub(crate) fn read(&self) -> Duration {
        match self {
            Self::Running(started) => started.elapsed(),
            Self::Held(held) => {
                let [nanoseconds, per_look] = &**held;
                let per_look = per_look.load(Ordering::Relaxed);
                Duration::from_nanos(nanoseconds.fetch_add(per_look, Ordering::Relaxed))
            }
        }
    }
}

impl Env {
    /// The thread waited this long for something to do.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.counters.waits_ns += nanoseconds(time);
    }

    /// Returns whether a connection from this address may begin with a PROXY header.
    pub(crate) fn is_proxy(&self, ip: IpAddr) -> bool {
        self.node.addresses.is_proxy(ip)
    }

    /// The time by the shard's stopwatch.
    pub(crate) fn stopwatch(&self) -> Duration {
        self.stopwatch.read()
    }
}

/// The text that clients are sent at the node's shutdown.
pub(in crate::shard) const SHUTTING_DOWN: &str = "the node is shutting down";

/// A time as counters have it.
pub(in crate::shard) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
