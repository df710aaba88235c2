//! Bytes of a room's bodies, messages and events, by field and by name.
//!
//! ```text
//!  schema ──▶ Shape ──▶ Tree: a place for each field, `players.*.pos`
//!                         │
//!    body ──▶ Walk ──▶ Tally: the bytes of each place ──▶ StateProfile ──▶ rows
//!    sync ──▶ Tracker ──▶ SyncProbe: the time of each place
//! ```

mod alternatives;
mod exchange;
mod probe;
mod state;
mod tally;
mod tree;

pub use exchange::{ExchangeProfile, MessageCounts, MessageProfile, RoomProfile};
pub use probe::{Beside, PlaceTime, Probing, Spent, SyncProbe, beside};
pub(crate) use probe::{Point, Work};
pub use state::{FieldCounts, FieldProfile, Saving, StateProfile};
pub(crate) use tally::{Step, Tally};
