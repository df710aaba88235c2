//! The messages of a link as bytes: a head, and records.

use std::time::Duration;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bool, put_u8, put_varint};

use crate::effect::NodeId;
use crate::engine::Revision;
use crate::record::{Incarnation, begin, incarnation, open, put_incarnation, put_slot, slot};

/// The greatest number of bytes of a frame.
pub(crate) const FRAME_MAX: usize = 512 * 1024;
/// The greatest number of bytes of a body. The rest is more than a head and a record's fields take.
pub(crate) const BODY_MAX: usize = FRAME_MAX - 128;

/// The longest time that a request may take.
const WITHIN_MAX: Duration = Duration::from_secs(3600);

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The sender waits for a frame.
    pub(crate) wants: bool,
    pub(crate) from: NodeId,
    /// The incarnation that the frame is for.
    pub(crate) to: Incarnation,
    /// The revision of the sender's last renewal.
    pub(crate) revision: Revision,
    /// The sender's epoch, and the receiver's that the sender has heard of last, or 0.
    pub(crate) epoch: u32,
    pub(crate) heard: u32,
    /// The number of the first record, or of the next one if there is none.
    pub(crate) first: u64,
    /// The number of records that the sender has received.
    pub(crate) received: u64,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = begin(64);
        put_bool(&mut out, self.wants);
        put_slot(&mut out, self.from.slot);
        put_incarnation(&mut out, self.from.incarnation);
        put_incarnation(&mut out, self.to);
        put_varint(&mut out, self.revision);
        put_varint(&mut out, self.epoch.into());
        put_varint(&mut out, self.heard.into());
        put_varint(&mut out, self.first);
        put_varint(&mut out, self.received);
        out
    }

    /// Reads a head. The records follow.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, Reader<'_>), DecodeError> {
        let mut reader = open(bytes)?;
        let wants = reader.bool()?;
        let slot = slot(&mut reader)?;
        let from = NodeId { slot, incarnation: incarnation(&mut reader)? };
        let head = Self {
            wants,
            from,
            to: incarnation(&mut reader)?,
            revision: reader.varint()?,
            epoch: reader.varint_u32()?,
            heard: reader.varint_u32()?,
            first: reader.varint()?,
            received: reader.varint()?,
        };
        Ok((head, reader))
    }
}

/// Sets in the bytes of a frame that the sender waits for a frame.
pub(crate) fn want(frame: &mut [u8]) {
    frame[1] = 1;
}

/// A record: a message of a host, or the fate of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Tell {
        body: &'a [u8],
    },
    Ask {
        ask: u64,
        within: Duration,
        body: &'a [u8],
    },
    Answer {
        ask: u64,
        body: &'a [u8],
    },
    /// The answer is too large for a frame.
    TooLarge {
        ask: u64,
    },
    /// A kind of a later build.
    Unknown,
}

const TELL: u8 = 0x20;
const ASK: u8 = 0x21;
const ANSWER: u8 = 0x22;
const TOO_LARGE: u8 = 0x23;

impl<'a> Item<'a> {
    /// Returns the record as bytes, with its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, number, within, body) = match *self {
            Self::Tell { body } => (TELL, None, None, body),
            Self::Ask { ask, within, body } => (ASK, Some(ask), Some(within), body),
            Self::Answer { ask, body } => (ANSWER, Some(ask), None, body),
            Self::TooLarge { ask } => (TOO_LARGE, Some(ask), None, &[][..]),
            Self::Unknown => (0, None, None, &[][..]),
        };
        let mut fields = Vec::with_capacity(24);
        put_u8(&mut fields, kind);
        if let Some(number) = number {
            put_varint(&mut fields, number);
        }
        if let Some(within) = within {
            put_varint(&mut fields, within.min(WITHIN_MAX).as_micros() as u64);
        }
        let mut out = Vec::with_capacity(5 + fields.len() + body.len());
        put_varint(&mut out, (fields.len() + body.len()) as u64);
        out.extend_from_slice(&fields);
        out.extend_from_slice(body);
        out
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = reader.bytes()?;
        let mut reader = Reader::new(bytes);
        Ok(match reader.u8()? {
            TELL => Self::Tell { body: reader.rest() },
            ASK => {
                let (ask, micros) = (reader.varint()?, reader.varint()?);
                let within = Duration::from_micros(micros).min(WITHIN_MAX);
                Self::Ask { ask, within, body: reader.rest() }
            }
            ANSWER => Self::Answer { ask: reader.varint()?, body: reader.rest() },
            TOO_LARGE => Self::TooLarge { ask: reader.varint()? },
            _ => Self::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            wants: true,
            from: NodeId { slot: 3, incarnation: Incarnation(7) },
            to: Incarnation(8),
            revision: 300,
            epoch: 2,
            heard: 1,
            first: 128,
            received: 5,
        }
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let items = [
            Item::Tell { body: b"told" },
            Item::Ask { ask: 900, within: Duration::from_millis(1500), body: b"asked" },
            Item::Answer { ask: 900, body: b"" },
            Item::TooLarge { ask: 1 },
            Item::Unknown,
        ];
        let mut bytes = Head { wants: false, ..head() }.encode();
        want(&mut bytes);
        for item in &items {
            bytes.extend(item.encode());
        }
        let (found, mut reader) = Head::decode(&bytes).unwrap();
        assert_eq!(found, head());
        for item in items {
            assert_eq!(Item::decode(&mut reader).unwrap(), item);
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn heads_and_records_that_are_cut_off_are_refused() {
        let bytes = head().encode();
        for end in 0..bytes.len() {
            assert!(Head::decode(&bytes[..end]).unwrap_err().is_truncated());
        }
        let bytes = Item::Ask { ask: 900, within: Duration::ZERO, body: b"asked" }.encode();
        for end in 0..bytes.len() {
            assert!(Item::decode(&mut Reader::new(&bytes[..end])).is_err());
        }
    }

    #[test]
    fn a_record_of_the_longest_body_fits_in_a_frame() {
        let mut head = head();
        head.revision = u64::MAX;
        (head.epoch, head.heard) = (u32::MAX, u32::MAX);
        (head.first, head.received) = (u64::MAX, u64::MAX);
        let body = &vec![0; BODY_MAX];
        let item = Item::Ask { ask: u64::MAX, within: Duration::MAX, body };
        assert!(head.encode().len() + item.encode().len() <= FRAME_MAX);
    }
}
