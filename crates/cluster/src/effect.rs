//! Effects of a node, which its host carries out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Key;
use crate::event::RequestId;
use crate::record::{Incarnation, Load, SLOTS, Slot};

/// An effect that the host carries out, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The node has its slot, with a new incarnation.
    Ready {
        /// The slot.
        slot: Slot,
        /// The incarnation.
        incarnation: Incarnation,
    },
    /// Open the save of a key, for a new fence, and answer with
    /// [`Event::Opened`](crate::Event::Opened). If a room of the key is in memory, it is frozen,
    /// and goes on with that fence.
    Open {
        /// The key.
        key: Key,
        /// The number of the attempt, for the answer.
        attempt: u64,
    },
    /// Make a room of the save that was opened last, and serve it, for the request that is told
    /// next that the room is new.
    Serve {
        /// The key.
        key: Key,
    },
    /// Keep the room in memory, and don't call it.
    Freeze {
        /// The key.
        key: Key,
    },
    /// Go on with the frozen room, by the fence that was opened last.
    Thaw {
        /// The key.
        key: Key,
    },
    /// Drop the frozen room: another node has had the key.
    End {
        /// The key.
        key: Key,
    },
    /// The answer to [`Event::Wanted`](crate::Event::Wanted).
    Found {
        /// The number of the request.
        request: RequestId,
        /// The place of the room.
        place: Place,
        /// The key is a code, by the claim of the room at that place.
        is_code: bool,
    },
    /// The answer to [`Event::HandOver`](crate::Event::HandOver).
    HandedOver {
        /// The number of the request.
        request: RequestId,
        /// The outcome.
        handed: Handed,
    },
    /// A request of another node. Answer it by [`Event::Answer`](crate::Event::Answer).
    Asked {
        /// The node that asks.
        from: NodeId,
        /// The number for the answer.
        number: u64,
        /// The time that it waits for the answer.
        within: Duration,
        /// The request.
        body: Vec<u8>,
    },
    /// The answer to [`Event::Ask`](crate::Event::Ask).
    Answered {
        /// The number of the request.
        ask: u64,
        /// The answer.
        result: Result<Vec<u8>, AskError>,
    },
    /// A message of another node.
    Told {
        /// The node.
        from: NodeId,
        /// The message.
        body: Vec<u8>,
    },
    /// The link with a node was reset: messages that were on the way are lost, in both directions.
    /// The node does the same.
    LinkReset {
        /// The node at the other end.
        with: NodeId,
    },
    /// Something that an operator should know.
    Noted(Notice),
}

/// The place of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This node serves it.
    Here {
        /// The room is new, for this request.
        is_new: bool,
    },
    /// That node serves it.
    At(Peer),
    /// The key has no room. Only [`Want::Find`](crate::Want::Find) gets this.
    Free,
    /// Not known now: ask again in a second.
    Busy,
}

/// The outcome of a move of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// The target has it.
    Yes,
    /// This node has it still.
    No,
    /// Another node has it, or had it.
    Lost,
}

/// An incarnation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    /// Its slot.
    pub slot: Slot,
    /// Its incarnation.
    pub incarnation: Incarnation,
}

/// Another node that is alive, as its record and its messages say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its slot.
    pub slot: Slot,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its name, for people.
    pub name: Arc<str>,
    /// The places where clients reach it, as URLs.
    pub addresses: Arc<[String]>,
    /// The number of its build.
    pub build: u64,
    /// Its room types, with the fingerprints of their schemas.
    pub types: Arc<[(String, u64)]>,
    /// Its load, once it was heard of.
    pub load: Option<Load>,
}

impl Peer {
    /// Returns the slot and the incarnation.
    #[must_use]
    pub fn id(&self) -> NodeId {
        NodeId { slot: self.slot, incarnation: self.incarnation }
    }
}

/// The reasons why a request to another node has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// No node that is alive has the slot, or the one that had it is dead.
    NobodyThere,
    /// No answer came in time. The request may have been carried out, or may be so later.
    Timeout,
    /// The link was reset. The request may have been carried out.
    LinkReset,
    /// The request is too large for a message.
    TooLarge,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NobodyThere => "no node that is alive has the slot",
            Self::Timeout => "the node did not answer in time",
            Self::LinkReset => "the link to the node was reset",
            Self::TooLarge => "the request is too large for a message to a node",
        })
    }
}

impl std::error::Error for AskError {}

/// Something that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another node has declared this one dead.
    DeclaredDead,
    /// The engine has lost writes that it had confirmed.
    EngineLostWrites,
    /// No free slot was found yet.
    SlotsTaken {
        /// The number of slots that were tried.
        tried: u32,
    },
    /// A message of the host to another node was not sent.
    MessageTooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// A record can't be read.
    Unreadable {
        /// The record.
        key: Key,
        /// The reason.
        error: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeclaredDead => f.write_str(
                "another node has declared this one dead: it did not renew its lease in time; \
                 its keyed rooms are frozen until they are claimed again",
            ),
            Self::EngineLostWrites => f.write_str(
                "the engine has lost writes that it had confirmed; keyed rooms are frozen until \
                 they are claimed again; check its disks and its `sync_interval`",
            ),
            Self::SlotsTaken { tried } => write!(
                f,
                "{tried} of the cluster's {SLOTS} slots were tried, and all are taken: remove \
                 nodes, or wait until those that are gone are declared dead"
            ),
            Self::MessageTooLarge { bytes } => {
                write!(f, "a message of {bytes} bytes to another node is too large: it was dropped")
            }
            Self::Unreadable { key, error } => write!(f, "the record {key} can't be read: {error}"),
        }
    }
}
