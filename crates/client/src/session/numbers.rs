//! Maps by request number and room number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number that this client counts up, or that the node assigns to its rooms. Nobody
/// gains from collisions, so a weak hash of one multiplication is enough.
pub type NumberMap<N, T> = HashMap<N, T, BuildHasherDefault<NumberHasher>>;

/// The hash of a [`NumberMap`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher {
    hash: u64,
}

impl Hasher for NumberHasher {
    #[inline]
    fn write_u32(&mut self, number: u32) {
        // Fibonacci hashing: 2^64 divided by the golden ratio spreads neighbors over the high
        // bits; the map uses the top seven.
        self.hash = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32((self.hash as u32) ^ u32::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
