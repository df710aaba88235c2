//! The record of a slot.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_text, put_u8, put_varint};

use crate::record::{Incarnation, begin, incarnation, open, put_incarnation};

/// The state of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Renews its lease.
    Serving,
    /// Was declared dead, or has left, which can't be undone.
    Dead,
}

impl NodeState {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        put_u8(
            out,
            match self {
                Self::Serving => 1,
                Self::Dead => 2,
            },
        );
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        match reader.u8()? {
            1 => Ok(Self::Serving),
            2 => Ok(Self::Dead),
            other => {
                let what = format!("the state {other} of a node is not known here");
                Err(DecodeError::new(at, what))
            }
        }
    }
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
    /// The name of the node, for people.
    pub name: String,
    /// The places where clients reach the node, as URLs.
    pub addresses: Vec<String>,
    /// The number of the node's build.
    pub build: u64,
    /// The room types of the node, with the fingerprints of their schemas.
    pub types: Vec<(String, u64)>,
    /// The machine and the file of the lock that the process holds; empty without one.
    pub lock: String,
    /// The time for which the node's lease holds, in milliseconds: others wait for this long, too.
    pub lease_ms: u32,
}

impl NodeRecord {
    /// The record of an incarnation that is declared dead, or leaves.
    pub(crate) fn dead(incarnation: Incarnation, beat: u64) -> Self {
        Self {
            incarnation,
            state: NodeState::Dead,
            beat,
            name: String::new(),
            addresses: Vec::new(),
            build: 0,
            types: Vec::new(),
            lock: String::new(),
            lease_ms: 0,
        }
    }

    /// Returns the record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(128);
        put_incarnation(&mut out, self.incarnation);
        self.state.put(&mut out);
        put_varint(&mut out, self.beat);
        put_text(&mut out, &self.name);
        put_varint(&mut out, self.addresses.len() as u64);
        for address in &self.addresses {
            put_text(&mut out, address);
        }
        out.extend_from_slice(&self.build.to_le_bytes());
        put_varint(&mut out, self.types.len() as u64);
        for (name, fingerprint) in &self.types {
            put_text(&mut out, name);
            out.extend_from_slice(&fingerprint.to_le_bytes());
        }
        put_text(&mut out, &self.lock);
        put_varint(&mut out, self.lease_ms.into());
        out
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If the bytes are cut off, or of a newer format.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = open(bytes)?;
        let incarnation = incarnation(&mut reader)?;
        let state = NodeState::read(&mut reader)?;
        let beat = reader.varint()?;
        let name = reader.text()?.to_owned();
        let addresses = (0..reader.count()?)
            .map(|_| reader.text().map(str::to_owned))
            .collect::<Result<_, DecodeError>>()?;
        let build = reader.u64()?;
        let types = (0..reader.count()?)
            .map(|_| Ok((reader.text()?.to_owned(), reader.u64()?)))
            .collect::<Result<_, DecodeError>>()?;
        let lock = reader.text()?.to_owned();
        let lease_ms = reader.varint_u32()?;
        Ok(Self { incarnation, state, beat, name, addresses, build, types, lock, lease_ms })
    }
}
