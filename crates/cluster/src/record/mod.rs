//! The records and messages of a cluster as bytes.
//!
//! Each begins with the number of its format, 1. Later fields of a format are appended, and a
//! reader ignores what follows the fields that it knows.

use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::writer::put_u8;

mod beat;
mod claim;
mod node;

pub use beat::{Beat, Load};
pub use claim::{ClaimKeyError, ClaimRecord, NAME_BYTES_MAX, claim_key};
pub use node::{NodeRecord, NodeState};

/// The number of a node's place in the cluster, below [`SLOTS`].
pub type Slot = u16;

/// The greatest number of nodes.
pub const SLOTS: Slot = 1024;

/// A random number that shows who has written a claim.
pub type Nonce = [u8; 16];

const FORMAT: u8 = 1;

/// A random number, new each time a node takes a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// Hexadecimal digits.
impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Begins a record of about that many bytes, with the number of the format.
pub(crate) fn begin(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    put_u8(&mut out, FORMAT);
    out
}

/// Returns a reader after the number of the format.
pub(crate) fn open(bytes: &[u8]) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        FORMAT => Ok(reader),
        other => {
            let what = format!(
                "a record of the format {other}, and this build reads {FORMAT}: upgrade this node"
            );
            Err(DecodeError::new(0, what))
        }
    }
}

pub(crate) fn put_slot(out: &mut Vec<u8>, slot: Slot) {
    out.extend_from_slice(&slot.to_le_bytes());
}

pub(crate) fn put_incarnation(out: &mut Vec<u8>, incarnation: Incarnation) {
    out.extend_from_slice(&incarnation.0.to_le_bytes());
}

pub(crate) fn slot(reader: &mut Reader<'_>) -> Result<Slot, DecodeError> {
    let at = reader.offset();
    let slot = u16::from(reader.u8()?) | u16::from(reader.u8()?) << 8;
    if slot >= SLOTS {
        return Err(DecodeError::new(at, format!("the slot {slot} is not below {SLOTS}")));
    }
    Ok(slot)
}

pub(crate) fn incarnation(reader: &mut Reader<'_>) -> Result<Incarnation, DecodeError> {
    reader.u64().map(Incarnation)
}

fn array<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N], DecodeError> {
    let mut array = [0; N];
    array.copy_from_slice(reader.take(N)?);
    Ok(array)
}

#[cfg(test)]
mod tests {
    use super::{Beat, ClaimRecord, DecodeError, Incarnation, Load, NodeRecord, NodeState};

    fn node() -> NodeRecord {
        NodeRecord {
            incarnation: Incarnation(0x0000_0003_1234_5678),
            state: NodeState::Serving,
            beat: 300,
            name: "node 3".into(),
            addresses: vec!["wss://n3.example.com".into(), "tls://203.0.113.7:7350".into()],
            build: 7,
            types: vec![("board".into(), 0x0123_4567_89ab_cdef)],
            lock: "machine/lock".into(),
            lease_ms: 20_000,
        }
    }

    fn claim() -> ClaimRecord {
        let (room, nonce) = ([5; 16], [9; 16]);
        ClaimRecord { slot: 1023, incarnation: Incarnation(7), room, is_code: true, nonce }
    }

    fn beat() -> Beat {
        let load = Load { rooms: 300, busy_percent: 70, takes_rooms: false };
        Beat {
            slot: 258,
            incarnation: Incarnation(7),
            revision: 1 << 40,
            state: NodeState::Dead,
            load,
        }
    }

    /// Checks the bytes of one record: whole, cut off at each byte, with a later field, and of a
    /// later format.
    fn check<T: PartialEq + std::fmt::Debug>(
        value: &T,
        bytes: &[u8],
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) {
        assert_eq!(decode(bytes).as_ref(), Ok(value));
        for end in 0..bytes.len() {
            let error = decode(&bytes[..end]).expect_err("a record that is cut off");
            assert!(error.is_truncated(), "{end} of {}: {error}", bytes.len());
        }
        let later_field = [bytes, &[1, 2, 3]].concat();
        assert_eq!(decode(&later_field).as_ref(), Ok(value));
        let later_format = [&[2], &bytes[1..]].concat();
        let error = decode(&later_format).expect_err("a record of a later format").to_string();
        let text = "at byte 0: a record of the format 2, and this build reads 1: upgrade this node";
        assert_eq!(error, text);
    }

    #[test]
    fn records_are_read_whole_or_not_at_all() {
        check(&node(), &node().encode(), NodeRecord::decode);
        check(&claim(), &claim().encode(), ClaimRecord::decode);
        check(&beat(), &beat().encode(), Beat::decode);
    }

    #[test]
    fn the_bytes_of_a_claim_are_fixed() {
        let mut expected = vec![1, 0xff, 3, 7, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([5; 16]);
        expected.push(1);
        expected.extend([9; 16]);
        assert_eq!(claim().encode(), expected);
    }

    #[test]
    fn a_slot_past_the_last_and_a_state_that_is_not_known_are_refused() {
        let mut bytes = claim().encode();
        bytes[1] = 0;
        bytes[2] = 4;
        let error = ClaimRecord::decode(&bytes).expect_err("slot 1024").to_string();
        assert_eq!(error, "at byte 1: the slot 1024 is not below 1024");

        let mut bytes = node().encode();
        bytes[9] = 3;
        let error = NodeRecord::decode(&bytes).expect_err("state 3").to_string();
        assert_eq!(error, "at byte 9: the state 3 of a node is not known here");
    }
}
