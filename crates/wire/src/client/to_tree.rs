//! Client messages to trees.

use super::{ClientMessage, Hello, write_request, write_send};
use crate::TreeFormat;
use crate::tree::Object;

pub(super) fn encode(message: &ClientMessage<'_>, format: TreeFormat, out: &mut Vec<u8>) {
    match message {
        ClientMessage::Hello(hello) => write_hello(format, out, hello),
        ClientMessage::Join { request, room } => {
            let mut object = Object::message(format, out, "join");
            object.integer("request", *request);
            object.text("room", room);
            object.end();
        }
        ClientMessage::Create { request, room_type, private, options } => {
            let mut object = Object::message(format, out, "create");
            object.integer("request", *request);
            object.text("room_type", room_type);
            object.bool("private", *private);
            object.raw("options", options);
            object.end();
        }
        ClientMessage::JoinOrCreate { request, room_type, options } => {
            let mut object = Object::message(format, out, "join_or_create");
            object.integer("request", *request);
            object.text("room_type", room_type);
            object.raw("options", options);
            object.end();
        }
        ClientMessage::List { request, room_type, filter, limit } => {
            let mut object = Object::message(format, out, "list");
            object.integer("request", *request);
            if let Some(room_type) = room_type {
                object.text("room_type", room_type);
            }
            object.pairs("filter", filter);
            object.integer("limit", *limit);
            object.end();
        }
        ClientMessage::Leave { request, room } => {
            let mut object = Object::message(format, out, "leave");
            object.integer("request", *request);
            object.integer("room", *room);
            object.end();
        }
        ClientMessage::Request { room, request, message, payload } => {
            let (index, name) = message.parts(format.into());
            write_request(format.into(), out, *room, *request, index, name, payload);
        }
        ClientMessage::Send { room, message, payload } => {
            let (index, name) = message.parts(format.into());
            write_send(format.into(), out, *room, index, name, payload);
        }
        ClientMessage::Ack { room, version, sequence } => {
            let mut object = Object::message(format, out, "ack");
            object.integer("room", *room);
            object.integer("version", *version);
            object.integer("sequence", *sequence);
            object.end();
        }
        ClientMessage::Resync { room } => {
            let mut object = Object::message(format, out, "resync");
            object.integer("room", *room);
            object.end();
        }
        ClientMessage::Ping { nonce } => {
            let mut object = Object::message(format, out, "ping");
            object.integer("nonce", *nonce);
            object.end();
        }
        ClientMessage::Pong { nonce } => {
            let mut object = Object::message(format, out, "pong");
            object.integer("nonce", *nonce);
            object.end();
        }
        ClientMessage::Goodbye => Object::message(format, out, "goodbye").end(),
        ClientMessage::Schema { request, room_type } => {
            let mut object = Object::message(format, out, "schema");
            object.integer("request", *request);
            object.text("room_type", room_type);
            object.end();
        }
    }
}

fn write_hello(format: TreeFormat, out: &mut Vec<u8>, hello: &Hello<'_>) {
    let mut object = Object::message(format, out, "hello");
    object.integer("protocol", hello.protocol);
    object.integer("format", hello.format.number());
    object.text("name", &hello.name);
    object.bytes("token", &hello.token);
    if let Some(resume) = &hello.resume {
        let mut inner = object.field("resume").object(2);
        inner.bytes("token", &resume.token);
        inner.list("rooms", &resume.rooms, |object, room| {
            object.integer("room", room.room);
            object.integer("epoch", room.epoch);
            object.integer("version", room.version);
            object.integer("sequence", room.sequence);
        });
        inner.end();
    }
    object.list("schemas", &hello.schemas, |object, schema| {
        object.text("room_type", &schema.room_type);
        object.integer("fingerprint", schema.fingerprint);
    });
    object.end();
}
