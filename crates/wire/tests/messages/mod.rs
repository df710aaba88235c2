//! Strategies for messages, for the property tests.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage, Hello, Position, Resume, ResumeRoom, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{
    self, Lost, MemberInfo, PastPublication, Resumed, RoomInfo, ServerMessage,
};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, TreeFormat};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Numbers of every length, small ones as often as large ones.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

fn number_u32() -> impl Strategy<Value = u32> {
    (any::<u32>(), 0..32_u32).prop_map(|(number, shift)| number >> shift)
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    vec(prop_oneof![any::<char>(), prop::char::range('\0', '~')], 0..12)
        .prop_map(|text| Cow::Owned(text.into_iter().collect()))
}

fn bytes() -> impl Strategy<Value = Cow<'static, [u8]>> {
    vec(any::<u8>(), 0..20).prop_map(Cow::Owned)
}

fn pairs() -> impl Strategy<Value = Vec<(Cow<'static, str>, Cow<'static, str>)>> {
    vec((text(), text()), 0..4)
}

/// Any bytes in `packed`, any value in MessagePack and JSON. The decoder borrows them, so they are
/// leaked.
fn raw(format: Format) -> BoxedStrategy<&'static [u8]> {
    let raw = match format {
        Format::Packed => vec(any::<u8>(), 0..20).boxed(),
        Format::Msgpack => prop_oneof![
            Just(Vec::new()),
            any::<i32>().prop_map(|number| tree(|value| value.i64(number.into()))),
            bytes().prop_map(|bytes| tree(|value| value.bytes(&bytes))),
            text().prop_map(|text| tree(
                |value| value.value(&serde_json::json!({ "a": [text, null, true] }))
            )),
        ]
        .boxed(),
        Format::Json => prop_oneof![
            Just(Vec::new()),
            any::<i32>().prop_map(|number| number.to_string().into_bytes()),
            text().prop_map(|text| serde_json::json!({ "a": [text, null, true] })
                .to_string()
                .into_bytes()),
        ]
        .boxed(),
    };
    raw.prop_map(|raw| &*raw.leak()).boxed()
}

fn tree(write: impl FnOnce(TreeWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(TreeWriter::new(TreeFormat::Msgpack, &mut out));
    out
}

fn message_ref(format: Format) -> BoxedStrategy<MessageRef<'static>> {
    match format {
        Format::Packed => number_u32().prop_map(MessageRef::Index).boxed(),
        Format::Msgpack | Format::Json => text().prop_map(MessageRef::Name).boxed(),
    }
}

fn code() -> impl Strategy<Value = ErrorCode> {
    let node = (1..=40_u16)
        .prop_map(|number| ErrorCode::from_number(number).expect("the table has 40 codes"));
    prop_oneof![node, (ErrorCode::ROOM_MIN..).prop_map(ErrorCode::Room)]
}

fn request() -> impl Strategy<Value = RequestNumber> {
    number_u32().prop_map(RequestNumber)
}

fn position() -> impl Strategy<Value = Position> {
    (number(), number()).prop_map(|(epoch, offset)| Position { epoch, offset })
}

fn resume() -> impl Strategy<Value = Resume<'static>> {
    let room = (number_u32(), number(), number()).prop_map(|(room, epoch, version)| ResumeRoom {
        room: RoomNumber(room),
        epoch,
        version,
    });
    (bytes(), number(), vec(room, 0..4)).prop_map(|(token, received, rooms)| Resume {
        token,
        received,
        rooms,
    })
}

fn hello(format: Format) -> BoxedStrategy<ClientMessage<'static>> {
    let schema = (text(), number())
        .prop_map(|(room_type, fingerprint)| SchemaRef { room_type, fingerprint });
    (text(), bytes(), any::<bool>(), option::of(resume()), vec(schema, 0..4))
        .prop_map(move |(name, token, resumable, resume, schemas)| {
            let hello = Hello::new(format);
            ClientMessage::Hello(Hello { name, token, resumable, resume, schemas, ..hello })
        })
        .boxed()
}

pub(crate) fn client_message(format: Format) -> impl Strategy<Value = ClientMessage<'static>> {
    prop_oneof![
        hello(format),
        (number_u32(), text()).prop_map(|(request, room)| ClientMessage::Join(client::Join {
            request: RequestNumber(request),
            room
        })),
        (number_u32(), text(), text()).prop_map(|(request, room_type, key)| {
            ClientMessage::JoinByKey(client::JoinByKey {
                request: RequestNumber(request),
                room_type,
                key,
            })
        }),
        (number_u32(), text(), any::<(bool, bool)>(), option::of(text()), raw(format)).prop_map(
            |(request, room_type, (private, code), key, options)| {
                ClientMessage::Create(client::Create {
                    request: RequestNumber(request),
                    room_type,
                    private,
                    code,
                    key,
                    options,
                })
            }
        ),
        (number_u32(), text(), option::of(text()), raw(format)).prop_map(
            |(request, room_type, key, options)| ClientMessage::JoinOrCreate(
                client::JoinOrCreate { request: RequestNumber(request), room_type, key, options }
            )
        ),
        (number_u32(), option::of(text()), pairs(), number_u32()).prop_map(
            |(request, room_type, filter, limit)| ClientMessage::List(client::List {
                request: RequestNumber(request),
                room_type,
                filter,
                limit
            })
        ),
        (number_u32(), number_u32()).prop_map(|(request, room)| ClientMessage::Leave(
            client::Leave { request: RequestNumber(request), room: RoomNumber(room) }
        )),
        (number_u32(), number_u32(), message_ref(format), raw(format)).prop_map(
            |(room, request, message, payload)| ClientMessage::Request(client::Request {
                room: RoomNumber(room),
                request: RequestNumber(request),
                message,
                payload
            })
        ),
        (number_u32(), message_ref(format), raw(format)).prop_map(|(room, message, payload)| {
            ClientMessage::Send(client::Send { room: RoomNumber(room), message, payload })
        }),
        number().prop_map(|received| ClientMessage::Ack(client::Ack { received })),
        number_u32()
            .prop_map(|room| ClientMessage::Resync(client::Resync { room: RoomNumber(room) })),
        number().prop_map(|nonce| ClientMessage::Ping(client::Ping { nonce })),
        number().prop_map(|nonce| ClientMessage::Pong(client::Pong { nonce })),
        Just(ClientMessage::Goodbye(client::Goodbye {})),
        (number_u32(), text()).prop_map(|(request, room_type)| ClientMessage::Schema(
            client::Schema { request: RequestNumber(request), room_type }
        )),
        client_message_of_channels(format),
        client_message_of_devices(format),
    ]
}

fn client_message_of_channels(format: Format) -> impl Strategy<Value = ClientMessage<'static>> {
    prop_oneof![
        (request(), text(), option::of(position()), any::<bool>()).prop_map(
            |(request, channel, since, presence)| ClientMessage::Subscribe(client::Subscribe {
                request,
                channel,
                since,
                presence
            })
        ),
        number().prop_map(|channel| ClientMessage::Unsubscribe(client::Unsubscribe { channel })),
        (option::of(request()), text(), raw(format)).prop_map(|(request, channel, payload)| {
            ClientMessage::Publish(client::Publish { request, channel, payload })
        }),
        (request(), text()).prop_map(|(request, channel)| ClientMessage::Members(
            client::Members { request, channel }
        )),
        (request(), text(), option::of(position()), number_u32()).prop_map(
            |(request, channel, since, limit)| ClientMessage::History(client::History {
                request,
                channel,
                since,
                limit
            })
        ),
    ]
}

fn client_message_of_devices(format: Format) -> impl Strategy<Value = ClientMessage<'static>> {
    prop_oneof![
        (request(), text(), pairs(), vec(text(), 0..4)).prop_map(
            |(request, device, metadata, tags)| ClientMessage::Register(client::Register {
                request,
                device,
                metadata,
                tags
            })
        ),
        (option::of(request()), raw(format)).prop_map(|(request, payload)| ClientMessage::Report(
            client::Report { request, payload }
        )),
        (number(), option::of(text()), raw(format)).prop_map(|(command, error, payload)| {
            ClientMessage::Answer(client::Answer { command, error, payload })
        }),
    ]
}

fn resumed() -> impl Strategy<Value = Resumed> {
    let lost = (option::of(number_u32().prop_map(RoomNumber)), number())
        .prop_map(|(room, messages)| Lost { room, messages });
    (number(), vec(lost, 0..4)).prop_map(|(received, lost)| Resumed { received, lost })
}

fn room_info() -> impl Strategy<Value = RoomInfo<'static>> {
    (text(), text(), option::of(text()), number_u32(), number_u32(), any::<bool>(), pairs())
        .prop_map(|(id, room_type, key, players, capacity, locked, metadata)| RoomInfo {
            id,
            room_type,
            key,
            players,
            capacity,
            locked,
            metadata,
        })
}

pub(crate) fn server_message(format: Format) -> impl Strategy<Value = ServerMessage<'static>> {
    prop_oneof![
        (
            (number(), number(), bytes()),
            (number_u32(), number_u32(), number_u32()),
            option::of(resumed())
        )
            .prop_map(
                |(
                    (protocol, session, resume),
                    (heartbeat_ms, max_message_bytes, grace_ms),
                    resumed,
                )| {
                    ServerMessage::Welcome(server::Welcome {
                        protocol,
                        session,
                        resume,
                        heartbeat_ms,
                        max_message_bytes,
                        grace_ms,
                        resumed,
                    })
                }
            ),
        (
            (number_u32(), number_u32(), text(), text(), option::of(text())),
            (number(), number(), number_u32(), number_u32(), number()),
            (number_u32(), number_u32())
        )
            .prop_map(
                |(
                    (request, room, id, room_type, key),
                    (player, epoch, tick_hz, sync_hz, fingerprint),
                    (silence_ms, grace_ms),
                )| {
                    ServerMessage::Joined(server::Joined {
                        request: RequestNumber(request),
                        room: RoomNumber(room),
                        id,
                        room_type,
                        key,
                        player,
                        epoch,
                        tick_hz,
                        sync_hz,
                        fingerprint,
                        silence_ms,
                        grace_ms,
                    })
                }
            ),
        (number_u32(), vec(room_info(), 0..4)).prop_map(|(request, rooms)| ServerMessage::Listed(
            server::Listed { request: RequestNumber(request), rooms }
        )),
        (option::of(number_u32().prop_map(RequestNumber)), number_u32(), code(), text()).prop_map(
            |(request, room, code, text)| ServerMessage::Left(server::Left {
                request,
                room: RoomNumber(room),
                code,
                text
            })
        ),
        (number_u32(), raw(format)).prop_map(|(request, payload)| ServerMessage::Reply(
            server::Reply { request: RequestNumber(request), payload: payload.into() }
        )),
        (number_u32(), number(), number(), message_ref(format), raw(format)).prop_map(
            |(room, sequence, version, message, payload)| ServerMessage::Event(server::Event {
                room: RoomNumber(room),
                sequence,
                version,
                message,
                payload: payload.into(),
            })
        ),
        (number_u32(), number(), number(), raw(format)).prop_map(|(room, epoch, version, body)| {
            ServerMessage::Snapshot(server::Snapshot {
                room: RoomNumber(room),
                epoch,
                version,
                body: body.into(),
            })
        }),
        (number_u32(), number(), number(), raw(format)).prop_map(|(room, one, other, body)| {
            ServerMessage::Patch(server::Patch {
                room: RoomNumber(room),
                base: one.min(other),
                version: one.max(other),
                body: body.into(),
            })
        }),
        (number_u32(), number(), any::<u64>()).prop_map(|(room, version, digest)| {
            ServerMessage::Check(server::Check { room: RoomNumber(room), version, digest })
        }),
        number().prop_map(|nonce| ServerMessage::Ping(server::Ping { nonce })),
        (number(), number())
            .prop_map(|(nonce, time_us)| ServerMessage::Pong(server::Pong { nonce, time_us })),
        number().prop_map(|received| ServerMessage::Ack(server::Ack { received })),
        (
            option::of(number_u32().prop_map(RequestNumber)),
            option::of(number_u32().prop_map(RoomNumber)),
            code(),
            text(),
            option::of(number_u32())
        )
            .prop_map(|(request, room, code, text, retry_after_ms)| {
                ServerMessage::Error(server::Error { request, room, code, text, retry_after_ms })
            }),
        (code(), text())
            .prop_map(|(code, text)| ServerMessage::Goodbye(server::Goodbye { code, text })),
        // In MessagePack, it is the JSON text.
        (
            option::of(number_u32().prop_map(RequestNumber)),
            text(),
            raw(if format == Format::Msgpack { Format::Json } else { format })
        )
            .prop_map(|(request, room_type, schema)| ServerMessage::Schema(
                server::Schema { request, room_type, schema: schema.into() }
            )),
        server_message_of_channels(format),
        server_message_of_devices(format),
    ]
}

fn server_message_of_channels(format: Format) -> impl Strategy<Value = ServerMessage<'static>> {
    let member = (number(), option::of(text()), text())
        .prop_map(|(session, user, name)| MemberInfo { session, user, name });
    let publication =
        (number(), option::of(text()), raw(format)).prop_map(|(offset, user, payload)| {
            PastPublication { offset, user, payload: payload.into() }
        });
    prop_oneof![
        (request(), (number(), number(), number()), any::<(bool, bool)>(), number()).prop_map(
            |(request, (channel, epoch, offset), (recovered, bytes), members)| {
                ServerMessage::Subscribed(server::Subscribed {
                    request,
                    channel,
                    epoch,
                    offset,
                    recovered,
                    bytes,
                    members,
                })
            }
        ),
        (number(), number(), option::of(text()), raw(format)).prop_map(
            |(channel, offset, user, payload)| ServerMessage::Publication(server::Publication {
                channel,
                offset,
                user,
                payload: payload.into()
            })
        ),
        (number(), code(), text()).prop_map(|(channel, code, text)| {
            ServerMessage::Unsubscribed(server::Unsubscribed { channel, code, text })
        }),
        (number(), number(), any::<bool>(), number(), option::of(text()), text()).prop_map(
            |(channel, sequence, joined, session, user, name)| ServerMessage::Presence(
                server::Presence { channel, sequence, joined, session, user, name }
            )
        ),
        (request(), number()).prop_map(|(request, offset)| ServerMessage::Published(
            server::Published { request, offset }
        )),
        (request(), number(), number(), vec(member, 0..4)).prop_map(
            |(request, sequence, count, members)| ServerMessage::Members(server::Members {
                request,
                sequence,
                count,
                members
            })
        ),
        (request(), number(), number(), any::<bool>(), vec(publication, 0..4)).prop_map(
            |(request, epoch, offset, bytes, publications)| ServerMessage::History(
                server::History { request, epoch, offset, bytes, publications }
            )
        ),
    ]
}

fn server_message_of_devices(format: Format) -> impl Strategy<Value = ServerMessage<'static>> {
    prop_oneof![
        (request(), any::<bool>(), any::<bool>()).prop_map(|(request, is_new, bytes)| {
            ServerMessage::Registered(server::Registered { request, is_new, bytes })
        }),
        (option::of(number()), raw(format)).prop_map(|(command, payload)| ServerMessage::Command(
            server::Command { command, payload: payload.into() }
        )),
    ]
}
