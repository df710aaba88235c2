//! Random numbers: from the system, or, where a run must repeat, from a seed.

use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

/// A part of the hashes of names, which foldhash wants to live as long as the process.
static SHARED_SEED: OnceLock<SharedSeed> = OnceLock::new();

/// A source of random bytes.
pub(crate) enum Entropy {
    /// The system's, unguessable.
    System,
    /// A sequence that repeats (SplitMix64).
    #[cfg(test)]
    Seeded(u64),
}

impl Entropy {
    /// Fills `bytes`. If the system has none to give (it did at the start, where this was asked for
    /// first), no id or token may be made, so the shard stops.
    fn fill(&mut self, bytes: &mut [u8]) {
        match self {
            Self::System => {
                getrandom::fill(bytes)
                    .expect("the system's random source worked when the node started");
            }
            #[cfg(test)]
            Self::Seeded(state) => {
                for chunk in bytes.chunks_mut(8) {
                    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    let mut mixed = *state;
                    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    let word = (mixed ^ (mixed >> 31)).to_le_bytes();
                    chunk.copy_from_slice(&word[..chunk.len()]);
                }
            }
        }
    }

    /// Returns random bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// A session's number: random, since one that counts would tell every client how many sessions
    /// there were.
    pub(crate) fn session(&mut self) -> u64 {
        self.exact()
    }

    /// A number that nobody can guess.
    pub(crate) fn nonce(&mut self) -> u64 {
        self.exact()
    }

    /// A random number in 1..2^53, which JavaScript reads exactly.
    fn exact(&mut self) -> u64 {
        (self.number() >> 11).max(1)
    }

    /// A hash of names that strangers choose, and whose collisions they can't guess. What foldhash
    /// takes otherwise is made of addresses and the time.
    pub(crate) fn hasher(&mut self) -> SeedableRandomState {
        // Both are drawn each time, so that what is drawn later does not depend on other nodes.
        let (own, shared) = (self.number(), self.number());
        SeedableRandomState::with_seed(
            own,
            SHARED_SEED.get_or_init(|| SharedSeed::from_u64(shared)),
        )
    }

    /// A random number.
    pub(crate) fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::Entropy;

    #[test]
    fn hashes_of_names_follow_from_the_source_alone() {
        let hash = |mut entropy: Entropy| entropy.hasher().hash_one("chat:lobby");
        assert_eq!(hash(Entropy::Seeded(1)), hash(Entropy::Seeded(1)));
        assert_ne!(hash(Entropy::Seeded(1)), hash(Entropy::Seeded(2)));
        assert_ne!(hash(Entropy::System), hash(Entropy::System));
    }
}
