//! State that the shards' threads share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::clock::{Clock, Pace};
use crate::config::Config;
use crate::http::Handover;
use crate::mailbox::Mailbox;
use crate::pulse::ControlPulse;
use crate::sys;
use crate::tls::TlsContext;
use crate::upgrade::gate::Gate;

/// State that the shards' threads share.
pub(crate) struct SharedRuntime {
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) clock: Clock,
    pub(crate) pace: Pace,
    /// The node is to stop.
    pub(crate) stops: AtomicBool,
    /// The gate at which the shards stop for an upgrade.
    pub(crate) gate: Gate,
    /// No other process touches the connections that it has passed on.
    pub(crate) is_alone: AtomicBool,
    /// During a shutdown, the shards whose rooms have ended.
    pub(crate) closed: Vec<AtomicBool>,
    /// Connections of all shards.
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_max: usize,
    pub(crate) shutdown_timeout: Duration,
    /// The address that clients of rooms connect to.
    pub(crate) rooms_addr: OnceLock<SocketAddr>,
    pub(crate) tls: Option<Arc<TlsContext>>,
    pub(crate) tls_only: bool,
    /// The descriptor tables, if each shard has its own.
    pub(crate) tables: Option<Arc<sys::Tables>>,
    pub(crate) work: Work,
    /// The runtime of the control thread, once it has one.
    pub(crate) control: OnceLock<Handle>,
    pub(crate) control_pulse: ControlPulse,
    /// The queue for connections that speak HTTP.
    pub(crate) handover: Handover,
}

/// The amount of background work.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) tasks: Arc<AtomicUsize>,
    /// Computations that wait for a thread.
    pub(crate) computations: AtomicUsize,
    /// Clients whose authentication waits.
    pub(crate) authentications: Arc<AtomicUsize>,
}

impl SharedRuntime {
    /// The state for shards with these mailboxes and the descriptor table of the process, without
    /// TLS.
    pub(crate) fn new(
        config: &Config,
        pace: Pace,
        mailboxes: Vec<Mailbox>,
        handover: Handover,
    ) -> Self {
        Self {
            closed: mailboxes.iter().map(|_| AtomicBool::new(false)).collect(),
            mailboxes,
            clock: Clock::start(pace, Duration::ZERO),
            pace,
            stops: AtomicBool::new(false),
            gate: Gate::default(),
            is_alone: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            connections_max: config.limits.connections.total,
            shutdown_timeout: config.timeouts.shutdown,
            rooms_addr: OnceLock::new(),
            tls: None,
            tls_only: config.tls.only,
            tables: None,
            work: Work::default(),
            control: OnceLock::new(),
            control_pulse: ControlPulse::default(),
            handover,
        }
    }

    /// The rooms of a shard have ended, or the shard has.
    pub(crate) fn close(&self, shard: usize) {
        self.closed[shard].store(true, Ordering::Release);
        self.wake_all();
    }

    /// Returns whether no shard has rooms any more.
    pub(super) fn has_closed(&self) -> bool {
        self.closed.iter().all(|closed| closed.load(Ordering::Acquire))
    }

    /// Counts a connection in the descriptor table of a shard, if there is space.
    pub(super) fn takes(&self, shard: usize) -> bool {
        self.tables.as_deref().is_none_or(|tables| tables.takes(shard))
    }

    /// Counts a connection of the control thread, if there may be one more.
    pub(crate) fn counts_connection(&self) -> bool {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let has_space = before < self.connections_max && self.takes(self.mailboxes.len());
        if !has_space {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
        has_space
    }

    /// A connection has left the descriptor table of a shard.
    pub(crate) fn gives_back(&self, shard: usize) {
        if let Some(tables) = &self.tables {
            tables.gives_back(shard);
        }
    }

    /// Begins a turn of each shard.
    pub(crate) fn wake_all(&self) {
        for mailbox in &self.mailboxes {
            if let Err(error) = mailbox.wake() {
                log::warn!("a shard could not be woken: {error}");
            }
        }
    }
}
