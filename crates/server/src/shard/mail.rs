//! What shards say to each other.

use playfield_room::{Error, Mail};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;

use crate::room_id::RoomId;
use crate::shard::admission::{RemoteEntrant, Ticket};
use crate::shard::allowance::Allowance;
use crate::shard::connection::ConnectionKey;
use crate::shard::member::MemberKey;
use crate::shard::rooms::RoomKey;

/// A message from one shard to another, or from the background to a shard.
pub(crate) enum ShardMail {
    /// To the room's shard: a session of another wants in.
    Enter { entrant: Box<RemoteEntrant>, ticket: Box<Ticket> },
    /// To the room's shard: what a member that sits elsewhere does.
    Act { room: RoomKey, member: MemberKey, act: Act },
    /// To the room's shard: the session of a member ended.
    Go { room: RoomKey, member: MemberKey },
    /// To the room's shard: so many bytes of output for a member were written to the transport.
    Receive { room: RoomKey, member: MemberKey, bytes: usize },
    /// To the session's shard: the room agreed. `joined` follows with the room's next sync.
    Entered { from: u16, connection: ConnectionKey, number: u32, room: RoomKey, member: MemberKey },
    /// To the session's shard: the room, or its shard, did not agree.
    Refused { connection: ConnectionKey, ticket: Box<Ticket>, error: Error },
    /// To the session's shard: how many acts of the member are done, and whole messages for the
    /// client, framed as it wants them. With the first of these the room is joined.
    Output { connection: ConnectionKey, number: u32, done: u32, bytes: Vec<u8> },
    /// To the session's shard: the session is not in the room any more, and so many snapshots were
    /// left to it there. `answered` is the request to leave that this answered, if it was one.
    Ended { connection: ConnectionKey, number: u32, snapshots: Allowance, answered: Option<u32> },
    /// To the session's shard: its client can't be kept.
    Doom { connection: ConnectionKey, code: ErrorCode, text: String },
    /// To the room's shard: mail from another room.
    Post { to: RoomId, mail: Mail },
    /// To the room's shard: its background work ended.
    Finished { room: RoomKey, mail: Mail },
}

/// How many acts of one member may be on their way to its room, or wait there, before nothing more
/// is read from its client.
pub(crate) const ACTS_MAX: u32 = 64;

/// What a member does.
pub(crate) enum Act {
    Message { message: MessageRef<'static>, payload: Vec<u8>, request: Option<u32> },
    Leave { request: u32 },
    Resync,
}
