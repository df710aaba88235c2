//! The records and messages of a cluster as bytes.
//!
//! Each begins with the number of its format, 1. Later fields of a format are appended, and a
//! reader ignores what follows the fields that it knows.

use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_text, put_u8, put_varint};

/// The number of a node's place in the cluster, below [`SLOTS`].
pub type Slot = u16;

/// The greatest number of nodes.
pub const SLOTS: Slot = 1024;

/// A random number that shows who has written a claim.
pub type Nonce = [u8; 16];

const FORMAT: u8 = 1;

/// A random number, new each time a node takes a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incarnation(pub u64);

/// Hexadecimal digits.
impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The state of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Renews its lease.
    Serving,
    /// Was declared dead, which can't be undone.
    Dead,
}

/// The record of a slot: `n.<slot>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// The incarnation that has the slot.
    pub incarnation: Incarnation,
    /// Its state.
    pub state: NodeState,
    /// The number of the renewal.
    pub beat: u64,
    /// The place where clients reach the node.
    pub address: String,
    /// The machine and the file of the lock that the process holds; empty without one.
    pub lock: String,
}

/// The record of a key: `r.<type>.<key>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRecord {
    /// The slot of the node that serves the key.
    pub slot: Slot,
    /// The incarnation of the node. The claim is valid while this incarnation is alive.
    pub incarnation: Incarnation,
    /// A random number by which the node recognizes its claim.
    pub nonce: Nonce,
}

/// The message of a node to all others after each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The slot of the node.
    pub slot: Slot,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The revision of the renewal.
    pub revision: u64,
}

impl NodeRecord {
    /// Returns the record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.address.len() + self.lock.len());
        put_u8(&mut out, FORMAT);
        put_incarnation(&mut out, self.incarnation);
        put_u8(
            &mut out,
            match self.state {
                NodeState::Serving => 1,
                NodeState::Dead => 2,
            },
        );
        put_varint(&mut out, self.beat);
        put_text(&mut out, &self.address);
        put_text(&mut out, &self.lock);
        out
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the bytes are cut off, or of a newer format.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = open(bytes)?;
        let incarnation = incarnation(&mut reader)?;
        let at = reader.offset();
        let state = match reader.u8()? {
            1 => NodeState::Serving,
            2 => NodeState::Dead,
            other => {
                let what = format!("the state {other} of a node is not known here");
                return Err(DecodeError::new(at, what));
            }
        };
        let beat = reader.varint()?;
        let address = reader.text()?.to_owned();
        let lock = reader.text()?.to_owned();
        Ok(Self { incarnation, state, beat, address, lock })
    }
}

impl ClaimRecord {
    /// Returns the record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(28);
        put_u8(&mut out, FORMAT);
        put_slot(&mut out, self.slot);
        put_incarnation(&mut out, self.incarnation);
        out.extend_from_slice(&self.nonce);
        out
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the bytes are cut off, or of a newer format, or the slot is past the last one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = open(bytes)?;
        let slot = slot(&mut reader)?;
        let incarnation = incarnation(&mut reader)?;
        let mut nonce = Nonce::default();
        nonce.copy_from_slice(reader.take(size_of::<Nonce>())?);
        Ok(Self { slot, incarnation, nonce })
    }
}

impl Beat {
    /// Returns the message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(20);
        put_u8(&mut out, FORMAT);
        put_slot(&mut out, self.slot);
        put_incarnation(&mut out, self.incarnation);
        put_varint(&mut out, self.revision);
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If the bytes are cut off, or of a newer format, or the slot is past the last one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = open(bytes)?;
        let slot = slot(&mut reader)?;
        let incarnation = incarnation(&mut reader)?;
        let revision = reader.varint()?;
        Ok(Self { slot, incarnation, revision })
    }
}

/// Returns a reader after the number of the format.
fn open(bytes: &[u8]) -> Result<Reader<'_>, DecodeError> {
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

fn put_slot(out: &mut Vec<u8>, slot: Slot) {
    out.extend_from_slice(&slot.to_le_bytes());
}

fn put_incarnation(out: &mut Vec<u8>, incarnation: Incarnation) {
    out.extend_from_slice(&incarnation.0.to_le_bytes());
}

fn slot(reader: &mut Reader<'_>) -> Result<Slot, DecodeError> {
    let at = reader.offset();
    let slot = u16::from(reader.u8()?) | u16::from(reader.u8()?) << 8;
    if slot >= SLOTS {
        return Err(DecodeError::new(at, format!("the slot {slot} is not below {SLOTS}")));
    }
    Ok(slot)
}

fn incarnation(reader: &mut Reader<'_>) -> Result<Incarnation, DecodeError> {
    reader.u64().map(Incarnation)
}

#[cfg(test)]
mod tests {
    use super::{Beat, ClaimRecord, DecodeError, Incarnation, NodeRecord, NodeState};

    fn node() -> NodeRecord {
        NodeRecord {
            incarnation: Incarnation(0x0000_0003_1234_5678),
            state: NodeState::Serving,
            beat: 300,
            address: "tls://203.0.113.7:7350".into(),
            lock: "machine/lock".into(),
        }
    }

    fn claim() -> ClaimRecord {
        ClaimRecord { slot: 1023, incarnation: Incarnation(7), nonce: [9; 16] }
    }

    fn beat() -> Beat {
        Beat { slot: 258, incarnation: Incarnation(7), revision: 1 << 40 }
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
