//! Channels: publish and subscribe by name, apart from rooms.
//!
//! State machines over names, sessions and the time, without sockets and threads:
//!
//! - [`ChannelRule`]: who may do what in the channels of a [`Pattern`], and what they keep;
//! - [`Channels`]: the channels whose home is one shard, with their offsets, history and members;
//! - [`Backlog`]: what waits for a subscriber that reads too slowly.

mod backlog;
mod channel;
mod channels;
mod creator;
mod history;
mod pattern;
mod publication;
mod rule;
mod shares;

pub use backlog::{Backlog, Pushed, Waiting};
pub use channel::{Change, Member, Members, Past, Start};
pub use channels::{Channels, Evicted, Full, Published, Subscribing, Totals, TotalsMax, home_of};
pub use creator::Creator;
pub use pattern::{Pattern, PatternError};
pub use publication::{Payload, Publication};
pub use rule::{Access, Asker, ChannelRule, ChannelRules, PayloadKind, Slow};
