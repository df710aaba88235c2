//! The ids of rooms.

use std::fmt;

use playfield_room::id_from_random;

/// A room's id: 16 characters of lower-case base32 (RFC 4648), 80 random bits. Nobody guesses one.
/// In a cluster the first ten bits are the slot of the node that created it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RoomId([u8; 16]);

/// A slot has ten bits.
const SLOT_SHIFT: u32 = 6;

impl RoomId {
    /// The id of no room.
    pub(crate) const NONE: Self = Self(*b"----------------");

    /// The id made of ten random bytes.
    pub(crate) fn from_random(random: [u8; 10]) -> Self {
        Self(id_from_random(random))
    }

    /// The id made of ten random bytes, of which the first ten bits are replaced by a slot.
    pub(crate) fn in_slot(slot: u16, mut random: [u8; 10]) -> Self {
        let [high, low] = (slot << SLOT_SHIFT).to_be_bytes();
        random[0] = high;
        random[1] = low | random[1] & !(u8::MAX << SLOT_SHIFT);
        Self::from_random(random)
    }

    /// The slot in the id of a room of a cluster.
    pub(crate) fn slot(self) -> u16 {
        let [first, second, ..] = self.0.map(|byte| match byte {
            b'a'..=b'z' => byte - b'a',
            _ => byte - b'2' + 26,
        });
        u16::from(first) << 5 | u16::from(second)
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
    fn the_first_ten_bits_are_the_slot() {
        for slot in 0..1024 {
            for random in [[0; 10], [0xFF; 10], *b"0123456789"] {
                let id = RoomId::in_slot(slot, random);
                assert_eq!(id.slot(), slot);
                assert_eq!(id.as_str()[2..], RoomId::from_random(random).as_str()[2..]);
                assert_eq!(RoomId::parse(id.as_str()), Some(id));
            }
        }
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
