//! A claim: the state of one key at a node.

use std::time::Duration;

use crate::engine::{Revision, Tag};
use crate::node::RequestId;
use crate::record::{Incarnation, Nonce, Slot};

#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) stage: Stage,
    pub(crate) room: Room,
    /// The command under way for the stage.
    pub(crate) tag: Tag,
    /// The nonce that the room in memory was claimed with.
    pub(crate) held: Option<Nonce>,
    /// The revision of the claim, while it is held.
    pub(crate) revision: Revision,
    /// The time at which the claim was known to be written, until a read has shown it after a
    /// renewal that was sent later.
    pub(crate) unproven_since: Option<Duration>,
    pub(crate) proof: Option<Tag>,
    /// The number of the last opening of the save.
    pub(crate) attempt: u64,
    /// Writes that another node's write has forestalled.
    pub(crate) conflicts: u8,
    pub(crate) waiting: Vec<RequestId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reads the claim.
    Reading,
    /// Reads the record of the node that has the claim, as of that revision.
    Judging { slot: Slot, incarnation: Incarnation, revision: Revision },
    /// Writes the claim.
    Writing,
    /// The claim is held; the host opens the save.
    Opening,
    /// The claim is held, and the room served.
    Held,
    /// Waits before it tries again.
    Waiting { until: Duration, then: Retry },
    /// Waits for a new incarnation of the node.
    Leaseless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    Read,
    Open,
}

/// The room of a key in the memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    None,
    Served,
    Frozen,
}

impl Claim {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Leaseless,
            room: Room::None,
            tag: 0,
            held: None,
            revision: 0,
            unproven_since: None,
            proof: None,
            attempt: 0,
            conflicts: 0,
            waiting: Vec::new(),
        }
    }
}
