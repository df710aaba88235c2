//! Shards, listeners, sessions and limits: what runs rooms for clients.
//!
//! A [`Server`] is put together, and [started](Server::start). Each of its shards is then one
//! thread, and has two parts:
//!
//! - `event_loop`, the edge: sockets, the clock, one poll, and the turn, in one file;
//! - `shard`, everything else, as a state machine over bytes, mail and time, which tests drive
//!   without either.
//!
//! Protocols of one's own, beside those of the rooms, are [services](service).
//!
//! Shards share no connection, session or room. What goes from one to another goes through a
//! bounded `mailbox`; where rooms are is in the `directory`, which is asked when one is made,
//! joined or listed. Work that waits or computes for long runs in `control`, and ends as mail.

mod auth;
mod background;
mod config;
mod control;
mod directory;
mod entropy;
mod event_loop;
mod logging;
mod mailbox;
mod node;
mod pages;
mod room_id;
mod server;
pub mod service;
mod shard;
mod stats;
mod sys;
mod watchdog;

pub use auth::{Authenticator, Guests, Identity};
pub use config::{Config, ConfigError, Origin, Setting, settings};
pub use log::LevelFilter;
pub use logging::log_to_stderr;
pub use server::{Running, Server, Stopper};
pub use stats::{ShardStats, Stats};
