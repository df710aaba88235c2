//! Byte strings.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, json, writer};
use serde_json::Value;

use crate::data::{Data, same_bytes, unexpected};
use crate::digest;

/// Bytes, compared and sent whole: in `json` as base64 (RFC 4648, with padding), in `msgpack` as
/// they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Data for Bytes {
    fn schema() -> Type {
        Type::Bytes
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_bytes(out, &self.0);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(reader.bytes()?.to_vec()))
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.bytes(&self.0);
    }
    fn same(&self, other: &Self) -> bool {
        same_bytes(&self.0, &other.0)
    }
    fn digest(&self) -> u64 {
        digest::of_bytes(&self.0)
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        json::as_bytes(value)
            .map(Self)
            .ok_or_else(|| unexpected("a string in base64 with padding", value))
    }
}

impl std::ops::Deref for Bytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl std::ops::DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}
