//! Client messages in `packed`.

use std::borrow::Cow;

use super::{ClientMessage, Hello, Resume, ResumeRoom, SchemaRef, write_request, write_send};
use crate::error::Kind;
use crate::message::MessageRef;
use crate::reader::Reader;
use crate::writer::{put_bool, put_bytes, put_text, put_u8, put_varint};
use crate::{DecodeError, Format, PROTOCOL};

const HELLO: u8 = 0x01;
const JOIN: u8 = 0x02;
const CREATE: u8 = 0x03;
const JOIN_OR_CREATE: u8 = 0x04;
const LIST: u8 = 0x05;
const LEAVE: u8 = 0x06;
pub(super) const REQUEST: u8 = 0x07;
pub(super) const SEND: u8 = 0x08;
const ACK: u8 = 0x09;
const RESYNC: u8 = 0x0a;
const PING: u8 = 0x0b;
const PONG: u8 = 0x0c;
const GOODBYE: u8 = 0x0d;
const SCHEMA: u8 = 0x0e;

pub(super) fn decode(body: &[u8]) -> Result<ClientMessage<'_>, DecodeError> {
    let mut reader = Reader::new(body);
    let message = message(&mut reader)?;
    reader.finish()?;
    Ok(message)
}

fn message<'a>(reader: &mut Reader<'a>) -> Result<ClientMessage<'a>, DecodeError> {
    Ok(match reader.u8()? {
        HELLO => ClientMessage::Hello(hello(reader)?),
        JOIN => ClientMessage::Join { request: reader.varint_u32()?, room: reader.text()?.into() },
        CREATE => ClientMessage::Create {
            request: reader.varint_u32()?,
            room_type: reader.text()?.into(),
            private: reader.bool()?,
            options: reader.rest(),
        },
        JOIN_OR_CREATE => ClientMessage::JoinOrCreate {
            request: reader.varint_u32()?,
            room_type: reader.text()?.into(),
            options: reader.rest(),
        },
        LIST => list(reader)?,
        LEAVE => ClientMessage::Leave { request: reader.varint_u32()?, room: reader.varint_u32()? },
        REQUEST => ClientMessage::Request {
            room: reader.varint_u32()?,
            request: reader.varint_u32()?,
            message: MessageRef::Index(reader.varint_u32()?),
            payload: reader.rest(),
        },
        SEND => ClientMessage::Send {
            room: reader.varint_u32()?,
            message: MessageRef::Index(reader.varint_u32()?),
            payload: reader.rest(),
        },
        ACK => ClientMessage::Ack {
            room: reader.varint_u32()?,
            version: reader.varint()?,
            sequence: reader.varint()?,
        },
        RESYNC => ClientMessage::Resync { room: reader.varint_u32()? },
        PING => ClientMessage::Ping { nonce: reader.varint()? },
        PONG => ClientMessage::Pong { nonce: reader.varint()? },
        GOODBYE => ClientMessage::Goodbye,
        SCHEMA => ClientMessage::Schema {
            request: reader.varint_u32()?,
            room_type: reader.text()?.into(),
        },
        kind => return Err(DecodeError::of(0, Kind::Unknown { kind })),
    })
}

fn hello<'a>(reader: &mut Reader<'a>) -> Result<Hello<'a>, DecodeError> {
    let protocol = reader.varint()?;
    if protocol != PROTOCOL {
        reader.rest();
        return Ok(Hello { protocol, ..Hello::new(Format::Packed) });
    }
    let at = reader.offset();
    let number = reader.u8()?;
    let format = Format::from_number(number)
        .ok_or_else(|| DecodeError::of(at, Kind::UnspokenFormat { number }))?;
    let name = reader.text()?.into();
    let token = reader.bytes()?.into();
    let resume = if reader.bool()? { Some(resume(reader)?) } else { None };
    let mut schemas = Vec::new();
    for _ in 0..reader.count()? {
        schemas.push(SchemaRef { room_type: reader.text()?.into(), fingerprint: reader.varint()? });
    }
    Ok(Hello { protocol, format, name, token, resume, schemas })
}

fn resume<'a>(reader: &mut Reader<'a>) -> Result<Resume<'a>, DecodeError> {
    let token = reader.bytes()?.into();
    let mut rooms = Vec::new();
    for _ in 0..reader.count()? {
        rooms.push(ResumeRoom {
            room: reader.varint_u32()?,
            epoch: reader.varint()?,
            version: reader.varint()?,
            sequence: reader.varint()?,
        });
    }
    Ok(Resume { token, rooms })
}

fn list<'a>(reader: &mut Reader<'a>) -> Result<ClientMessage<'a>, DecodeError> {
    let request = reader.varint_u32()?;
    let room_type = if reader.bool()? { Some(reader.text()?.into()) } else { None };
    let mut filter: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
    for _ in 0..reader.count()? {
        filter.push((reader.text()?.into(), reader.text()?.into()));
    }
    Ok(ClientMessage::List { request, room_type, filter, limit: reader.varint_u32()? })
}

pub(super) fn encode(message: &ClientMessage<'_>, out: &mut Vec<u8>) {
    match message {
        ClientMessage::Hello(hello) => put_hello(out, hello),
        ClientMessage::Join { request, room } => {
            put_u8(out, JOIN);
            put_varint(out, (*request).into());
            put_text(out, room);
        }
        ClientMessage::Create { request, room_type, private, options } => {
            put_u8(out, CREATE);
            put_varint(out, (*request).into());
            put_text(out, room_type);
            put_bool(out, *private);
            out.extend_from_slice(options);
        }
        ClientMessage::JoinOrCreate { request, room_type, options } => {
            put_u8(out, JOIN_OR_CREATE);
            put_varint(out, (*request).into());
            put_text(out, room_type);
            out.extend_from_slice(options);
        }
        ClientMessage::List { request, room_type, filter, limit } => {
            put_u8(out, LIST);
            put_varint(out, (*request).into());
            put_bool(out, room_type.is_some());
            if let Some(room_type) = room_type {
                put_text(out, room_type);
            }
            put_varint(out, filter.len() as u64);
            for (key, value) in filter {
                put_text(out, key);
                put_text(out, value);
            }
            put_varint(out, (*limit).into());
        }
        ClientMessage::Leave { request, room } => {
            put_u8(out, LEAVE);
            put_varint(out, (*request).into());
            put_varint(out, (*room).into());
        }
        ClientMessage::Request { room, request, message, payload } => {
            let (index, name) = message.parts(Format::Packed);
            write_request(Format::Packed, out, *room, *request, index, name, payload);
        }
        ClientMessage::Send { room, message, payload } => {
            let (index, name) = message.parts(Format::Packed);
            write_send(Format::Packed, out, *room, index, name, payload);
        }
        ClientMessage::Ack { room, version, sequence } => {
            put_u8(out, ACK);
            put_varint(out, (*room).into());
            put_varint(out, *version);
            put_varint(out, *sequence);
        }
        ClientMessage::Resync { room } => {
            put_u8(out, RESYNC);
            put_varint(out, (*room).into());
        }
        ClientMessage::Ping { nonce } => {
            put_u8(out, PING);
            put_varint(out, *nonce);
        }
        ClientMessage::Pong { nonce } => {
            put_u8(out, PONG);
            put_varint(out, *nonce);
        }
        ClientMessage::Goodbye => put_u8(out, GOODBYE),
        ClientMessage::Schema { request, room_type } => {
            put_u8(out, SCHEMA);
            put_varint(out, (*request).into());
            put_text(out, room_type);
        }
    }
}

fn put_hello(out: &mut Vec<u8>, hello: &Hello<'_>) {
    put_u8(out, HELLO);
    put_varint(out, hello.protocol);
    put_u8(out, hello.format.number());
    put_text(out, &hello.name);
    put_bytes(out, &hello.token);
    put_bool(out, hello.resume.is_some());
    if let Some(resume) = &hello.resume {
        put_bytes(out, &resume.token);
        put_varint(out, resume.rooms.len() as u64);
        for room in &resume.rooms {
            put_varint(out, room.room.into());
            put_varint(out, room.epoch);
            put_varint(out, room.version);
            put_varint(out, room.sequence);
        }
    }
    put_varint(out, hello.schemas.len() as u64);
    for schema in &hello.schemas {
        put_text(out, &schema.room_type);
        put_varint(out, schema.fingerprint);
    }
}
