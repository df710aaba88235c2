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

/// The messages, each with its kind; they are about this room.
pub(crate) fn unpack(mut packed: &[u8], room: RoomNumber) -> impl Iterator<Item = (Kind, &[u8])> {
    std::iter::from_fn(move || {
        let (header, rest) = packed.split_first_chunk()?;
        let header = u32::from_le_bytes(*header);
        let (body, rest) = rest.split_at_checked(header as usize >> 1)?;
        packed = rest;
        let kind = if header & 1 == 1 { Kind::Counted(Some(room)) } else { Kind::Fleeting };
        Some((kind, body))
    })
}

#[cfg(test)]
mod tests {
    use playfield_wire::RoomNumber;

    use super::{pack, unpack};
    use crate::shard::connection::Kind;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let mut packed = Vec::new();
        let room = RoomNumber(3);
        let counted = Kind::Counted(Some(room));
        let messages = [(counted, &b"one"[..]), (Kind::Fleeting, b""), (counted, b"three")];
        for (kind, body) in messages {
            pack(&mut packed, kind, |out| out.extend_from_slice(body));
        }
        assert_eq!(unpack(&packed, room).collect::<Vec<_>>(), messages);
    }
}
