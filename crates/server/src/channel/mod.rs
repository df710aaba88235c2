//! Channels: publish and subscribe by name, apart from rooms.
//!
//! State machines over names, sessions and the time, without sockets and threads:
//!
//! - [`ChannelRule`]: who may do what in the channels of a [`Pattern`], and what they keep;
//! - `Channels`: the channels whose home is one shard, with their offsets, history and members;
//! - `Backlog`: what waits for a subscriber that reads too slowly.

mod access;
pub(crate) mod backlog;
pub(crate) mod channels;
pub(crate) mod creator;
pub(crate) mod entry;
pub(crate) mod frozen;
mod history;
mod pattern;
#[cfg(test)]
mod properties;
pub(crate) mod publication;
mod rule;
mod shares;

pub use access::{Access, Asker};
pub use pattern::{Pattern, PatternError};
pub use rule::{ChannelRule, PayloadKind, Slow};

pub(crate) use backlog::{Backlog, Pushed, Waiting};
pub(crate) use channels::{Channels, Full, Published, Subscribing, Totals, TotalsMax, home_of};
pub(crate) use creator::Creator;
pub(crate) use entry::{Change, Member, Members, Past, Start};
pub(crate) use publication::{Payload, Publication};
pub(crate) use rule::ChannelRules;
