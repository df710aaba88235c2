//! Rooms that are to be created, and what the directory answers about a room.

use playfield_room::RoomSummary;

use super::keys::Key;
use crate::node::Node;
use crate::room_id::RoomId;
use crate::shard::mail::join::RoomSpec;

/// The location and type of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) room_type: u16,
    pub(crate) shard: u16,
}

/// A room that comes from another process.
pub(crate) struct Kept {
    pub(crate) room_type: u16,
    pub(crate) shard: u16,
    pub(crate) key: Option<Key>,
    /// The values of its criteria.
    pub(crate) criteria: Box<[u8]>,
    pub(crate) waiting_max: u32,
    pub(crate) summary: RoomSummary,
}

/// A room chosen for a player, with a reserved seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) id: RoomId,
    pub(crate) shard: u16,
    /// Set if it was just registered, and must be created.
    pub(crate) new: bool,
}

/// A room to be created.
pub(crate) struct Plan {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) key: Option<Key>,
    /// The values of its criteria.
    pub(crate) criteria: Vec<u8>,
    /// The number of seats that are reserved in it from the beginning.
    pub(crate) seats: u32,
    /// The number of joins that may wait for its end, when it ends, to get the next room with its
    /// key.
    pub(crate) waiting_max: u32,
    pub(crate) capacity: u32,
    pub(crate) private: bool,
    /// The shard that gets it, unless another one has less load.
    pub(crate) shard: u16,
}

impl Plan {
    /// The room of this specification, with a seat for its first player.
    pub(crate) fn new(node: &Node, id: RoomId, spec: &RoomSpec, shard: u16) -> Self {
        let settings = &node.room_types[usize::from(spec.room_type)].settings;
        let (capacity, waiting_max) = (settings.capacity, settings.joins_waiting_max);
        let RoomSpec { room_type, ref key, ref criteria, private, .. } = *spec;
        let (key, criteria) = (key.clone(), criteria.clone());
        Self { id, room_type, key, criteria, seats: 1, waiting_max, capacity, private, shard }
    }
}
