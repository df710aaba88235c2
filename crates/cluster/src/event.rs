//! Events for a node.

use std::time::Duration;

use crate::effect::NodeId;
use crate::engine::{EngineEvent, Key};
use crate::record::{Load, Nonce, Slot};

/// The number by which the host names a request for a key.
pub type RequestId = u64;

/// An event for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of the engine.
    Engine(EngineEvent),
    /// A client wants the room of a key. Answered by one [`Effect::Found`](crate::Effect::Found).
    Wanted {
        /// The key.
        key: Key,
        /// The number of the request.
        request: RequestId,
        /// The wish.
        want: Want,
    },
    /// The outcome of [`Effect::Open`](crate::Effect::Open).
    Opened {
        /// The key.
        key: Key,
        /// The number of the attempt.
        attempt: u64,
        /// The save that was opened, or `None` if the store can't be reached.
        save: Option<Save>,
    },
    /// The store has refused a save of a room: its save was opened by another owner.
    Fenced {
        /// The key.
        key: Key,
    },
    /// The key that this node has is a code, as the save says that was opened after the claim. The
    /// claim says so, too, from then on.
    IsCode {
        /// The key.
        key: Key,
    },
    /// The room of a key has ended, after its last save was durable, or was not made after all. The
    /// claim is removed.
    Released {
        /// The key.
        key: Key,
    },
    /// Hand the claim of a room over to another node, which holds the room and knows the nonce.
    /// Answered by one [`Effect::HandedOver`](crate::Effect::HandedOver).
    HandOver {
        /// The key.
        key: Key,
        /// The node.
        to: NodeId,
        /// A random number that no other move has.
        nonce: Nonce,
        /// The number of the request.
        request: RequestId,
        /// The room has not moved before, and may have no claim by this key.
        is_first: bool,
    },
    /// The load of this node. Others hear of it within about a second.
    Load(Load),
    /// A request to another node. Answered by one [`Effect::Answered`](crate::Effect::Answered).
    Ask {
        /// The slot of the node.
        to: Slot,
        /// The number of the request.
        ask: u64,
        /// The time that the answer may take.
        within: Duration,
        /// The request.
        body: Vec<u8>,
    },
    /// The answer to [`Effect::Asked`](crate::Effect::Asked). One that comes too late is dropped.
    Answer {
        /// The slot of the node that has asked.
        to: Slot,
        /// The number in the effect.
        number: u64,
        /// The answer.
        body: Vec<u8>,
    },
    /// A message to another node. It is lost if the node can't be reached.
    Tell {
        /// The slot of the node.
        to: Slot,
        /// The message.
        body: Vec<u8>,
    },
}

/// The wish of a client for the room of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The room, if there is one.
    Find,
    /// The claim, if it was handed over to this node with this nonce. Then the room is
    /// [here and new](crate::Place::Here), for this request.
    Receive {
        /// The nonce.
        nonce: Nonce,
    },
    /// The room, or the key for a new one.
    Claim {
        /// The key of a new room is a code: a node picked it.
        is_code: bool,
    },
}

/// A save that was opened, compared with the room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// The last one that the room in memory wrote; or no room is in memory.
    Intact,
    /// One of another owner.
    Changed,
}
