//! Shards, listeners, sessions and limits: what runs rooms for clients.
//!
//! A [`Server`] is configured, then [started](Server::start). Each of its shards is one thread with
//! two parts:
//!
//! - `event_loop`, the edge: sockets, the clock, one poll, and the turn, in one file;
//! - `shard`, everything else, as a state machine over bytes, mail and time, which tests drive
//!   without either.
//!
//! Custom protocols, which don't use rooms, are [services](service).
//!
//! Shards share no connection, session or room. What goes from one to another goes through a
//! bounded `mailbox`; the `directory` knows where rooms are, and is asked when one is created,
//! joined or listed, and `addresses` what each client address uses. Work that waits or computes for
//! long runs in `control`, and ends as mail.
//!
//! A new process takes over from a running one by `upgrade`.
//!
//! [`config`] has the settings. [`channel`] and [`device`] hold what shards know of channels and
//! devices. Both are state machines without sockets and threads.

mod addresses;
mod asks;
mod auth;
mod away;
mod background;
pub mod channel;
mod clock;
mod cluster;
pub mod config;
mod control;
mod counted;
pub mod device;
mod directory;
mod entropy;
mod event_loop;
mod fleet;
mod founding;
mod handle;
pub mod http;
mod journal;
mod kept_store;
mod logging;
mod mailbox;
mod memory;
mod memory_limit;
mod moved;
mod node;
mod panics;
mod program;
mod proxy;
mod pulse;
pub mod reach;
mod recordings;
mod room_id;
mod server;
pub mod service;
mod shard;
mod shard_thread;
mod sought;
mod stats;
mod sys;
#[doc(hidden)]
pub mod testing;
mod tickets;
mod tls;
mod upgrade;
mod users;
mod waker;
mod watchdog;

pub use axum;

pub use auth::{AsyncAuthenticator, Authenticator, Decided, Deciding, Decision, Guests, Identity};
pub use clock::Pace;
pub use cluster::{ConnectEngine, ConnectedEngine, Connecting, Drained};
pub use config::{
    ClientUrl, Config, ConfigError, Descriptors, EngineUrl, Network, Origin, Quota, RateLimit,
    Secret, Setting, closest, renamed, settings,
};
pub use directory::RoomOrder;
pub use fleet::{Duplicates, Fleet, FleetSettings, Gone};
pub use handle::{
    Asked, AtNode, Devices, FoundPlayer, FoundPlayers, Inspection, Limit, ListedRoom, LiveProfile,
    NodeHandle, OperatedRoom, Operator, Pending, Recorded, RecordedKind, RecordingFacts, RoomCost,
    RoomLoad, Subscriber,
};
pub use log::LevelFilter;
pub use logging::log_to_stderr;
pub use recordings::{RecordingFile, RecordingSource};
pub use server::{Running, Server, Stopper};
pub use stats::{ShardStats, Stats};
pub use tickets::{TicketChecker, TicketPass, TicketRoom};
pub use tls::SelfSigned;
pub use upgrade::{Upgrade, UpgradeError, Upgraded};
