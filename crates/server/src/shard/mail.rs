//! What shards say to each other.

use playfield_room::{Error, Mail};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;

use crate::room_id::RoomId;
use crate::shard::connection::ConnectionKey;
use crate::shard::entry::{RemoteEntrant, Ticket};
use crate::shard::member::MemberKey;
use crate::shard::rooms::RoomKey;

/// A message from one shard to another, or from the background to a shard.
pub(crate) enum ShardMail {
    /// To the room's shard: a session of another wants in.
    Enter { entrant: Box<RemoteEntrant>, ticket: Box<Ticket> },
    /// To the room's shard: what a member that sits elsewhere does.
    Act { room: RoomKey, member: MemberKey, act: Act },
    /// To the session's shard: the room agreed. `joined` follows with the room's next sync.
    Entered { from: u16, connection: ConnectionKey, number: u32, room: RoomKey, member: MemberKey },
    /// To the session's shard: the room, or its shard, did not agree.
    Refused { connection: ConnectionKey, ticket: Box<Ticket>, error: Error },
    /// To the session's shard: whole messages for the client, framed as it wants them. With the first of them the
    /// room is joined.
    Output { connection: ConnectionKey, number: u32, bytes: Vec<u8> },
    /// To the session's shard: the session is not in the room any more.
    Ended { connection: ConnectionKey, number: u32 },
    /// To the session's shard: its client can't be kept.
    Doom { connection: ConnectionKey, code: ErrorCode, text: String },
    /// To the room's shard: mail from another room.
    Post { to: RoomId, mail: Mail },
    /// To the room's shard: its background work ended.
    Finished { room: RoomKey, mail: Mail },
}

/// What a member does.
pub(crate) enum Act {
    Message {
        message: MessageRef<'static>,
        payload: Vec<u8>,
        request: Option<u32>,
    },
    Leave {
        request: u32,
    },
    /// The session ended.
    Go,
    Resync,
    /// This many bytes of output were written to the transport.
    Receive {
        bytes: usize,
    },
}
