//! Server messages in `packed`.

use super::{RoomInfo, ServerMessage, write_event, write_patch, write_reply, write_snapshot};
use crate::error::Kind;
use crate::message::MessageRef;
use crate::reader::Reader;
use crate::writer::{put_bool, put_bytes, put_text, put_u8, put_varint};
use crate::{DecodeError, ErrorCode, Format};

const WELCOME: u8 = 0x41;
const JOINED: u8 = 0x42;
const LISTED: u8 = 0x43;
const LEFT: u8 = 0x44;
pub(super) const REPLY: u8 = 0x45;
pub(super) const EVENT: u8 = 0x46;
pub(super) const SNAPSHOT: u8 = 0x47;
pub(super) const PATCH: u8 = 0x48;
const CHECK: u8 = 0x4D;
const PING: u8 = 0x49;
const PONG: u8 = 0x4a;
const ERROR: u8 = 0x4b;
const GOODBYE: u8 = 0x4c;
const SCHEMA: u8 = 0x4e;

pub(super) fn decode(body: &[u8]) -> Result<ServerMessage<'_>, DecodeError> {
    let mut reader = Reader::new(body);
    let message = message(&mut reader)?;
    reader.finish()?;
    Ok(message)
}

fn message<'a>(reader: &mut Reader<'a>) -> Result<ServerMessage<'a>, DecodeError> {
    Ok(match reader.u8()? {
        WELCOME => ServerMessage::Welcome {
            protocol: reader.varint()?,
            session: reader.varint()?,
            resume: reader.bytes()?.into(),
            heartbeat_ms: reader.varint_u32()?,
            max_message_bytes: reader.varint_u32()?,
        },
        JOINED => ServerMessage::Joined {
            request: reader.varint_u32()?,
            room: reader.varint_u32()?,
            id: reader.text()?.into(),
            room_type: reader.text()?.into(),
            player: reader.varint()?,
            epoch: reader.varint()?,
            tick_hz: reader.varint_u32()?,
            sync_hz: reader.varint_u32()?,
            fingerprint: reader.varint()?,
        },
        LISTED => {
            let request = reader.varint_u32()?;
            let mut rooms = Vec::new();
            for _ in 0..reader.count()? {
                rooms.push(room_info(reader)?);
            }
            ServerMessage::Listed { request, rooms }
        }
        LEFT => ServerMessage::Left {
            request: optional_varint_u32(reader)?,
            room: reader.varint_u32()?,
            code: code(reader)?,
            text: reader.text()?.into(),
        },
        REPLY => ServerMessage::Reply { request: reader.varint_u32()?, payload: reader.rest() },
        EVENT => ServerMessage::Event {
            room: reader.varint_u32()?,
            sequence: reader.varint()?,
            version: reader.varint()?,
            message: MessageRef::Index(reader.varint_u32()?),
            payload: reader.rest(),
        },
        SNAPSHOT => ServerMessage::Snapshot {
            room: reader.varint_u32()?,
            epoch: reader.varint()?,
            version: reader.varint()?,
            body: reader.rest(),
        },
        PATCH => {
            let room = reader.varint_u32()?;
            let base = reader.varint()?;
            let at = reader.offset();
            let version = base.checked_add(reader.varint()?).ok_or_else(|| {
                DecodeError::new(at, "a patch leads past the last version of 64 bits")
            })?;
            ServerMessage::Patch { room, base, version, body: reader.rest() }
        }
        CHECK => ServerMessage::Check {
            room: reader.varint_u32()?,
            version: reader.varint()?,
            digest: reader.u64()?,
        },
        PING => ServerMessage::Ping { nonce: reader.varint()? },
        PONG => ServerMessage::Pong { nonce: reader.varint()? },
        ERROR => ServerMessage::Error {
            request: optional_varint_u32(reader)?,
            room: optional_varint_u32(reader)?,
            code: code(reader)?,
            text: reader.text()?.into(),
        },
        GOODBYE => ServerMessage::Goodbye { code: code(reader)?, text: reader.text()?.into() },
        SCHEMA => ServerMessage::Schema {
            request: optional_varint_u32(reader)?,
            room_type: reader.text()?.into(),
            schema: reader.rest(),
        },
        kind => return Err(DecodeError::of(0, Kind::Unknown { kind })),
    })
}

fn optional_varint_u32(reader: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
    if reader.bool()? { reader.varint_u32().map(Some) } else { Ok(None) }
}

fn code(reader: &mut Reader<'_>) -> Result<ErrorCode, DecodeError> {
    let at = reader.offset();
    let number = reader.varint()?;
    u16::try_from(number)
        .ok()
        .and_then(ErrorCode::from_number)
        .ok_or_else(|| DecodeError::new(at, format!("no code has the number {number}")))
}

fn room_info<'a>(reader: &mut Reader<'a>) -> Result<RoomInfo<'a>, DecodeError> {
    let id = reader.text()?.into();
    let room_type = reader.text()?.into();
    let players = reader.varint_u32()?;
    let capacity = reader.varint_u32()?;
    let locked = reader.bool()?;
    let mut metadata = Vec::new();
    for _ in 0..reader.count()? {
        metadata.push((reader.text()?.into(), reader.text()?.into()));
    }
    Ok(RoomInfo { id, room_type, players, capacity, locked, metadata })
}

pub(super) fn encode(message: &ServerMessage<'_>, out: &mut Vec<u8>) {
    match message {
        ServerMessage::Welcome { protocol, session, resume, heartbeat_ms, max_message_bytes } => {
            put_u8(out, WELCOME);
            put_varint(out, *protocol);
            put_varint(out, *session);
            put_bytes(out, resume);
            put_varint(out, (*heartbeat_ms).into());
            put_varint(out, (*max_message_bytes).into());
        }
        ServerMessage::Joined {
            request,
            room,
            id,
            room_type,
            player,
            epoch,
            tick_hz,
            sync_hz,
            fingerprint,
        } => {
            put_u8(out, JOINED);
            put_varint(out, (*request).into());
            put_varint(out, (*room).into());
            put_text(out, id);
            put_text(out, room_type);
            put_varint(out, *player);
            put_varint(out, *epoch);
            put_varint(out, (*tick_hz).into());
            put_varint(out, (*sync_hz).into());
            put_varint(out, *fingerprint);
        }
        ServerMessage::Listed { request, rooms } => {
            put_u8(out, LISTED);
            put_varint(out, (*request).into());
            put_varint(out, rooms.len() as u64);
            for room in rooms {
                put_room_info(out, room);
            }
        }
        ServerMessage::Left { request, room, code, text } => {
            put_u8(out, LEFT);
            put_optional_varint(out, *request);
            put_varint(out, (*room).into());
            put_varint(out, code.number().into());
            put_text(out, text);
        }
        ServerMessage::Reply { request, payload } => {
            write_reply(Format::Packed, out, *request, payload)
        }
        ServerMessage::Event { room, sequence, version, message, payload } => {
            let (index, name) = message.parts(Format::Packed);
            write_event(Format::Packed, out, *room, *sequence, *version, index, name, payload);
        }
        ServerMessage::Snapshot { room, epoch, version, body } => {
            write_snapshot(Format::Packed, out, *room, *epoch, *version, |out| {
                out.extend_from_slice(body)
            });
        }
        ServerMessage::Patch { room, base, version, body } => {
            write_patch(Format::Packed, out, *room, *base, *version, |out| {
                out.extend_from_slice(body)
            });
        }
        ServerMessage::Check { room, version, digest } => {
            put_u8(out, CHECK);
            put_varint(out, (*room).into());
            put_varint(out, *version);
            out.extend_from_slice(&digest.to_le_bytes());
        }
        ServerMessage::Ping { nonce } => {
            put_u8(out, PING);
            put_varint(out, *nonce);
        }
        ServerMessage::Pong { nonce } => {
            put_u8(out, PONG);
            put_varint(out, *nonce);
        }
        ServerMessage::Error { request, room, code, text } => {
            put_u8(out, ERROR);
            put_optional_varint(out, *request);
            put_optional_varint(out, *room);
            put_varint(out, code.number().into());
            put_text(out, text);
        }
        ServerMessage::Goodbye { code, text } => {
            put_u8(out, GOODBYE);
            put_varint(out, code.number().into());
            put_text(out, text);
        }
        ServerMessage::Schema { request, room_type, schema } => {
            put_u8(out, SCHEMA);
            put_optional_varint(out, *request);
            put_text(out, room_type);
            out.extend_from_slice(schema);
        }
    }
}

fn put_optional_varint(out: &mut Vec<u8>, value: Option<u32>) {
    put_bool(out, value.is_some());
    if let Some(value) = value {
        put_varint(out, value.into());
    }
}

fn put_room_info(out: &mut Vec<u8>, room: &RoomInfo<'_>) {
    put_text(out, &room.id);
    put_text(out, &room.room_type);
    put_varint(out, room.players.into());
    put_varint(out, room.capacity.into());
    put_bool(out, room.locked);
    put_varint(out, room.metadata.len() as u64);
    for (key, value) in &room.metadata {
        put_text(out, key);
        put_text(out, value);
    }
}
