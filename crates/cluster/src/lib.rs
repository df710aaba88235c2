//! Nodes that share rooms, as state machines without sockets, clocks or threads.
//!
//! A [`Node`] takes a slot in the cluster and keeps it by a lease, observes the other nodes, claims
//! keys for the rooms that it serves, and passes requests between hosts. It decides by conditional
//! writes to an [`Engine`] only. What the host of the rooms has to do comes out as [`Effect`]s. The
//! engine says which node serves a key; a store that hands out fences says which room may save. So a
//! lease that fails costs availability, and never a save.
//!
//! ```text
//!  host ── Event ──▶ ┌────────────────────────────┐ ── Command ──▶ engine
//!       ◀── Effect ──│ Node: lease, observer,     │ ◀── EngineEvent
//!         acts(now)  │ claims, links              │
//!                    └────────────────────────────┘
//! ```
//!
//! The feature `sim` has a simulation of whole clusters with faults, for tests.

mod claim;
mod claims;
mod context;
mod effect;
mod engine;
mod event;
mod lease;
mod link;
mod moving;
mod node;
mod observer;
mod output;
mod owner;
mod placing;
mod random;
mod record;
mod settings;
#[cfg(feature = "sim")]
pub mod sim;

pub use effect::{AskError, Effect, Handed, NodeId, Notice, Peer, Place};
pub use engine::{Answer, Command, Engine, EngineError, EngineEvent, Key, Record, Revision, Tag};
pub use event::{Event, RequestId, Save, Want};
pub use node::Node;
pub use placing::Choice;
pub use record::{
    Beat, ClaimKeyError, ClaimRecord, Incarnation, Load, NAME_BYTES_MAX, NodeRecord, NodeState,
    Nonce, SLOTS, Slot, claim_key,
};
pub use settings::{Settings, SettingsError};
