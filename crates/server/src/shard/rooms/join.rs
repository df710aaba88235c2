//! A request to join a room, and whose it is, on the way from the session to the room.

use playfield_wire::{Format, RequestNumber, RoomNumber};

use crate::room_id::RoomId;
use crate::shard::connection::transport::Dialect;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::allowance::Allowance;

/// How often a `join_or_create` tries another room when the one it was given falls through.
const RETRIES: u8 = 3;

/// What a client asks for.
pub(crate) enum JoinTarget {
    /// The room with this id.
    Room(String),
    /// A new room.
    New(RoomSpec),
    /// Any room of the type, or a new one; another may be picked so many times.
    Any(RoomSpec, u8),
}

impl JoinTarget {
    pub(crate) fn any(spec: RoomSpec) -> Self {
        Self::Any(spec, RETRIES)
    }
}

/// A room of this type, or how to create one.
#[derive(Clone)]
pub(crate) struct RoomSpec {
    pub(crate) room_type: u16,
    pub(crate) private: bool,
    pub(crate) options: Vec<u8>,
    pub(crate) format: Format,
}

/// A request to join the room that was picked for it; a seat is reserved there.
pub(crate) struct JoinRequest {
    pub(crate) request: RequestNumber,
    /// The number that the room will have in the session.
    pub(crate) number: RoomNumber,
    pub(crate) id: RoomId,
    /// What was asked for, unless it was this very room.
    pub(crate) spec: Option<RoomSpec>,
    /// The room has to be created first.
    pub(crate) create: bool,
    /// How often another room may be picked.
    pub(crate) retries: u8,
}

/// Who joins: a session of this shard or another.
pub(crate) struct Joiner {
    /// The session's shard.
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    pub(crate) dialect: Dialect,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) snapshots: Allowance,
}

/// A connection's way to the shard of its first room.
pub(crate) struct Departure {
    pub(crate) target: u16,
    pub(crate) join: JoinRequest,
}
