//! The engine of clusters over NATS.
//!
//! Core NATS carries messages between nodes. JetStream keeps the few records that decide, all in
//! one stream, so that they share one sequence, and changes them by compare-and-set. Tools for
//! key-value buckets can read it: `nats kv ls pf_<cluster>`.
//!
//! ```text
//!  host ── begin ──▶ State ── handed over at once ──▶ client ──▶ nats-server
//!       ◀── next ───       ◀── Driver: answers, messages, time-outs, the next connection
//! ```
//!
//! A client of `async-nats` is used for one connection only. A command belongs to the connection on
//! which it was handed over, and is never sent on another one.
//!
//! The feature `testing` has a server for tests.

mod api;
mod complaints;
mod connection;
mod driver;
mod engine;
mod error;
mod names;
mod outlet;
mod pending;
mod settings;
mod setup;
mod state;
#[cfg(all(feature = "testing", unix))]
pub mod testing;

pub use engine::NatsEngine;
pub(crate) use engine::{Shared, lock};
pub use error::ConnectError;
pub use settings::Settings;

/// The size up to which messages can be sent, in bytes.
pub const MESSAGE_MAX: usize = 512 << 10;
