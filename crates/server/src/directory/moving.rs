//! Rooms that move to other nodes, and come from there.

use playfield_room::Error;
use playfield_wire::ErrorCode;

use super::Directory;
use crate::room_id::RoomId;

impl Directory {
    /// The ids and the types of the rooms that exist.
    pub(crate) fn ids(&self) -> Vec<(RoomId, u16)> {
        let inner = self.lock();
        let rooms = inner.rooms.iter().filter(|(_, room)| !room.awaited);
        rooms.map(|(id, room)| (*id, room.room_type)).collect()
    }

    /// The shard for a room that comes from another node.
    pub(crate) fn shard_for_room(&self, id: RoomId) -> u16 {
        let inner = self.lock();
        let other = id.fraction(inner.loads.len()) as u16;
        inner.least_loaded(other).unwrap_or(other)
    }

    /// A room leaves for another node, or comes back: joins wait for it meanwhile.
    pub(crate) fn suspend(&self, id: RoomId) {
        self.lock().change(id, None, |room| {
            room.awaited = true;
            room.suspended = true;
        });
    }

    /// Returns whether a room [has left](Self::suspend), and may come back.
    pub(crate) fn is_suspended(&self, id: RoomId) -> bool {
        self.lock().rooms.get(&id).is_some_and(|room| room.awaited && room.suspended)
    }

    /// The error for a room that its shard does not have.
    pub(crate) fn missing(&self, id: RoomId) -> Error {
        match self.is_suspended(id) {
            true => Error::new(ErrorCode::Busy, "the room moves to another node; try again"),
            false => Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}")),
        }
    }
}
