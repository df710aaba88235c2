//! Messages that a client and a node owe each other across connections, as a state machine without
//! sockets, clocks or rooms.
//!
//! Each end counts the messages that must arrive exactly once, as `is_counted` of
//! [`ClientMessage`](playfield_wire::client::ClientMessage::is_counted) and
//! [`ServerMessage`](playfield_wire::server::ServerMessage::is_counted) says. The sender keeps them
//! in a [`Log`] until they are acknowledged, the receiver counts them in [`Received`]. When a
//! session is resumed, each end says how many it has received, and is sent the rest, in order.
//! State is not counted: a copy gets one patch from the version that it has, which [`SyncHistory`]
//! and [`SentHistory`] translate to a version of the room.

mod history;
mod log;
mod losses;
mod received;
mod token;

pub use history::{SentHistory, SyncHistory, VERSIONS_KNOWN};
pub use log::{Log, NeverSent, NotResumed, Passage};
pub use received::{ACK_DELAY, Received};
pub use token::{TOKEN_BYTES, Token, TokenKey};
