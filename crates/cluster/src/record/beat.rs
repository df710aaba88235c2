//! The message of a node to all others.

use playfield_wire::DecodeError;
use playfield_wire::writer::{put_bool, put_u8, put_varint};

use crate::record::{
    Incarnation, NodeState, Slot, begin, incarnation, open, put_incarnation, put_slot, slot,
};

/// The message of a node to all others: after each renewal, when its load changes, and when it has
/// left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The slot of the node.
    pub slot: Slot,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The revision of the last renewal.
    pub revision: u64,
    /// Its state.
    pub state: NodeState,
    /// Its load.
    pub load: Load,
}

/// The load of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of its rooms.
    pub rooms: u32,
    /// The percentage of time that its busiest shard works.
    pub busy_percent: u8,
    /// New rooms may be made there: it is not about to leave.
    pub takes_rooms: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self { rooms: 0, busy_percent: 0, takes_rooms: true }
    }
}

impl Beat {
    /// Returns the message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(28);
        put_slot(&mut out, self.slot);
        put_incarnation(&mut out, self.incarnation);
        put_varint(&mut out, self.revision);
        self.state.put(&mut out);
        put_varint(&mut out, self.load.rooms.into());
        put_u8(&mut out, self.load.busy_percent);
        put_bool(&mut out, self.load.takes_rooms);
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If the bytes are cut off, or of a newer format, or the slot is past the last one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = open(bytes)?;
        let slot = slot(&mut reader)?;
        let incarnation = incarnation(&mut reader)?;
        let revision = reader.varint()?;
        let state = NodeState::read(&mut reader)?;
        let rooms = reader.varint_u32()?;
        let busy_percent = reader.u8()?;
        let takes_rooms = reader.bool()?;
        let load = Load { rooms, busy_percent, takes_rooms };
        Ok(Self { slot, incarnation, revision, state, load })
    }
}
