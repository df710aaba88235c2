//! The keys that name connections, rooms and members. They say nothing of what they name, so that
//! all parts of a shard can hold them.

use playfield_room::Link;

use crate::shard::slab::Key;

/// Marks keys of connections.
pub(crate) enum OfConnection {}
/// Marks keys of rooms.
pub(crate) enum OfRoom {}
/// Marks keys of members.
pub(crate) enum OfMember {}

/// Names a connection within its shard.
pub(crate) type ConnectionKey = Key<OfConnection>;
/// Names a room within its shard.
pub(crate) type RoomKey = Key<OfRoom>;
/// Names a member within its room.
pub(crate) type MemberKey = Key<OfMember>;

/// A seat in a room, of any shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) shard: u16,
    pub(crate) room: RoomKey,
    pub(crate) member: MemberKey,
}

/// A member's key as its room sees it.
pub(crate) fn link(member: MemberKey) -> Link {
    Link(member.bits())
}

/// The key behind a link.
pub(crate) fn member_key(link: Link) -> MemberKey {
    Key::from_bits(link.0)
}
