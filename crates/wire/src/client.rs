//! Messages from a client to a node.

use std::borrow::Cow;

use crate::message::MessageRef;
use crate::message::field::{Input, OrDefault, Plain, Record};
use crate::tree::Object;
use crate::tree::members::Member;
use crate::writer::{put_u8, put_varint};
use crate::{DecodeError, Format, PROTOCOL, RequestNumber, RoomNumber, msgpack};

messages! {
    /// A message from a client.
    ///
    /// `payload` and `options` are raw bytes in the connection's format. In JSON and MessagePack they
    /// are the value's own, and empty if it is absent or null.
    pub enum ClientMessage<'a borrowed>, kinds Kind {
        /// Opens the session.
        0x01 hello Hello<'a> by Hello::decode,
        /// Enters a room that exists.
        0x02 join Join<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The room's id, or a reservation: the room's id, a period and a secret.
            room: Cow<'a, str>,
        },
        /// Enters the room that has a key.
        0x0f join_by_key JoinByKey<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The type of the room.
            room_type: Cow<'a, str>,
            /// The room's key, or its code in any case.
            key: Cow<'a, str>,
        },
        /// Creates a room and enters it.
        0x03 create Create<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The type of the room to create.
            room_type: Cow<'a, str>,
            /// Whether the room is left out of lists and of `join_or_create`.
            private: bool as OrDefault,
            /// Whether the node picks a short code as the key.
            code: bool as OrDefault,
            /// The key of the room, which no other of its type may have.
            key: Option<Cow<'a, str>>,
            /// The room type's options; empty for its default.
            options: &'a [u8],
        },
        /// Enters any room of a type that is not full and has no key, or creates one; with a key,
        /// the room that has it.
        0x04 join_or_create JoinOrCreate<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The type of the room.
            room_type: Cow<'a, str>,
            /// The key of the room.
            key: Option<Cow<'a, str>>,
            /// The room type's options if a room is created; empty for its default.
            options: &'a [u8],
        },
        /// Asks which rooms there are.
        0x05 list List<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// Only rooms of this type.
            room_type: Option<Cow<'a, str>>,
            /// Only rooms whose metadata has all of these pairs.
            filter: Vec<(Cow<'a, str>, Cow<'a, str>)> as OrDefault,
            /// At most this many rooms; 0 leaves it to the server.
            limit: u32 as OrDefault,
        },
        /// Asks for the schema of a room type.
        0x0e schema Schema<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The room type's name.
            room_type: Cow<'a, str>,
        },
        /// Leaves a room.
        0x06 leave Leave {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The room's number.
            room: RoomNumber,
        },
        /// A user message that expects a reply.
        0x07 request Request<'a> {
            /// The room's number.
            room: RoomNumber,
            /// Repeated in the answer.
            request: RequestNumber,
            /// The message's type.
            message: MessageRef<'a>,
            /// Its fields.
            payload: &'a [u8],
        },
        /// A user message without a reply.
        0x08 send Send<'a> {
            /// The room's number.
            room: RoomNumber,
            /// The message's type.
            message: MessageRef<'a>,
            /// Its fields.
            payload: &'a [u8],
        },
        /// Confirms what the client has received, so that the node may forget it.
        0x09 ack Ack {
            /// The number of the node's [counted](crate::server::ServerMessage::is_counted)
            /// messages that the client has handled in this session.
            received: u64,
        },
        /// Asks for a snapshot.
        0x0a resync Resync {
            /// The room's number.
            room: RoomNumber,
        },
        /// Asks for a `pong`.
        0x0b ping Ping {
            /// Repeated in the `pong`.
            nonce: u64,
        },
        /// Answers a `ping`.
        0x0c pong Pong {
            /// The nonce of the `ping`.
            nonce: u64,
        },
        /// Ends the connection.
        0x0d goodbye Goodbye {},
        /// Asks for the publications of a channel, for as long as the connection lasts. A second one
        /// for the same channel takes the place of the first.
        0x10 subscribe Subscribe<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The channel's name.
            channel: Cow<'a, str>,
            /// The last publication that the client knows: what came after it follows, as far as
            /// the channel's history reaches.
            since: Option<Position>,
            /// Whether to say who subscribes and who leaves.
            presence: bool as OrDefault,
        },
        /// Ends a subscription.
        0x11 unsubscribe Unsubscribe {
            /// The channel's number, from `subscribed`.
            channel: u64,
        },
        /// Sends a publication to all who subscribe to a channel.
        0x12 publish Publish<'a> {
            /// Repeated in the answer; `None` if none is wanted.
            request: Option<RequestNumber>,
            /// The channel's name.
            channel: Cow<'a, str>,
            /// The publication.
            payload: &'a [u8],
        },
        /// Asks who subscribes to a channel.
        0x13 members Members<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The channel's name.
            channel: Cow<'a, str>,
        },
        /// Asks for past publications of a channel.
        0x14 history History<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The channel's name.
            channel: Cow<'a, str>,
            /// Only those after this one.
            since: Option<Position>,
            /// At most this many, the oldest first; 0 leaves it to the node.
            limit: u32 as OrDefault,
        },
        /// Registers the session as a device.
        0x15 register Register<'a> {
            /// Repeated in the answer.
            request: RequestNumber,
            /// The device's id.
            device: Cow<'a, str>,
            /// Metadata given by the device.
            metadata: Vec<(Cow<'a, str>, Cow<'a, str>)> as OrDefault,
            /// By which it is found, beside its id.
            tags: Vec<Cow<'a, str>> as OrDefault,
        },
        /// A device's message to the fleet.
        0x16 report Report<'a> {
            /// Repeated in the `reply`; `None` if none is wanted.
            request: Option<RequestNumber>,
            /// The report.
            payload: &'a [u8],
        },
        /// Answers a `command`.
        0x17 answer Answer<'a> {
            /// The command's number.
            command: u64,
            /// Why the device could not do it; the payload then means nothing.
            error: Option<Cow<'a, str>>,
            /// The answer.
            payload: &'a [u8],
        },
    }
}

record! {
    <'a borrowed>
    /// The first message on a connection.
    ///
    /// If [`protocol`](Self::protocol) is not [`PROTOCOL`], nothing after it is read, since the
    /// layout of the rest is unknown: the other fields are as if they were absent. The server
    /// checks the version and refuses it.
    Hello<'a> {
        /// The version of the protocol that the client speaks.
        protocol: u64,
        /// The format of all later messages.
        format: Format,
        /// The display name; may be empty.
        name: Cow<'a, str> as OrDefault,
        /// For the node's authenticator; may be empty.
        token: Cow<'a, [u8]> as OrDefault,
        /// Whether the client acknowledges what it receives, so that the session can be resumed.
        resumable: bool as OrDefault,
        /// The session to resume.
        resume: Option<Resume<'a>>,
        /// The schemas that the client was built with.
        schemas: Vec<SchemaRef<'a>> as OrDefault,
        /// Whether the client follows a [`Redirect`](crate::server::Redirect) to another node.
        redirects: bool as OrDefault,
    }
}

impl<'a> Hello<'a> {
    /// A hello in this crate's protocol that says nothing but the format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            protocol: PROTOCOL,
            format,
            name: Cow::Borrowed(""),
            token: Cow::Borrowed(&[]),
            resumable: false,
            resume: None,
            schemas: Vec::new(),
            redirects: false,
        }
    }

    // Inlined, it slows down the decoding of every other message.
    #[inline(never)]
    fn decode<I: Input<'a>>(input: &mut I) -> Result<Self, DecodeError> {
        let protocol = input.clone().field(Plain, const { Member::of("protocol") })?;
        if protocol == PROTOCOL {
            return Record::read(input);
        }
        input.skip_rest();
        Ok(Self { protocol, ..Self::new(input.format()) })
    }
}

record! {
    <'a borrowed>
    /// The session that a client wants to resume.
    Resume<'a> {
        /// The resume token from `welcome`.
        token: Cow<'a, [u8]>,
        /// The number of the node's [counted](crate::server::ServerMessage::is_counted) messages
        /// that the client has handled in this session.
        received: u64,
        /// The rooms that the client has a copy of.
        rooms: Vec<ResumeRoom>,
    }
}

record! {
    <'a borrowed>
    /// The copy that a client has of a room.
    #[derive(Copy)]
    ResumeRoom {
        /// The room's number.
        room: RoomNumber,
        /// The epoch of the copy.
        epoch: u64,
        /// The version of the copy; 0 if it is unusable, so that a snapshot is needed.
        version: u64,
    }
}

record! {
    <'a borrowed>
    /// A room type, and the fingerprint of the schema that the client was built with.
    SchemaRef<'a> {
        /// The room type's name.
        room_type: Cow<'a, str>,
        /// Its fingerprint, see [`schema::fingerprint`](crate::schema::fingerprint).
        fingerprint: u64,
    }
}

record! {
    <'a borrowed>
    /// A place in the sequence of a channel's publications.
    #[derive(Copy)]
    Position {
        /// New for each creation of the channel.
        epoch: u64,
        /// Counts the channel's publications, from 1; 0 is before the first.
        offset: u64,
    }
}

impl<'a> ClientMessage<'a> {
    /// Whether both ends count this message, so that each is handled exactly once across
    /// connections. What only the present connection needs is not counted.
    #[must_use]
    #[inline]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Join(_)
            | Self::JoinByKey(_)
            | Self::Create(_)
            | Self::JoinOrCreate(_)
            | Self::List(_)
            | Self::Schema(_)
            | Self::Leave(_)
            | Self::Request(_)
            | Self::Send(_)
            | Self::Publish(_)
            | Self::Members(_)
            | Self::History(_)
            | Self::Register(_)
            | Self::Report(_)
            | Self::Answer(_) => true,
            Self::Hello(_)
            | Self::Ack(_)
            | Self::Resync(_)
            | Self::Ping(_)
            | Self::Pong(_)
            | Self::Goodbye(_)
            | Self::Subscribe(_)
            | Self::Unsubscribe(_) => false,
        }
    }

    /// Reads the first message on a connection. Its first byte decides the format that it is in:
    /// see [`format_of_first`](Self::format_of_first). The format returned is the one of all later
    /// messages, which a packed hello names.
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
}

/// Appends a `request`. `index` is the message's position in the declaration, `name` its name; the
/// format decides which of them is written.
pub fn write_request(
    format: Format,
    out: &mut Vec<u8>,
    room: RoomNumber,
    request: RequestNumber,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    if format == Format::Packed {
        put_u8(out, Kind::Request as u8);
        put_varint(out, room.into());
        put_varint(out, request.into());
        put_varint(out, index.into());
        out.extend_from_slice(payload);
    } else {
        let message = MessageRef::Name(name.into());
        Request { room, request, message, payload }.encode(format, out);
    }
}

/// Appends a `send`. `index` and `name` are as in [`write_request`].
pub fn write_send(
    format: Format,
    out: &mut Vec<u8>,
    room: RoomNumber,
    index: u32,
    name: &str,
    payload: &[u8],
) {
    if format == Format::Packed {
        put_u8(out, Kind::Send as u8);
        put_varint(out, room.into());
        put_varint(out, index.into());
        out.extend_from_slice(payload);
    } else {
        let message = MessageRef::Name(name.into());
        Send { room, message, payload }.encode(format, out);
    }
}
