//! Server messages from trees.

use std::borrow::Cow;

use super::{RoomInfo, ServerMessage};
use crate::message::MessageRef;
use crate::tree::members::{Member, Members, Raw};
use crate::{DecodeError, ErrorCode, TreeFormat};

pub(super) fn decode<'a, R: Raw<'a>>(body: R) -> Result<ServerMessage<'a>, DecodeError> {
    let members = Members::of_message(body)?;
    let name = members.message_type()?;
    Ok(match &*name {
        "welcome" => ServerMessage::Welcome {
            protocol: members.u64(Member::Protocol)?,
            session: members.u64(Member::Session)?,
            resume: members.bytes(Member::Resume)?,
            heartbeat_ms: members.u32(Member::HeartbeatMs)?,
            max_message_bytes: members.u32(Member::MaxMessageBytes)?,
        },
        "joined" => ServerMessage::Joined {
            request: members.u32(Member::Request)?,
            room: members.u32(Member::Room)?,
            id: members.text(Member::Id)?,
            room_type: members.text(Member::RoomType)?,
            player: members.u64(Member::Player)?,
            epoch: members.u64(Member::Epoch)?,
            tick_hz: members.u32(Member::TickHz)?,
            sync_hz: members.u32(Member::SyncHz)?,
            fingerprint: members.u64(Member::Fingerprint)?,
        },
        "listed" => ServerMessage::Listed {
            request: members.u32(Member::Request)?,
            rooms: members.list(Member::Rooms, room_info)?,
        },
        "left" => ServerMessage::Left {
            request: members.optional_u32(Member::Request)?,
            room: members.u32(Member::Room)?,
            code: code(&members)?,
            text: members.text(Member::Text)?,
        },
        "reply" => ServerMessage::Reply {
            request: members.u32(Member::Request)?,
            payload: members.raw(Member::Payload),
        },
        "event" => ServerMessage::Event {
            room: members.u32(Member::Room)?,
            sequence: members.u64(Member::Sequence)?,
            version: members.u64(Member::Version)?,
            message: MessageRef::Name(members.text(Member::Message)?),
            payload: members.raw(Member::Payload),
        },
        "snapshot" => ServerMessage::Snapshot {
            room: members.u32(Member::Room)?,
            epoch: members.u64(Member::Epoch)?,
            version: members.u64(Member::Version)?,
            body: members.raw(Member::Ops),
        },
        "patch" => patch(&members)?,
        "check" => ServerMessage::Check {
            room: members.u32(Member::Room)?,
            version: members.u64(Member::Version)?,
            digest: members.u64(Member::Digest)?,
        },
        "ping" => ServerMessage::Ping { nonce: members.u64(Member::Nonce)? },
        "pong" => ServerMessage::Pong { nonce: members.u64(Member::Nonce)? },
        "error" => ServerMessage::Error {
            request: members.optional_u32(Member::Request)?,
            room: members.optional_u32(Member::Room)?,
            code: code(&members)?,
            text: members.text(Member::Text)?,
        },
        "goodbye" => {
            ServerMessage::Goodbye { code: code(&members)?, text: members.text(Member::Text)? }
        }
        "schema" => ServerMessage::Schema {
            request: members.optional_u32(Member::Request)?,
            room_type: members.text(Member::RoomType)?,
            schema: schema(&members)?,
        },
        unknown => return Err(members.unknown_type(unknown)),
    })
}

/// JSON in every format: in JSON the object itself, in MessagePack its text.
fn schema<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<&'a [u8], DecodeError> {
    match R::FORMAT {
        TreeFormat::Json => Ok(members.raw(Member::Schema)),
        TreeFormat::Msgpack => match members.text(Member::Schema)? {
            Cow::Borrowed(text) => Ok(text.as_bytes()),
            Cow::Owned(_) => Err(members.refuse(Member::Schema, "a text")),
        },
    }
}

fn patch<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<ServerMessage<'a>, DecodeError> {
    let base = members.u64(Member::Base)?;
    let version = members.u64(Member::Version)?;
    if version < base {
        return Err(members.refuse(Member::Version, &format!("no less than the base, {base}")));
    }
    Ok(ServerMessage::Patch {
        room: members.u32(Member::Room)?,
        base,
        version,
        body: members.raw(Member::Ops),
    })
}

/// A code of the node by its name, a room's own by its number.
fn code<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<ErrorCode, DecodeError> {
    let code = match members.optional_text(Member::Code) {
        Ok(Some(name)) => ErrorCode::from_name(&name),
        Ok(None) => return Err(members.missing(Member::Code)),
        Err(_) => members.u32(Member::Code).ok().and_then(room_code),
    };
    code.ok_or_else(|| {
        members.refuse(Member::Code, "the name of a code, or a number from 1000 to 65535")
    })
}

fn room_code(number: u32) -> Option<ErrorCode> {
    let number = u16::try_from(number).ok()?;
    ErrorCode::from_number(number).filter(|code| matches!(code, ErrorCode::Room(_)))
}

fn room_info<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<RoomInfo<'a>, DecodeError> {
    Ok(RoomInfo {
        id: members.text(Member::Id)?,
        room_type: members.text(Member::RoomType)?,
        players: members.u32(Member::Players)?,
        capacity: members.u32(Member::Capacity)?,
        locked: members.bool(Member::Locked)?,
        metadata: members.optional_pairs(Member::Metadata)?,
    })
}
