//! The client: a state machine over bytes, and on tokio.

pub mod core;
