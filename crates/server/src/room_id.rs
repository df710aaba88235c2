//! The ids of rooms.

use std::fmt;

use playfield_room::id_from_random;

/// A room's id: 16 characters of lower-case base32 (RFC 4648), 80 random bits. Nobody guesses one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RoomId([u8; 16]);

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl RoomId {
    /// The id made of ten random bytes.
    pub(crate) fn from_random(random: [u8; 10]) -> Self {
        Self(id_from_random(random))
    }

    /// Reads an id; `None` if no room can have it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = <[u8; 16]>::try_from(text.as_bytes()).ok()?;
        id.iter().all(|byte| ALPHABET.contains(byte)).then_some(Self(id))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::RoomId;

    #[test]
    fn ten_bytes_make_sixteen_characters() {
        assert_eq!(RoomId::from_random(*b"0123456789").as_str(), "gaytemzugu3doobz");
        assert_eq!(RoomId::from_random([0xFF; 10]).as_str(), "7777777777777777");
    }

    #[test]
    fn only_ids_are_read() {
        assert!(RoomId::parse("gaytemzugu3doobz").is_some());
        for text in [
            "",
            "gaytemzugu3doob",
            "gaytemzugu3doobzz",
            "GAYTEMZUGU3DOOBZ",
            "gaytemzugu3doob1",
            "ääääääää",
        ] {
            assert_eq!(RoomId::parse(text), None, "{text}");
        }
    }
}
