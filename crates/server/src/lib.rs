//! Shards, listeners, sessions and limits: what holds the connections and runs the rooms.
//!
//! ```text
//! sockets ──▶ event loop ──▶ shard ──▶ rooms
//!   (mio)      (a thread)   (no sockets, no clock)
//! ```
//!
//! A [`Server`] starts one thread for each shard. Each has an event loop of its own, and a shard: a state machine over bytes,
//! mail and time that owns its connections, their sessions and the rooms. Shards share nothing but the directory of rooms,
//! which is asked when someone creates, joins or lists, and the mailboxes through which they write to each other.

mod auth;
mod background;
mod config;
mod directory;
mod event_loop;
mod mailbox;
mod pages;
mod server;
mod shard;
mod slab;
mod stats;
mod sys;
mod watchdog;

pub use auth::{Authenticator, Credentials, Guests, Identity};
pub use config::{Config, ConfigError, Setting, settings};
pub use server::{Running, Server, Stopper};
pub use stats::{ShardStats, Stats};
