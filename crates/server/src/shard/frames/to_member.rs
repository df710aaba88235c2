//! Frames of sessions for their seats in rooms.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use playfield_room::{EndReason, LeaveReason};
use playfield_wire::client::ResumeRoom;
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_text, put_u8, put_varint};
use playfield_wire::{DecodeError, RequestNumber, RoomNumber};

use crate::addresses::AddressName;
use crate::shard::frames::{MEMBER, number, optional, put, put_optional, unknown};
use crate::shard::keys::Seat;
use crate::shard::mail::Act;
use crate::shard::mail::member::{Farewell, ResumeCopy, ToMember};

const MESSAGE: u8 = MEMBER;
const LEAVE: u8 = MEMBER + 1;
const RESYNC: u8 = MEMBER + 2;
const GO: u8 = MEMBER + 3;
const LOST: u8 = MEMBER + 4;
const MEASURED: u8 = MEMBER + 5;
const RESUMED: u8 = MEMBER + 6;
const RESUME_COPY: u8 = MEMBER + 7;
const RESUME_ENDED: u8 = MEMBER + 8;
const BLOCKED: u8 = MEMBER + 9;
const RECEIVED: u8 = MEMBER + 10;

/// The bytes of an IP address; one of version 4 is mapped to one of version 6.
const IP_BYTES: usize = 16;

/// Appends what a session says to its seat.
pub(crate) fn put_to_member(out: &mut Vec<u8>, seat: Seat, what: &ToMember<'_>) {
    let tag = match what {
        ToMember::Act(Act::Message { .. }) => MESSAGE,
        ToMember::Act(Act::Leave { .. }) => LEAVE,
        ToMember::Act(Act::Resync) => RESYNC,
        ToMember::Go { .. } => GO,
        ToMember::Lost => LOST,
        ToMember::Measured(_) => MEASURED,
        ToMember::Resumed { .. } => RESUMED,
        ToMember::ResumeCopy(_) => RESUME_COPY,
        ToMember::ResumeEnded => RESUME_ENDED,
        ToMember::Blocked => BLOCKED,
        ToMember::Received(_) => RECEIVED,
    };
    let address = [seat.room.bits(), seat.member.bits()];
    put(out, tag, address, |out| match *what {
        ToMember::Act(Act::Resync) | ToMember::Lost | ToMember::ResumeEnded | ToMember::Blocked => {
        }
        ToMember::Act(Act::Message { ref message, ref payload, request }) => {
            put_optional(out, request.map(|request| request.0));
            match message {
                MessageRef::Index(index) => {
                    put_bool(out, false);
                    put_varint(out, u64::from(*index));
                }
                MessageRef::Name(name) => {
                    put_bool(out, true);
                    put_text(out, name);
                }
            }
            out.extend_from_slice(payload);
        }
        ToMember::Act(Act::Leave { request }) => put_varint(out, u64::from(request.0)),
        ToMember::Go { why, farewell } => {
            let why = WHY.iter().position(|of| *of == why).unwrap_or_default();
            put_u8(out, why as u8);
            put_farewell(out, farewell);
        }
        ToMember::Measured(time) => put_time(out, time),
        ToMember::Resumed { away, address: AddressName { ip, is_trusted } } => {
            put_time(out, away);
            put_bool(out, is_trusted);
            match ip {
                IpAddr::V4(ip) => out.extend_from_slice(&ip.to_ipv6_mapped().octets()),
                IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
            }
        }
        ToMember::ResumeCopy(ResumeCopy { number, copy }) => {
            put_varint(out, u64::from(number));
            put_optional(out, copy.map(|copy| copy.room.0));
            if let Some(ResumeRoom { epoch, version, .. }) = copy {
                put_varint(out, epoch);
                put_varint(out, version);
            }
        }
        ToMember::Received(bytes) => put_varint(out, bytes as u64),
    });
}

pub(super) fn content<'a>(tag: u8, reader: &mut Reader<'a>) -> Result<ToMember<'a>, DecodeError> {
    Ok(match tag {
        MESSAGE => {
            let request = optional(reader)?.map(RequestNumber);
            let message = match reader.bool()? {
                false => MessageRef::Index(number(reader)?),
                true => MessageRef::Name(Cow::Borrowed(reader.text()?)),
            };
            let payload = Cow::Borrowed(reader.rest());
            ToMember::Act(Act::Message { message, payload, request })
        }
        LEAVE => ToMember::Act(Act::Leave { request: RequestNumber(number(reader)?) }),
        RESYNC => ToMember::Act(Act::Resync),
        GO => {
            let why = WHY.get(usize::from(reader.u8()?)).copied();
            let why = why.ok_or_else(|| unknown(reader, "reason"))?;
            ToMember::Go { why, farewell: farewell(reader)? }
        }
        LOST => ToMember::Lost,
        MEASURED => ToMember::Measured(time(reader)?),
        RESUMED => {
            let (away, is_trusted) = (time(reader)?, reader.bool()?);
            let mut octets = [0; IP_BYTES];
            octets.copy_from_slice(reader.take(IP_BYTES)?);
            let ip = Ipv6Addr::from(octets);
            let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
            ToMember::Resumed { away, address: AddressName { ip, is_trusted } }
        }
        RESUME_COPY => {
            let number = number(reader)?;
            let copy = match optional(reader)?.map(RoomNumber) {
                Some(room) => {
                    let (epoch, version) = (reader.varint()?, reader.varint()?);
                    Some(ResumeRoom { room, epoch, version })
                }
                None => None,
            };
            ToMember::ResumeCopy(ResumeCopy { number, copy })
        }
        RESUME_ENDED => ToMember::ResumeEnded,
        BLOCKED => ToMember::Blocked,
        RECEIVED => ToMember::Received(number(reader)?),
        _ => return Err(unknown(reader, "tag")),
    })
}

/// The reasons for which a session leaves a room, in the order of their numbers.
const WHY: [LeaveReason; 8] = [
    LeaveReason::Left,
    LeaveReason::ConnectionLost,
    LeaveReason::TakenOver,
    LeaveReason::Kicked,
    LeaveReason::RoomEnded(EndReason::Closed),
    LeaveReason::RoomEnded(EndReason::Empty),
    LeaveReason::RoomEnded(EndReason::ShuttingDown),
    LeaveReason::RoomEnded(EndReason::Drained),
];

fn put_farewell(out: &mut Vec<u8>, farewell: Farewell) {
    let (number, request) = match farewell {
        Farewell::None => (0, None),
        Farewell::Asked(request) => (1, Some(request)),
        Farewell::GraceOver => (2, None),
        Farewell::TooMuch => (3, None),
    };
    put_u8(out, number);
    if let Some(request) = request {
        put_varint(out, u64::from(request.0));
    }
}

fn farewell(reader: &mut Reader<'_>) -> Result<Farewell, DecodeError> {
    Ok(match reader.u8()? {
        0 => Farewell::None,
        1 => Farewell::Asked(RequestNumber(number(reader)?)),
        2 => Farewell::GraceOver,
        3 => Farewell::TooMuch,
        _ => return Err(unknown(reader, "farewell")),
    })
}

fn put_time(out: &mut Vec<u8>, time: Duration) {
    put_varint(out, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

fn time(reader: &mut Reader<'_>) -> Result<Duration, DecodeError> {
    reader.varint().map(Duration::from_nanos)
}
