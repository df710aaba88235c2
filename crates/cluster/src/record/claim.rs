//! The record of a key.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use playfield_wire::DecodeError;
use playfield_wire::writer::put_bool;

use crate::engine::Key;
use crate::record::{
    Incarnation, Nonce, Slot, array, begin, incarnation, open, put_incarnation, put_slot, slot,
};

/// The record of a key: `r.<type>.<key>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRecord {
    /// The slot of the node that serves the key.
    pub slot: Slot,
    /// The incarnation of the node. The claim is valid while this incarnation is alive.
    pub incarnation: Incarnation,
    /// The id of the room; zeros while it is not known.
    pub room: [u8; 16],
    /// The key is a code: a node picked it.
    pub is_code: bool,
    /// A random number by which the node recognizes its claim.
    pub nonce: Nonce,
}

impl ClaimRecord {
    /// Returns the record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = begin(44);
        put_slot(&mut out, self.slot);
        put_incarnation(&mut out, self.incarnation);
        out.extend_from_slice(&self.room);
        put_bool(&mut out, self.is_code);
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
        let room = array(&mut reader)?;
        let is_code = reader.bool()?;
        let nonce = array(&mut reader)?;
        Ok(Self { slot, incarnation, room, is_code, nonce })
    }
}

/// The greatest number of bytes of a room type, and of a key, in the name of a claim.
pub const NAME_BYTES_MAX: usize = 128;

/// Returns the name of the claim of a room's key: `r.<type>.<key>`, both in base64url, so that it
/// has only letters, digits, `-`, `_` and the dots.
///
/// # Errors
/// If one of the texts is empty, or longer than [`NAME_BYTES_MAX`].
pub fn claim_key(room_type: &str, key: &str) -> Result<Key, ClaimKeyError> {
    for (what, text) in [("room type", room_type), ("key", key)] {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(ClaimKeyError { what, bytes: text.len() });
        }
    }
    let [room_type, key] = [room_type, key].map(|text| URL_SAFE_NO_PAD.encode(text));
    Ok(format!("r.{room_type}.{key}").into())
}

/// The error of a text that can't be part of the name of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimKeyError {
    what: &'static str,
    bytes: usize,
}

impl fmt::Display for ClaimKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, bytes } = self;
        write!(f, "the {what} has {bytes} bytes: give it 1 to {NAME_BYTES_MAX}")
    }
}

impl std::error::Error for ClaimKeyError {}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, claim_key};

    #[test]
    fn the_name_of_a_claim_has_only_what_engines_allow() {
        assert_eq!(&*claim_key("board", "1").unwrap(), "r.Ym9hcmQ.MQ");
        let longest = "\u{10ffff}".repeat(NAME_BYTES_MAX / 4);
        let key = claim_key(&longest, " .*>\u{0}").unwrap();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        assert!(key.bytes().all(is_allowed), "{key}");
        assert_eq!(key.split('.').count(), 3);
    }

    #[test]
    fn empty_and_long_texts_have_no_claim() {
        let error = claim_key("", "1").unwrap_err().to_string();
        assert_eq!(error, "the room type has 0 bytes: give it 1 to 128");
        let long = "k".repeat(NAME_BYTES_MAX + 1);
        let error = claim_key("board", &long).unwrap_err().to_string();
        assert_eq!(error, "the key has 129 bytes: give it 1 to 128");
    }
}
