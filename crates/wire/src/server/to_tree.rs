//! Server messages to trees.

use super::{ServerMessage, write_event, write_patch, write_reply, write_snapshot};
use crate::tree::Object;
use crate::{ErrorCode, TreeFormat};

pub(super) fn encode(message: &ServerMessage<'_>, format: TreeFormat, out: &mut Vec<u8>) {
    match message {
        ServerMessage::Welcome { protocol, session, resume, heartbeat_ms, max_message_bytes } => {
            let mut object = Object::message(format, out, "welcome");
            object.integer("protocol", *protocol);
            object.integer("session", *session);
            object.bytes("resume", resume);
            object.integer("heartbeat_ms", *heartbeat_ms);
            object.integer("max_message_bytes", *max_message_bytes);
            object.end();
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
            let mut object = Object::message(format, out, "joined");
            object.integer("request", *request);
            object.integer("room", *room);
            object.text("id", id);
            object.text("room_type", room_type);
            object.integer("player", *player);
            object.integer("epoch", *epoch);
            object.integer("tick_hz", *tick_hz);
            object.integer("sync_hz", *sync_hz);
            object.integer("fingerprint", *fingerprint);
            object.end();
        }
        ServerMessage::Listed { request, rooms } => {
            let mut object = Object::message(format, out, "listed");
            object.integer("request", *request);
            object.list("rooms", rooms, |object, room| {
                object.text("id", &room.id);
                object.text("room_type", &room.room_type);
                object.integer("players", room.players);
                object.integer("capacity", room.capacity);
                object.bool("locked", room.locked);
                object.pairs("metadata", &room.metadata);
            });
            object.end();
        }
        ServerMessage::Left { request, room, code, text } => {
            let mut object = Object::message(format, out, "left");
            object.optional_integer("request", *request);
            object.integer("room", *room);
            write_code(&mut object, *code);
            object.text("text", text);
            object.end();
        }
        ServerMessage::Reply { request, payload } => {
            write_reply(format.into(), out, *request, payload)
        }
        ServerMessage::Event { room, sequence, version, message, payload } => {
            let (index, name) = message.parts(format.into());
            write_event(format.into(), out, *room, *sequence, *version, index, name, payload);
        }
        ServerMessage::Snapshot { room, epoch, version, body } => {
            write_snapshot(format.into(), out, *room, *epoch, *version, |out| {
                out.extend_from_slice(body)
            });
        }
        ServerMessage::Patch { room, base, version, body } => {
            write_patch(format.into(), out, *room, *base, *version, |out| {
                out.extend_from_slice(body)
            });
        }
        ServerMessage::Check { room, version, digest } => {
            let mut object = Object::message(format, out, "check");
            object.integer("room", *room);
            object.integer("version", *version);
            object.integer("digest", *digest);
            object.end();
        }
        ServerMessage::Ping { nonce } => {
            let mut object = Object::message(format, out, "ping");
            object.integer("nonce", *nonce);
            object.end();
        }
        ServerMessage::Pong { nonce } => {
            let mut object = Object::message(format, out, "pong");
            object.integer("nonce", *nonce);
            object.end();
        }
        ServerMessage::Error { request, room, code, text } => {
            let mut object = Object::message(format, out, "error");
            object.optional_integer("request", *request);
            object.optional_integer("room", *room);
            write_code(&mut object, *code);
            object.text("text", text);
            object.end();
        }
        ServerMessage::Goodbye { code, text } => {
            let mut object = Object::message(format, out, "goodbye");
            write_code(&mut object, *code);
            object.text("text", text);
            object.end();
        }
        ServerMessage::Schema { request, room_type, schema } => {
            let mut object = Object::message(format, out, "schema");
            object.optional_integer("request", *request);
            object.text("room_type", room_type);
            match format {
                TreeFormat::Json => object.raw("schema", schema),
                // What is no text is no schema either, and is said as none.
                TreeFormat::Msgpack => {
                    object.text("schema", std::str::from_utf8(schema).unwrap_or_default());
                }
            }
            object.end();
        }
    }
}

/// The name of a node's code, the number of a room's.
fn write_code(object: &mut Object<'_>, code: ErrorCode) {
    match code {
        ErrorCode::Room(number) => object.integer("code", number),
        code => object.text("code", &code.name()),
    }
}
