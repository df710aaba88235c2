//! Messages to a client on their way from a room's shard to the session's, which frames them.

use crate::shard::connection::Kind;
use playfield_wire::RoomNumber;

/// Before each message: twice its length, and one more if it is counted.
const HEADER_BYTES: usize = 4;

/// Appends a message, which is what `write` appends.
#[inline]
pub(crate) fn pack<T>(out: &mut Vec<u8>, kind: Kind, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let written = write(out);
    // No message has 2 GiB: the limit of what waits for a client is half of that.
    let length = u32::try_from(out.len() - start - HEADER_BYTES).unwrap_or(u32::MAX >> 1);
    let header = length << 1 | u32::from(kind != Kind::Fleeting);
    out[start..start + HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
    written
}

/// Stands for messages that are not there, instead of a header. Their number follows.
const LOST: u32 = u32::MAX;

/// An item of the mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parcel<'a> {
    Message(Kind, &'a [u8]),
    /// This many counted messages would be here, but were too much to keep.
    Lost(u32),
}

/// Says that this many counted messages are missing.
pub(crate) fn pack_lost(out: &mut Vec<u8>, messages: u32) {
    out.extend_from_slice(&LOST.to_le_bytes());
    out.extend_from_slice(&messages.to_le_bytes());
}

/// Takes out the oldest messages, until at most `bytes_max` bytes are left, or one message. In
/// their place it says how many they were.
pub(crate) fn trim(out: &mut Vec<u8>, bytes_max: usize) {
    let (mut rest, mut lost) = (&out[..], 0);
    while rest.len() > bytes_max
        && let Some((parcel, after)) = next(rest, RoomNumber(0))
        && !after.is_empty()
    {
        lost += match parcel {
            Parcel::Message(kind, _) => u32::from(kind != Kind::Fleeting),
            Parcel::Lost(messages) => messages,
        };
        rest = after;
    }
    if rest.len() < out.len() {
        let mut trimmed = Vec::with_capacity(rest.len() + 2 * HEADER_BYTES);
        pack_lost(&mut trimmed, lost);
        trimmed.extend_from_slice(rest);
        *out = trimmed;
    }
}

/// Iterates over the items of the mail; the messages are about this room.
pub(crate) fn unpack(mut packed: &[u8], room: RoomNumber) -> impl Iterator<Item = Parcel<'_>> {
    std::iter::from_fn(move || {
        let (parcel, rest) = next(packed, room)?;
        packed = rest;
        Some(parcel)
    })
}

fn next(packed: &[u8], room: RoomNumber) -> Option<(Parcel<'_>, &[u8])> {
    let (header, rest) = packed.split_first_chunk()?;
    let header = u32::from_le_bytes(*header);
    if header == LOST {
        let (messages, rest) = rest.split_first_chunk()?;
        return Some((Parcel::Lost(u32::from_le_bytes(*messages)), rest));
    }
    let (body, rest) = rest.split_at_checked(header as usize >> 1)?;
    let kind = if header & 1 == 1 { Kind::Counted(Some(room)) } else { Kind::Fleeting };
    Some((Parcel::Message(kind, body), rest))
}

#[cfg(test)]
mod tests {
    use playfield_wire::RoomNumber;

    use super::{Parcel, pack, pack_lost, trim, unpack};
    use crate::shard::connection::Kind;

    const ROOM: RoomNumber = RoomNumber(3);
    const COUNTED: Kind = Kind::Counted(Some(ROOM));

    fn packed(messages: &[(Kind, &[u8])]) -> Vec<u8> {
        let mut packed = Vec::new();
        for (kind, body) in messages {
            pack(&mut packed, *kind, |out| out.extend_from_slice(body));
        }
        packed
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let messages = [(COUNTED, &b"one"[..]), (Kind::Fleeting, b""), (COUNTED, b"three")];
        let mut packed = packed(&messages);
        pack_lost(&mut packed, 7);
        let expected = messages.map(|(kind, body)| Parcel::Message(kind, body));
        let expected: Vec<_> = expected.into_iter().chain([Parcel::Lost(7)]).collect();
        assert_eq!(unpack(&packed, ROOM).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn past_its_limit_the_oldest_are_taken_out_and_counted() {
        let (one, two) = (Parcel::Message(COUNTED, b"one"), Parcel::Message(COUNTED, b"two"));
        let mut mail = packed(&[(COUNTED, b"nil"), (Kind::Fleeting, b"..."), (COUNTED, b"one")]);
        trim(&mut mail, 21);
        assert_eq!(mail.len(), 21);
        trim(&mut mail, 20);
        assert_eq!(unpack(&mail, ROOM).skip(1).count(), 2, "the first is lost");
        mail.extend(packed(&[(COUNTED, b"two")]));
        trim(&mut mail, 14);
        assert_eq!(unpack(&mail, ROOM).collect::<Vec<_>>(), [Parcel::Lost(1), one, two]);
        trim(&mut mail, 13);
        trim(&mut mail, 0);
        assert_eq!(unpack(&mail, ROOM).collect::<Vec<_>>(), [Parcel::Lost(2), two]);
    }
}
