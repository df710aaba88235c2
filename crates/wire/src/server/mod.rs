//! What a node says to a client.

mod from_tree;
mod packed;
mod to_tree;

use std::borrow::Cow;

use crate::json::raw::RawJson;
use crate::message::MessageRef;
use crate::msgpack::raw::RawMsgpack;
use crate::tree::Object;
use crate::writer::{put_u8, put_varint};
use crate::{DecodeError, ErrorCode, Format};

/// A message from a node.
///
/// `payload` and `body` are raw bytes in the connection's format: in JSON and MessagePack, those of
/// the value, empty if it is absent or null. A `schema` is JSON in every format.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerMessage<'a> {
    /// Answers `hello`.
    Welcome {
        /// The version of the protocol that the node speaks.
        protocol: u64,
        /// The session's number.
        session: u64,
        /// The resume token.
        resume: Cow<'a, [u8]>,
        /// The client must be heard at least this often.
        heartbeat_ms: u32,
        /// The longest message that the node takes.
        max_message_bytes: u32,
    },
    /// Answers `create`, `join` and `join_or_create`.
    Joined {
        /// The request that this answers.
        request: u32,
        /// The room's number in this session.
        room: u32,
        /// The room's id.
        id: Cow<'a, str>,
        /// The room's type.
        room_type: Cow<'a, str>,
        /// The player's number in the room.
        player: u64,
        /// New for each creation of the room.
        epoch: u64,
        /// How often the room's simulation steps, per second.
        tick_hz: u32,
        /// How often the room sends patches, per second.
        sync_hz: u32,
        /// Of the room type, see [`schema::fingerprint`](crate::schema::fingerprint).
        fingerprint: u64,
    },
    /// Answers `list`.
    Listed {
        /// The request that this answers.
        request: u32,
        /// The rooms found.
        rooms: Vec<RoomInfo<'a>>,
    },
    /// The schema of a room type: answers `schema`, or tells a client that was built with another.
    Schema {
        /// The request that this answers, if it does.
        request: Option<u32>,
        /// The room type's name.
        room_type: Cow<'a, str>,
        /// The schema, see [`RoomSchema::from_json`](crate::schema::RoomSchema::from_json).
        schema: &'a [u8],
    },
    /// Ends a room.
    Left {
        /// The `leave` that this answers, if it does.
        request: Option<u32>,
        /// The room's number.
        room: u32,
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
    },
    /// Answers a user message.
    Reply {
        /// The request that this answers.
        request: u32,
        /// The reply itself.
        payload: &'a [u8],
    },
    /// Something happened in a room.
    Event {
        /// The room's number.
        room: u32,
        /// Counts the events of this session in this room, from 1.
        sequence: u64,
        /// The room's version when the event was raised.
        version: u64,
        /// Which of the room type's events.
        message: MessageRef<'a>,
        /// The event itself.
        payload: &'a [u8],
    },
    /// All of a room's state that the player sees.
    Snapshot {
        /// The room's number.
        room: u32,
        /// New for each creation of the room.
        epoch: u64,
        /// The version that this is.
        version: u64,
        /// The state.
        body: &'a [u8],
    },
    /// What changed in a room's state.
    Patch {
        /// The room's number.
        room: u32,
        /// The version that this must be applied to.
        base: u64,
        /// The version that it leads to.
        version: u64,
        /// The changes.
        body: &'a [u8],
    },
    /// What a room's copy is to come to, for the client to notice if it does not.
    Check {
        /// The room's number.
        room: u32,
        /// The version that the copy is at if nothing is on its way to it.
        version: u64,
        /// The copy's digest.
        digest: u64,
    },
    /// Asks for a `pong`.
    Ping {
        /// Comes back in the `pong`.
        nonce: u64,
    },
    /// Answers a `ping`.
    Pong {
        /// That of the `ping`.
        nonce: u64,
    },
    /// Answers a request, or a `send`, or is about the connection.
    Error {
        /// The request that this answers.
        request: Option<u32>,
        /// The number of the room that it is about.
        room: Option<u32>,
        /// What went wrong.
        code: ErrorCode,
        /// What went wrong, for people.
        text: Cow<'a, str>,
    },
    /// Ends the conversation.
    Goodbye {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: Cow<'a, str>,
    },
}

/// A room in `listed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomInfo<'a> {
    /// The room's id.
    pub id: Cow<'a, str>,
    /// The room's type.
    pub room_type: Cow<'a, str>,
    /// How many players are in it.
    pub players: u32,
    /// How many it can hold.
    pub capacity: u32,
    /// Whether it takes no more players.
    pub locked: bool,
    /// What the room says about itself.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> ServerMessage<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// If `body` is not one, to its last byte.
    pub fn decode(format: Format, body: &'a [u8]) -> Result<Self, DecodeError> {
        match format {
            Format::Packed => packed::decode(body),
            Format::Msgpack => from_tree::decode(RawMsgpack::of_message(body)),
            Format::Json => from_tree::decode(RawJson::of_message(body)?),
        }
    }

    /// Appends the message.
    ///
    /// # Panics
    /// If a [`MessageRef`] is not in the form of `format`; see [`write_event`], which writes any.
    /// If a patch's version is before its base.
    pub fn encode(&self, format: Format, out: &mut Vec<u8>) {
        match format.tree() {
            None => packed::encode(self, out),
            Some(format) => to_tree::encode(self, format, out),
        }
    }
}

/// Appends a `patch` from `base` to `version`, whose body is what `body` appends.
///
/// # Panics
/// If `version` is before `base`.
#[inline]
pub fn write_patch(
    format: Format,
    out: &mut Vec<u8>,
    room: u32,
    base: u64,
    version: u64,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let advance =
        version.checked_sub(base).expect("a patch leads from its base to a later version");
    match format.tree() {
        None => {
            put_u8(out, packed::PATCH);
            put_varint(out, room.into());
            put_varint(out, base);
            put_varint(out, advance);
            body(out);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "patch");
            object.integer("room", room);
            object.integer("base", base);
            object.integer("version", version);
            object.field("ops").raw(body);
            object.end();
        }
    }
}

/// Appends a `snapshot`, whose body is what `body` appends.
#[inline]
pub fn write_snapshot(
    format: Format,
    out: &mut Vec<u8>,
    room: u32,
    epoch: u64,
    version: u64,
    body: impl FnOnce(&mut Vec<u8>),
) {
    match format.tree() {
        None => {
            put_u8(out, packed::SNAPSHOT);
            put_varint(out, room.into());
            put_varint(out, epoch);
            put_varint(out, version);
            body(out);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "snapshot");
            object.integer("room", room);
            object.integer("epoch", epoch);
            object.integer("version", version);
            object.field("ops").raw(body);
            object.end();
        }
    }
}

/// Appends an `event`. It is declared at `index` and called `name`; the format decides which is
/// written.
#[expect(clippy::too_many_arguments, reason = "they are the message's fields")]
pub fn write_event(
    format: Format,
    out: &mut Vec<u8>,
    room: u32,
    sequence: u64,
    version: u64,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    match format.tree() {
        None => {
            put_u8(out, packed::EVENT);
            put_varint(out, room.into());
            put_varint(out, sequence);
            put_varint(out, version);
            put_varint(out, index.into());
            out.extend_from_slice(payload);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "event");
            object.integer("room", room);
            object.integer("sequence", sequence);
            object.integer("version", version);
            object.text("message", name);
            object.raw("payload", payload);
            object.end();
        }
    }
}

/// Appends a `reply`.
pub fn write_reply(format: Format, out: &mut Vec<u8>, request: u32, payload: &[u8]) {
    match format.tree() {
        None => {
            put_u8(out, packed::REPLY);
            put_varint(out, request.into());
            out.extend_from_slice(payload);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "reply");
            object.integer("request", request);
            object.raw("payload", payload);
            object.end();
        }
    }
}
