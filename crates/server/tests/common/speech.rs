//! Messages of clients and nodes, as tests write and read them.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::tree::read_value;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, TreeFormat};

use super::room;

/// A message of a node, as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Welcome {
        session: u64,
    },
    Joined {
        request: RequestNumber,
        room: RoomNumber,
        id: String,
        key: Option<String>,
        player: u64,
    },
    Listed {
        request: RequestNumber,
        ids: Vec<String>,
    },
    Left {
        request: Option<RequestNumber>,
        room: RoomNumber,
        code: ErrorCode,
    },
    Reply {
        request: RequestNumber,
        payload: String,
    },
    Event {
        room: RoomNumber,
        sequence: u64,
        payload: String,
    },
    Snapshot {
        room: RoomNumber,
        version: u64,
        body: String,
    },
    Patch {
        room: RoomNumber,
        base: u64,
        version: u64,
        body: String,
    },
    Schema {
        request: Option<RequestNumber>,
        room_type: String,
        schema: String,
    },
    Ping,
    Check {
        room: RoomNumber,
        version: u64,
        digest: u64,
    },
    Ack {
        received: u64,
    },
    Pong {
        nonce: u64,
    },
    Error {
        request: Option<RequestNumber>,
        room: Option<RoomNumber>,
        code: ErrorCode,
    },
    Goodbye {
        code: ErrorCode,
    },
    Subscribed {
        channel: u64,
    },
    Publication {
        offset: u64,
        payload: String,
    },
}

/// A payload or a body as a text.
pub(crate) fn text(format: Format, bytes: &[u8]) -> String {
    match format {
        Format::Msgpack => {
            read_value(TreeFormat::Msgpack, bytes).unwrap().as_str().unwrap_or_default().to_owned()
        }
        Format::Packed | Format::Json => {
            String::from_utf8_lossy(bytes).trim_matches('"').to_owned()
        }
    }
}

pub(crate) fn heard(format: Format, body: &[u8]) -> Heard {
    let text = |bytes: &[u8]| text(format, bytes);
    match ServerMessage::decode(format, body).unwrap() {
        ServerMessage::Welcome(server::Welcome { session, .. }) => Heard::Welcome { session },
        ServerMessage::Joined(server::Joined { request, room, id, key, player, .. }) => {
            Heard::Joined {
                request,
                room,
                id: id.into_owned(),
                key: key.map(Cow::into_owned),
                player,
            }
        }
        ServerMessage::Listed(server::Listed { request, rooms }) => Heard::Listed {
            request,
            ids: rooms.iter().map(|room| room.id.clone().into_owned()).collect(),
        },
        ServerMessage::Schema(server::Schema { request, room_type, schema }) => {
            Heard::Schema { request, room_type: room_type.into_owned(), schema: text(&schema) }
        }
        ServerMessage::Left(server::Left { request, room, code, .. }) => {
            Heard::Left { request, room, code }
        }
        ServerMessage::Reply(server::Reply { request, payload }) => {
            Heard::Reply { request, payload: text(&payload) }
        }
        ServerMessage::Event(server::Event { room, sequence, payload, .. }) => {
            Heard::Event { room, sequence, payload: text(&payload) }
        }
        ServerMessage::Snapshot(server::Snapshot { room, version, body, .. }) => {
            Heard::Snapshot { room, version, body: text(&body) }
        }
        ServerMessage::Patch(server::Patch { room, base, version, body }) => {
            Heard::Patch { room, base, version, body: text(&body) }
        }
        ServerMessage::Check(server::Check { room, version, digest }) => {
            Heard::Check { room, version, digest }
        }
        ServerMessage::Ping(_) => Heard::Ping,
        ServerMessage::Ack(server::Ack { received }) => Heard::Ack { received },
        ServerMessage::Pong(server::Pong { nonce, .. }) => Heard::Pong { nonce },
        ServerMessage::Error(server::Error { request, room, code, .. }) => {
            Heard::Error { request, room, code }
        }
        ServerMessage::Goodbye(server::Goodbye { code, .. }) => Heard::Goodbye { code },
        ServerMessage::Subscribed(server::Subscribed { channel, .. }) => {
            Heard::Subscribed { channel }
        }
        ServerMessage::Publication(server::Publication { offset, payload, .. }) => {
            Heard::Publication { offset, payload: text(&payload) }
        }
        other => panic!("no client of these tests asks for that: {other:?}"),
    }
}

/// Messages to a node, encoded.
pub(crate) fn encoded(format: Format, message: &ClientMessage<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    message.encode(format, &mut body);
    body
}

pub(crate) fn hello(format: Format) -> Vec<u8> {
    encoded(format, &ClientMessage::Hello(Hello { name: "ann".into(), ..Hello::new(format) }))
}

pub(crate) fn request(
    format: Format,
    room: RoomNumber,
    request: RequestNumber,
    name: &str,
    payload: &str,
) -> Vec<u8> {
    let payload = room::encoded(format, payload.as_bytes());
    let mut body = Vec::new();
    client::write_request(format, &mut body, room, request, room::index(name), name, &payload);
    body
}

pub(crate) fn send(room: RoomNumber, name: &str, payload: &str) -> Vec<u8> {
    let mut body = Vec::new();
    client::write_send(
        Format::Packed,
        &mut body,
        room,
        room::index(name),
        name,
        payload.as_bytes(),
    );
    body
}
