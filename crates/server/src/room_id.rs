//! The ids of rooms.

use std::fmt;

use playfield_room::id_from_random;

/// A room's id: 16 characters of lower-case base32 (RFC 4648), 80 random bits. Nobody guesses one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RoomId([u8; 16]);

impl RoomId {
    /// The id made of ten random bytes.
    pub(crate) fn from_random(random: [u8; 10]) -> Self {
        Self(id_from_random(random))
    }

    /// Reads an id; `None` if no room can have it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = <[u8; 16]>::try_from(text.as_bytes()).ok()?;
        id.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')).then_some(Self(id))
    }

    /// A number below `count` that follows from the id; of random ids, each is as frequent.
    #[inline]
    pub(crate) fn fraction(self, count: usize) -> usize {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        // Each byte has five random bits; a product with an odd number spreads them (Knuth, 6.4).
        let spread =
            u64::from_le_bytes([a, b, c, d, e, f, g, h]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (((spread >> 32) * count as u64) >> 32) as usize
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
