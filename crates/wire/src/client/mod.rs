//! What a client says to a node.

mod from_tree;
mod packed;
mod to_tree;

use std::borrow::Cow;

use crate::json::raw::RawJson;
use crate::message::MessageRef;
use crate::msgpack::raw::RawMsgpack;
use crate::tree::Object;
use crate::writer::{put_u8, put_varint};
use crate::{DecodeError, Format, PROTOCOL, msgpack};

/// A message from a client.
///
/// `payload` and `options` are raw bytes in the connection's format: in JSON and MessagePack, those
/// of the value, empty if it is absent or null.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientMessage<'a> {
    /// Opens the conversation.
    Hello(Hello<'a>),
    /// Enters a room that exists.
    Join {
        /// Comes back in the answer.
        request: u32,
        /// The room's id.
        room: Cow<'a, str>,
    },
    /// Creates a room and enters it.
    Create {
        /// Comes back in the answer.
        request: u32,
        /// The type of the room to create.
        room_type: Cow<'a, str>,
        /// Whether the room is left out of lists and of `join_or_create`.
        private: bool,
        /// The room type's options; empty for its default.
        options: &'a [u8],
    },
    /// Enters any room of a type that has a place, or creates one.
    JoinOrCreate {
        /// Comes back in the answer.
        request: u32,
        /// The type of the room.
        room_type: Cow<'a, str>,
        /// The room type's options if a room is created; empty for its default.
        options: &'a [u8],
    },
    /// Asks which rooms there are.
    List {
        /// Comes back in the answer.
        request: u32,
        /// Only rooms of this type.
        room_type: Option<Cow<'a, str>>,
        /// Only rooms whose metadata is equal in all of these.
        filter: Vec<(Cow<'a, str>, Cow<'a, str>)>,
        /// No more than this many rooms; 0 leaves it to the server.
        limit: u32,
    },
    /// Asks for the schema of a room type.
    Schema {
        /// Comes back in the answer.
        request: u32,
        /// The room type's name.
        room_type: Cow<'a, str>,
    },
    /// Leaves a room.
    Leave {
        /// Comes back in the answer.
        request: u32,
        /// The room's number.
        room: u32,
    },
    /// A user message that is answered.
    Request {
        /// The room's number.
        room: u32,
        /// Comes back in the answer.
        request: u32,
        /// Which of the room type's messages.
        message: MessageRef<'a>,
        /// The message itself.
        payload: &'a [u8],
    },
    /// A user message that is not answered.
    Send {
        /// The room's number.
        room: u32,
        /// Which of the room type's messages.
        message: MessageRef<'a>,
        /// The message itself.
        payload: &'a [u8],
    },
    /// Tells how far the client has got.
    Ack {
        /// The room's number.
        room: u32,
        /// The last version applied.
        version: u64,
        /// The last event handled.
        sequence: u64,
    },
    /// Asks for a snapshot.
    Resync {
        /// The room's number.
        room: u32,
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
    /// Ends the conversation.
    Goodbye,
}

/// The first message on a connection.
///
/// One with another [`protocol`](Self::protocol) than [`PROTOCOL`] is read only so far, since the
/// rest is that protocol's own: its other fields are as if they were absent. The server checks and
/// refuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello<'a> {
    /// The version of the protocol that the client speaks.
    pub protocol: u64,
    /// The format of all that follows.
    pub format: Format,
    /// The display name; may be empty.
    pub name: Cow<'a, str>,
    /// For the node's authenticator; may be empty.
    pub token: Cow<'a, [u8]>,
    /// The session to take up again.
    pub resume: Option<Resume<'a>>,
    /// What the client was built with.
    pub schemas: Vec<SchemaRef<'a>>,
}

impl Hello<'_> {
    /// A hello in this crate's protocol, with nothing in it but the format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            protocol: PROTOCOL,
            format,
            name: Cow::Borrowed(""),
            token: Cow::Borrowed(&[]),
            resume: None,
            schemas: Vec::new(),
        }
    }
}

/// The session that a client wants to take up again.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume<'a> {
    /// The resume token, as it came in `welcome`.
    pub token: Cow<'a, [u8]>,
    /// The rooms that the client was in.
    pub rooms: Vec<ResumeRoom>,
}

/// How far a client has got in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeRoom {
    /// The room's number.
    pub room: u32,
    /// The epoch of the client's copy.
    pub epoch: u64,
    /// The version of the client's copy.
    pub version: u64,
    /// The last event handled.
    pub sequence: u64,
}

/// A room type, and the fingerprint of the schema that the client was built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRef<'a> {
    /// The room type's name.
    pub room_type: Cow<'a, str>,
    /// Its fingerprint, see [`schema::fingerprint`](crate::schema::fingerprint).
    pub fingerprint: u64,
}

impl<'a> ClientMessage<'a> {
    /// Reads the first message on a connection, whose own form decides: see
    /// [`format_of_first`](Self::format_of_first). The format returned is that of all that follows:
    /// the one that a packed hello names.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_first(body: &'a [u8]) -> Result<(Format, Self), DecodeError> {
        let format = Self::format_of_first(body);
        let message = Self::decode(format, body)?;
        match &message {
            Self::Hello(hello) => Ok((hello.format, message)),
            _ => Ok((format, message)),
        }
    }

    /// The format in which the first message on a connection is written: `{` begins JSON, a map
    /// MessagePack, and anything else is `packed`.
    #[must_use]
    pub fn format_of_first(body: &[u8]) -> Format {
        match body.first() {
            Some(b'{') => Format::Json,
            Some(&byte) if msgpack::begins_map(byte) => Format::Msgpack,
            _ => Format::Packed,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If `body` is not one, to its last byte; [`DecodeError::unspoken_format`] tells apart a
    /// `hello` that asks for a format that is not spoken here.
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
    /// If a [`MessageRef`] is not in the form of `format`; see [`write_request`] and
    /// [`write_send`], which write any.
    pub fn encode(&self, format: Format, out: &mut Vec<u8>) {
        match format.tree() {
            None => packed::encode(self, out),
            Some(format) => to_tree::encode(self, format, out),
        }
    }
}

/// Appends a `request`. The message is declared at `index` and called `name`; the format decides
/// which is written.
pub fn write_request(
    format: Format,
    out: &mut Vec<u8>,
    room: u32,
    request: u32,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    match format.tree() {
        None => {
            put_u8(out, packed::REQUEST);
            put_varint(out, room.into());
            put_varint(out, request.into());
            put_varint(out, index.into());
            out.extend_from_slice(payload);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "request");
            object.integer("room", room);
            object.integer("request", request);
            object.text("message", name);
            object.raw("payload", payload);
            object.end();
        }
    }
}

/// Appends a `send`. The message is declared at `index` and called `name`; the format decides which
/// is written.
pub fn write_send(
    format: Format,
    out: &mut Vec<u8>,
    room: u32,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    match format.tree() {
        None => {
            put_u8(out, packed::SEND);
            put_varint(out, room.into());
            put_varint(out, index.into());
            out.extend_from_slice(payload);
        }
        Some(format) => {
            let mut object = Object::message(format, out, "send");
            object.integer("room", room);
            object.text("message", name);
            object.raw("payload", payload);
            object.end();
        }
    }
}
