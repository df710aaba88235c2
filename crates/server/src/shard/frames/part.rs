//! The parts that frames are made of: each is named once, for writing and for reading.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use playfield_room::{EndReason, LeaveReason};
use playfield_wire::client::ResumeRoom;
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_text, put_u8, put_varint};
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};

use crate::addresses::AddressName;
use crate::shard::frames::{Frame, Stay, ToSession};
use crate::shard::keys::Seat;
use crate::shard::mail::Act;
use crate::shard::mail::member::{Farewell, ResumeCopy, ToMember};
use crate::shard::slab::Key;

/// The bytes of an IP address.
const IP_BYTES: usize = 16;

/// A part of a frame.
pub(super) trait Part<'a>: Sized {
    /// Appends the part.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the part off the front.
    ///
    /// # Errors
    /// If the bytes are no such part.
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// Makes parts of structs, with their fields in this order, and of enums. A variant has a tag, its
/// form, and the names in it that are its parts.
macro_rules! parts {
    (struct $Of:ident {$($part:ident),*}) => {
        impl<'a> Part<'a> for $Of {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$part.put(out);)*
            }

            fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(Self { $($part: Part::take(reader)?),* })
            }
        }
    };
    (enum $Of:ty {$(
        $tag:literal $Variant:ident $(($($tuple:tt)*))? $({$($named:tt)*})? [$($part:ident)*]
    ),* $(,)?}) => {
        impl<'a> Part<'a> for $Of {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$Variant $(($($tuple)*))? $({$($named)*})? => {
                        put_u8(out, $tag);
                        $($part.put(out);)*
                    })*
                }
            }

            fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(match reader.u8()? {
                    $($tag => {
                        $(let $part = Part::take(reader)?;)*
                        Self::$Variant $(($($tuple)*))? $({$($named)*})?
                    })*
                    _ => return Err(unknown(reader, stringify!($Of))),
                })
            }
        }
    };
}

parts! {
    enum Frame<'a> {
        0 Session(stay, what) [stay what],
        1 Member(seat, what) [seat what],
    }
}

parts! {
    enum ToSession<'a> {
        0 Seated(seat) [seat],
        1 Joined(body) [body],
        2 Counted(body) [body],
        3 Fleeting(body) [body],
        4 Lost [],
        5 Done [],
        6 Took(time) [time],
        7 Holds { before, after } [before after],
        8 CopyResumed { number, body } [number body],
        9 Doom { code, text, unless_away } [code text unless_away],
        10 Left { snapshots, answered } [snapshots answered],
        11 Waits [],
    }
}

parts! {
    enum ToMember<'a> {
        0 Act(Act::Message { message, payload, request }) [request message payload],
        1 Act(Act::Leave { request }) [request],
        2 Act(Act::Resync) [],
        3 Go { why, farewell } [why farewell],
        4 Lost [],
        5 Measured(round_trip) [round_trip],
        6 Resumed { away, address } [away address],
        7 ResumeCopy(copy) [copy],
        8 ResumeEnded [],
        9 Blocked [],
        10 Received(bytes) [bytes],
    }
}

parts! {
    enum MessageRef<'a> {
        0 Index(index) [index],
        1 Name(name) [name],
    }
}

parts! {
    enum Farewell {
        0 None [],
        1 Asked(request) [request],
        2 GraceOver [],
        3 TooMuch [],
    }
}

parts!(struct Stay { connection, room });
parts!(struct Seat { shard, room, member });
parts!(struct ResumeCopy { number, copy });
parts!(struct ResumeRoom { room, epoch, version });
parts!(struct AddressName { ip, is_trusted });

/// Makes parts of values that are others in another form.
macro_rules! forms {
    ($(<$($of:ident)?> $Of:ty, as $As:ty: $put:expr, $take:expr;)*) => {$(
        impl<'a $(, $of)?> Part<'a> for $Of {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                let put: fn(&Self) -> $As = $put;
                put(self).put(out);
            }

            fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let take: fn($As) -> Option<Self> = $take;
                take(Part::take(reader)?).ok_or_else(|| unknown(reader, stringify!($Of)))
            }
        }
    )*};
}

forms! {
    <> u16, as u64: |number| (*number).into(), |number| number.try_into().ok();
    <> u32, as u64: |number| (*number).into(), |number| number.try_into().ok();
    <> usize, as u64: |number| *number as u64, |number| number.try_into().ok();
    <> RequestNumber, as u32: |request| request.0, |number| Some(Self(number));
    <> RoomNumber, as u32: |room| room.0, |number| Some(Self(number));
    <K> Key<K>, as u64: |key| key.bits(), |bits| Some(Self::from_bits(bits));
    <> ErrorCode, as u16: |code| code.number(), Self::from_number;
    <> LeaveReason, as u16: number_of, |number| WHY.get(usize::from(number)).copied();
    <> Duration, as u64: nanoseconds_of, |nanoseconds| Some(Self::from_nanos(nanoseconds));
}

impl Part<'_> for u64 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, *self);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint()
    }
}

impl Part<'_> for [u64; 2] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|number| number.put(out));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok([reader.varint()?, reader.varint()?])
    }
}

impl Part<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        put_bool(out, *self);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()
    }
}

impl<'a, T: Part<'a>> Part<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bool(out, self.is_some());
        if let Some(part) = self {
            part.put(out);
        }
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.bool()? { T::take(reader).map(Some) } else { Ok(None) }
    }
}

/// A text, with its length.
impl<'a> Part<'a> for &'a str {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self);
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.text()
    }
}

impl<'a> Part<'a> for Cow<'a, str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self);
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.text().map(Self::Borrowed)
    }
}

/// The last part of a frame: all bytes to its end.
impl<'a> Part<'a> for &'a [u8] {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(reader.rest())
    }
}

impl<'a> Part<'a> for Cow<'a, [u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self::Borrowed(reader.rest()))
    }
}

/// An address of version 6, to which one of version 4 is mapped.
impl Part<'_> for IpAddr {
    fn put(&self, out: &mut Vec<u8>) {
        let ip = match self {
            Self::V4(ip) => ip.to_ipv6_mapped(),
            Self::V6(ip) => *ip,
        };
        out.extend_from_slice(&ip.octets());
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut octets = [0; IP_BYTES];
        octets.copy_from_slice(reader.take(IP_BYTES)?);
        Ok(Ipv6Addr::from(octets).to_canonical())
    }
}

/// The reasons for which a session leaves a room, in the order of their numbers.
const WHY: [LeaveReason; 9] = [
    LeaveReason::Left,
    LeaveReason::ConnectionLost,
    LeaveReason::TakenOver,
    LeaveReason::Kicked,
    LeaveReason::RoomEnded(EndReason::Closed),
    LeaveReason::RoomEnded(EndReason::Empty),
    LeaveReason::RoomEnded(EndReason::ShuttingDown),
    LeaveReason::RoomEnded(EndReason::Drained),
    LeaveReason::RoomEnded(EndReason::Moved),
];

fn number_of(why: &LeaveReason) -> u16 {
    WHY.iter().position(|of| of == why).unwrap_or_default() as u16
}

fn nanoseconds_of(time: &Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn unknown(reader: &Reader<'_>, what: &str) -> DecodeError {
    DecodeError::new(reader.offset(), format!("a frame with an unknown {what}"))
}
