//! Bytes of a room's bodies, messages and events, by field and by name.
//!
//! ```text
//!  schema ──▶ Shape ──▶ Tree: a place for each field, `players.*.pos`
//!                         │
//!    body ──▶ Walk ──▶ Tally: the bytes of each place ──▶ StateProfile ──▶ rows
//!                                                      └──▶ Samples ──▶ FieldTime
//! ```

mod alternatives;
mod exchange;
mod state;
mod tally;
mod time;
mod tree;

pub use exchange::{ExchangeProfile, MessageCounts, MessageProfile, RoomProfile};
pub use state::{FieldCounts, FieldProfile, Saving, StateProfile, StateTime};
pub(crate) use tally::{Step, Tally};
pub use time::FieldTime;
