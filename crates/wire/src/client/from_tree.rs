//! Client messages from trees.

use super::{ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use crate::error::Kind;
use crate::message::MessageRef;
use crate::tree::members::{Member, Members, Raw};
use crate::{DecodeError, Format, PROTOCOL};

pub(super) fn decode<'a, R: Raw<'a>>(body: R) -> Result<ClientMessage<'a>, DecodeError> {
    let members = Members::of_message(body)?;
    let name = members.message_type()?;
    Ok(match &*name {
        "hello" => ClientMessage::Hello(hello(&members)?),
        "join" => ClientMessage::Join {
            request: members.u32(Member::Request)?,
            room: members.text(Member::Room)?,
        },
        "create" => ClientMessage::Create {
            request: members.u32(Member::Request)?,
            room_type: members.text(Member::RoomType)?,
            private: members.optional_bool(Member::Private)?.unwrap_or(false),
            options: members.raw(Member::Options),
        },
        "join_or_create" => ClientMessage::JoinOrCreate {
            request: members.u32(Member::Request)?,
            room_type: members.text(Member::RoomType)?,
            options: members.raw(Member::Options),
        },
        "list" => ClientMessage::List {
            request: members.u32(Member::Request)?,
            room_type: members.optional_text(Member::RoomType)?,
            filter: members.optional_pairs(Member::Filter)?,
            limit: members.optional_u32(Member::Limit)?.unwrap_or(0),
        },
        "leave" => ClientMessage::Leave {
            request: members.u32(Member::Request)?,
            room: members.u32(Member::Room)?,
        },
        "request" => ClientMessage::Request {
            room: members.u32(Member::Room)?,
            request: members.u32(Member::Request)?,
            message: MessageRef::Name(members.text(Member::Message)?),
            payload: members.raw(Member::Payload),
        },
        "send" => ClientMessage::Send {
            room: members.u32(Member::Room)?,
            message: MessageRef::Name(members.text(Member::Message)?),
            payload: members.raw(Member::Payload),
        },
        "ack" => ClientMessage::Ack {
            room: members.u32(Member::Room)?,
            version: members.u64(Member::Version)?,
            sequence: members.u64(Member::Sequence)?,
        },
        "resync" => ClientMessage::Resync { room: members.u32(Member::Room)? },
        "ping" => ClientMessage::Ping { nonce: members.u64(Member::Nonce)? },
        "pong" => ClientMessage::Pong { nonce: members.u64(Member::Nonce)? },
        "goodbye" => ClientMessage::Goodbye,
        "schema" => ClientMessage::Schema {
            request: members.u32(Member::Request)?,
            room_type: members.text(Member::RoomType)?,
        },
        unknown => return Err(members.unknown_type(unknown)),
    })
}

fn hello<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<Hello<'a>, DecodeError> {
    let format = Format::from(R::FORMAT);
    let protocol = members.u64(Member::Protocol)?;
    if protocol != PROTOCOL {
        return Ok(Hello { protocol, ..Hello::new(format) });
    }
    let number = u64::from(format.number());
    let named = members.optional_u64(Member::Format)?.unwrap_or(number);
    if named != number {
        // What follows is in the format of the hello itself, so it can't ask for anything else.
        let number =
            u8::try_from(named).map_err(|_| members.refuse(Member::Format, &number.to_string()))?;
        return Err(DecodeError::of(
            members.offset(Member::Format),
            Kind::UnspokenFormat { number },
        ));
    }
    let resume = members.optional_object(Member::Resume)?;
    Ok(Hello {
        protocol,
        format,
        name: members.optional_text(Member::Name)?.unwrap_or_default(),
        token: members.optional_bytes(Member::Token)?.unwrap_or_default(),
        resume: resume.as_ref().map(resume_of).transpose()?,
        schemas: members.optional_list(Member::Schemas, schema_of)?,
    })
}

fn resume_of<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<Resume<'a>, DecodeError> {
    let rooms = members.list(Member::Rooms, |members| {
        Ok(ResumeRoom {
            room: members.u32(Member::Room)?,
            epoch: members.u64(Member::Epoch)?,
            version: members.u64(Member::Version)?,
            sequence: members.u64(Member::Sequence)?,
        })
    })?;
    Ok(Resume { token: members.bytes(Member::Token)?, rooms })
}

fn schema_of<'a, R: Raw<'a>>(members: &Members<'a, R>) -> Result<SchemaRef<'a>, DecodeError> {
    Ok(SchemaRef {
        room_type: members.text(Member::RoomType)?,
        fingerprint: members.u64(Member::Fingerprint)?,
    })
}
