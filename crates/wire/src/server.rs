//! Messages from a node to a client.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::message::MessageRef;
use crate::message::field::{Embedded, Fixed, JsonText, OrDefault, Rest, Since, advance};
use crate::tree::Object;
use crate::writer::{put_u8, put_varint};
use crate::{DecodeError, ErrorCode, Format, RequestNumber, RoomNumber, msgpack};

messages! {
    /// A message from a node.
    ///
    /// `payload` and `body` are raw bytes in the connection's format. In JSON and MessagePack they are
    /// the value's own, and empty if it is absent or null. A `schema` is JSON in every format.
    pub enum ServerMessage<'a owned>, kinds Kind {
        /// Answers `hello`.
        #[derive(Default)]
        0x41 welcome Welcome<'a> {
            /// The version of the protocol that the node speaks.
            protocol: u64,
            /// The session's number.
            session: u64,
            /// The resume token; empty if the session can't be resumed.
            resume: Cow<'a, [u8]>,
            /// The client must be heard at least this often.
            heartbeat_ms: u32,
            /// The longest message that the node takes.
            max_message_bytes: u32,
            /// The time for which the session is kept after its connection is lost; rooms may keep
            /// seats for longer or less.
            grace_ms: u32 as OrDefault,
            /// The resumed session; `None` if the session is new.
            resumed: Option<Resumed>,
            /// URLs at which clients reach this very node; empty if it is in no cluster.
            addresses: Vec<Cow<'a, str>> as OrDefault,
        },
        /// Answers `create`, `join` and `join_or_create`.
        #[derive(Default)]
        0x42 joined Joined<'a> {
            /// The request that this answers.
            request: RequestNumber,
            /// The room's number in this session.
            room: RoomNumber,
            /// The room's id.
            id: Cow<'a, str>,
            /// The room's type.
            room_type: Cow<'a, str>,
            /// The room's key, if it has one.
            key: Option<Cow<'a, str>>,
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
            /// While the client is in the room, either end counts the connection as lost if it hears
            /// nothing for so long; 0 = as long as the heartbeat allows.
            silence_ms: u32 as OrDefault,
            /// How long the room keeps the player's seat after the connection is lost; 0 = not at
            /// all.
            grace_ms: u32 as OrDefault,
        },
        /// Answers `list`.
        0x43 listed Listed<'a> {
            /// The request that this answers.
            request: RequestNumber,
            /// The rooms found.
            rooms: Vec<RoomInfo<'a>>,
        },
        /// The schema of a room type: answers `schema`, or informs a client that was built with another.
        0x4e schema Schema<'a> {
            /// The request that this answers, if any.
            request: Option<RequestNumber>,
            /// The room type's name.
            room_type: Cow<'a, str>,
            /// The schema, see [`RoomSchema::from_json`](crate::schema::RoomSchema::from_json).
            schema: Cow<'a, [u8]> as JsonText,
        },
        /// Ends a room.
        0x44 left Left<'a> {
            /// The `leave` that this answers, if any.
            request: Option<RequestNumber>,
            /// The room's number.
            room: RoomNumber,
            /// Why.
            code: ErrorCode,
            /// Why, for people.
            text: Cow<'a, str>,
        },
        /// Answers a user message.
        0x45 reply Reply<'a> {
            /// The request that this answers.
            request: RequestNumber,
            /// The reply itself.
            payload: Cow<'a, [u8]> as Rest,
        },
        /// An event of a room.
        0x46 event Event<'a> {
            /// The room's number.
            room: RoomNumber,
            /// Counts the events of this session in this room, from 1.
            sequence: u64,
            /// The room's version when the event was raised.
            version: u64,
            /// The event's type.
            message: MessageRef<'a>,
            /// Its fields.
            payload: Cow<'a, [u8]> as Rest,
        },
        /// All of a room's state that the player may see.
        0x47 snapshot Snapshot<'a> {
            /// The room's number.
            room: RoomNumber,
            /// New for each creation of the room.
            epoch: u64,
            /// The version that this is.
            version: u64,
            /// The state.
            body (ops): Cow<'a, [u8]> as Rest,
        },
        /// Changes of a room's state.
        0x48 patch Patch<'a> {
            /// The room's number.
            room: RoomNumber,
            /// The version that this applies to.
            base: u64,
            /// The version that it leads to.
            version: u64 as Since(base),
            /// The changes.
            body (ops): Cow<'a, [u8]> as Rest,
        },
        /// The digest that a room's copy should have.
        0x4d check Check {
            /// The room's number.
            room: RoomNumber,
            /// The version of the copy.
            version: u64,
            /// Its digest.
            digest: u64 as Fixed,
        },
        /// Asks for a `pong`.
        0x49 ping Ping {
            /// Repeated in the `pong`.
            nonce: u64,
        },
        /// Answers a `ping`.
        0x4a pong Pong {
            /// The nonce of the `ping`.
            nonce: u64,
            /// The node's clock: microseconds since the node started.
            time_us: u64 as OrDefault,
        },
        /// Confirms what the node has received, so that the client may forget it.
        0x4f ack Ack {
            /// The number of the client's [counted](crate::client::ClientMessage::is_counted)
            /// messages that the node has handled in this session.
            received: u64,
        },
        /// Answers a request, or a `send`, or is about the connection.
        0x4b error Error<'a> {
            /// The request that this answers, if any.
            request: Option<RequestNumber>,
            /// The number of the room that it concerns, if any.
            room: Option<RoomNumber>,
            /// The error code.
            code: ErrorCode,
            /// A description of the error, for people.
            text: Cow<'a, str>,
            /// If the request was refused for its rate: how long to wait before the next, in
            /// milliseconds.
            retry_after_ms: Option<u32>,
        },
        /// Ends the connection.
        0x4c goodbye Goodbye<'a> {
            /// Why.
            code: ErrorCode,
            /// Why, for people.
            text: Cow<'a, str>,
        },
        /// Answers `subscribe`. Publications follow.
        #[derive(Default)]
        0x50 subscribed Subscribed {
            /// The request that this answers.
            request: RequestNumber,
            /// The channel's number on this node. No other channel ever has it.
            channel: u64,
            /// New for each creation of the channel.
            epoch: u64,
            /// The offset of the last publication before those that follow.
            offset: u64,
            /// Whether all publications after the client's position follow.
            recovered: bool as OrDefault,
            /// Whether payloads are bytes, and not JSON values.
            bytes: bool as OrDefault,
            /// The number of sessions that subscribe, this one included; 0 if the client may not
            /// know.
            members: u64 as OrDefault,
        },
        /// A publication of a channel.
        0x51 publication Publication<'a> {
            /// The channel's number.
            channel: u64,
            /// Its place in the channel; one more than that of the one before, or some were missed.
            offset: u64,
            /// The verified user who published it, if a client with one did.
            user: Option<Cow<'a, str>>,
            /// The publication.
            payload: Cow<'a, [u8]> as Rest,
        },
        /// The node has ended a subscription.
        0x52 unsubscribed Unsubscribed<'a> {
            /// The channel's number.
            channel: u64,
            /// Why.
            code: ErrorCode,
            /// Why, for people.
            text: Cow<'a, str>,
        },
        /// A session subscribes to a channel, or does no longer.
        0x53 presence Presence<'a> {
            /// The channel's number.
            channel: u64,
            /// Counts these messages of the channel; after a gap, ask for `members`.
            sequence: u64,
            /// Whether it subscribes now.
            joined: bool,
            /// The session's number.
            session: u64,
            /// Its verified user, if any.
            user: Option<Cow<'a, str>>,
            /// Its display name.
            name: Cow<'a, str> as OrDefault,
        },
        /// Answers `publish`.
        0x54 published Published {
            /// The request that this answers.
            request: RequestNumber,
            /// The publication's place in the channel.
            offset: u64,
        },
        /// Answers `members`.
        0x55 members Members<'a> {
            /// The request that this answers.
            request: RequestNumber,
            /// Of the last `presence` before this answer.
            sequence: u64,
            /// The number of sessions that subscribe; more than are listed, if the node lists no
            /// more.
            count: u64,
            /// The subscribers.
            members: Vec<MemberInfo<'a>>,
        },
        /// Answers `history`.
        0x56 history History<'a> {
            /// The request that this answers.
            request: RequestNumber,
            /// New for each creation of the channel.
            epoch: u64,
            /// The offset of the channel's last publication.
            offset: u64,
            /// Whether the payloads of the channel are bytes, and not JSON.
            bytes: bool,
            /// Past publications, the oldest first.
            publications: Vec<PastPublication<'a>>,
        },
        /// Answers `register`.
        0x57 registered Registered {
            /// The request that this answers.
            request: RequestNumber,
            /// Whether no device was registered under this id.
            is_new: bool,
            /// Whether the payloads of the fleet are bytes, and not JSON.
            bytes: bool,
        },
        /// A message to a device.
        0x58 command Command<'a> {
            /// The number for the `answer`; `None` if none is wanted.
            command: Option<u64>,
            /// The command.
            payload: Cow<'a, [u8]> as Rest,
        },
        /// The room of a `join`, `join_by_key`, `create` or `join_or_create`, or the session that a
        /// `hello` resumes, is at another node.
        0x59 redirect Redirect<'a> {
            /// The request that this answers; 0 in answer to `hello`.
            request: RequestNumber,
            /// URLs at which clients reach the other node, such as `wss://n3.example.com`.
            addresses: Vec<Cow<'a, str>>,
            /// What the client sends there in `join`, as the room; if empty, it sends the same
            /// request there, or the same hello.
            reservation: Cow<'a, str>,
        },
    }
}

record! {
    <'a owned>
    /// The result of resuming a session.
    #[derive(Default)]
    Resumed {
        /// The number of the client's [counted](crate::client::ClientMessage::is_counted) messages
        /// that the node has handled in this session. The client sends the rest again.
        received: u64,
        /// The messages that the node had to forget before the client confirmed them: none, if the
        /// session is whole.
        lost: Vec<Lost> as OrDefault,
    }
}

record! {
    <'a owned>
    /// Messages that a client will not receive.
    #[derive(Copy)]
    Lost {
        /// The room that they were about; `None` if they were about none.
        room: Option<RoomNumber>,
        /// The number of messages.
        messages: u64,
    }
}

record! {
    <'a owned>
    /// A room in `listed`.
    #[derive(Default)]
    RoomInfo<'a> {
        /// The room's id.
        id: Cow<'a, str>,
        /// The room's type.
        room_type: Cow<'a, str>,
        /// The room's key, if it has one.
        key: Option<Cow<'a, str>>,
        /// The number of players in it.
        players: u32,
        /// The maximum number of players.
        capacity: u32,
        /// Whether it takes no more players.
        locked: bool,
        /// Metadata given by the room.
        metadata: Vec<(Cow<'a, str>, Cow<'a, str>)> as OrDefault,
    }
}

record! {
    <'a owned>
    /// A session that subscribes to a channel.
    MemberInfo<'a> {
        /// The session's number.
        session: u64,
        /// Its verified user, if any.
        user: Option<Cow<'a, str>>,
        /// Its display name.
        name: Cow<'a, str> as OrDefault,
    }
}

record! {
    <'a owned>
    /// A publication in `history`.
    PastPublication<'a> {
        /// Its place in the channel.
        offset: u64,
        /// The verified user who published it, if a client with one did.
        user: Option<Cow<'a, str>>,
        /// The publication.
        payload: Cow<'a, [u8]> as Embedded,
    }
}

impl Welcome<'_> {
    /// The node must hear the client at least this often; zero if it expects nothing.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        duration(self.heartbeat_ms)
    }

    /// Returns the time for which the node keeps the session after a lost connection, if the client
    /// is in no room that keeps players longer. Zero if it does not keep it.
    #[must_use]
    pub fn grace(&self) -> Duration {
        duration(self.grace_ms)
    }
}

impl Joined<'_> {
    /// The fields by their names in trees, for languages that have no such struct.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut out = Vec::new();
        self.encode(Format::Msgpack, &mut out);
        let mut value = msgpack::read_value(&out).expect("it was written as MessagePack");
        if let Value::Object(members) = &mut value {
            members.remove("type");
        }
        value
    }

    /// While the client is in the room, either end counts the connection as lost if it hears
    /// nothing for so long; `None` if that is left to the heartbeat.
    #[must_use]
    pub fn silence(&self) -> Option<Duration> {
        (self.silence_ms > 0).then(|| duration(self.silence_ms))
    }

    /// Returns the time for which the room keeps the player's seat after the connection is lost.
    #[must_use]
    pub fn grace(&self) -> Duration {
        duration(self.grace_ms)
    }
}

impl Error<'_> {
    /// Returns the time to wait before the next request, if this one was refused for its rate.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(duration)
    }
}

fn duration(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

impl ServerMessage<'_> {
    /// Whether both ends count this message, so that each is delivered exactly once across
    /// connections. State is not counted: a resumed copy gets one patch from its version. Nor are
    /// publications: a client subscribes again with the position that it has reached.
    #[must_use]
    #[inline]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Joined(_)
            | Self::Listed(_)
            | Self::Schema(_)
            | Self::Left(_)
            | Self::Reply(_)
            | Self::Event(_)
            | Self::Error(_)
            | Self::Published(_)
            | Self::Members(_)
            | Self::History(_)
            | Self::Registered(_)
            | Self::Command(_)
            | Self::Redirect(_) => true,
            Self::Welcome(_)
            | Self::Snapshot(_)
            | Self::Patch(_)
            | Self::Check(_)
            | Self::Ping(_)
            | Self::Pong(_)
            | Self::Ack(_)
            | Self::Goodbye(_)
            | Self::Subscribed(_)
            | Self::Publication(_)
            | Self::Unsubscribed(_)
            | Self::Presence(_) => false,
        }
    }
}

/// The versions that a patch leads from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version that the patch applies to.
    pub base: u64,
    /// The version that it leads to.
    pub version: u64,
}

/// Appends a `patch`, whose body is what `body` appends.
///
/// # Panics
/// If the version is before its base.
#[inline]
pub fn write_patch(
    format: Format,
    out: &mut Vec<u8>,
    room: RoomNumber,
    Versions { base, version }: Versions,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let advance = advance(base, version);
    match format.tree() {
        None => {
            put_u8(out, Kind::Patch as u8);
            put_varint(out, room.into());
            put_varint(out, base);
            put_varint(out, advance);
            body(out);
        }
        Some(format) => {
            let mut object = Object::message(format, out, Kind::Patch.name());
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
    room: RoomNumber,
    epoch: u64,
    version: u64,
    body: impl FnOnce(&mut Vec<u8>),
) {
    match format.tree() {
        None => {
            put_u8(out, Kind::Snapshot as u8);
            put_varint(out, room.into());
            put_varint(out, epoch);
            put_varint(out, version);
            body(out);
        }
        Some(format) => {
            let mut object = Object::message(format, out, Kind::Snapshot.name());
            object.integer("room", room);
            object.integer("epoch", epoch);
            object.integer("version", version);
            object.field("ops").raw(body);
            object.end();
        }
    }
}

/// Appends an `event`. `index` is the event's position in the declaration, `name` its name; the
/// format decides which of them is written.
#[expect(clippy::too_many_arguments, reason = "they are the message's fields")]
pub fn write_event(
    format: Format,
    out: &mut Vec<u8>,
    room: RoomNumber,
    sequence: u64,
    version: u64,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    if format == Format::Packed {
        put_u8(out, Kind::Event as u8);
        put_varint(out, room.into());
        put_varint(out, sequence);
        put_varint(out, version);
        put_varint(out, index.into());
        out.extend_from_slice(payload);
    } else {
        write_event_tree(format, out, (room, sequence, version), name, payload);
    }
}

#[inline(never)]
fn write_event_tree(
    format: Format,
    out: &mut Vec<u8>,
    (room, sequence, version): (RoomNumber, u64, u64),
    name: &str,
    payload: &[u8],
) {
    let message = MessageRef::Name(name.into());
    Event { room, sequence, version, message, payload: payload.into() }.encode(format, out);
}

/// Appends a `reply`.
pub fn write_reply(format: Format, out: &mut Vec<u8>, request: RequestNumber, payload: &[u8]) {
    if format == Format::Packed {
        put_u8(out, Kind::Reply as u8);
        put_varint(out, request.into());
        out.extend_from_slice(payload);
    } else {
        Reply { request, payload: payload.into() }.encode(format, out);
    }
}
