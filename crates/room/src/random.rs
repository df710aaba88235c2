//! Randomness that is the same for the same seed.

use std::fmt;
use std::ops::Range;

use playfield_state::List;
use rand_core::impls::fill_bytes_via_next;
use rand_core::{RngCore, SeedableRng};

/// A room's random number generator (PCG XSL-RR 128/64), seeded when the room is created. It
/// implements [`RngCore`], so the crate `rand` works with it. It is not cryptographically secure.
#[derive(Clone)]
pub struct Random(Mcg);

impl fmt::Debug for Random {
    /// The state is left out, as it tells all numbers to come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mcg::seed_from_u64(seed))
    }

    /// Its state, from which it [goes on](Self::thaw) in another process.
    pub(crate) fn state(&self) -> [u8; 16] {
        self.0.0.to_le_bytes()
    }

    /// Goes on from a state.
    pub(crate) fn thaw(state: [u8; 16]) -> Self {
        Self(Mcg::from_seed(state))
    }

    /// A number below `bound`, each equally likely; 0 if `bound` is 0. (Lemire, "Fast Random
    /// Integer Generation in an Interval".)
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.0.next()) * u128::from(bound);
            if wide as u64 >= unfair {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A number in the range; its start if the range is empty.
    pub fn range(&mut self, range: Range<i64>) -> i64 {
        let width = range.end.wrapping_sub(range.start) as u64;
        if range.is_empty() {
            range.start
        } else {
            range.start.wrapping_add(self.below(width) as i64)
        }
    }

    /// A number from 0 up to, not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.0.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Puts items into a random order, each order equally likely.
    pub fn shuffle(&mut self, items: &mut (impl Shuffle + ?Sized)) {
        for last in (1..items.count()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.exchange(last, other);
        }
    }
}

/// The generator, as the crate `rand_pcg` has it in `Pcg64Mcg`, which doesn't show its state. (M.
/// E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
/// Random Number Generation", 2014.)
#[derive(Clone)]
struct Mcg(u128);

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl SeedableRng for Mcg {
    type Seed = [u8; 16];

    fn from_seed(seed: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(seed) | 1)
    }
}

impl Mcg {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(MULTIPLIER);
        let folded = (self.0 >> 64) as u64 ^ self.0 as u64;
        folded.rotate_right((self.0 >> 122) as u32)
    }
}

/// The number of characters of a room's id that name the slot of its node in a cluster.
pub(crate) const SLOT_CHARACTERS: usize = 2;

/// The text of a random number of 80 bits, which nobody guesses: 16 characters of lower-case base32
/// (RFC 4648). Rooms have such ids.
pub fn id_from_random(random: [u8; 10]) -> [u8; 16] {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bits = [0; 16];
    bits[6..].copy_from_slice(&random);
    let bits = u128::from_be_bytes(bits);
    std::array::from_fn(|at| ALPHABET[(bits >> (75 - 5 * at) & 31) as usize])
}

impl RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        self.0.next() as u32
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        fill_bytes_via_next(self, bytes);
    }
}

/// A collection that [`Random::shuffle`] can shuffle.
pub trait Shuffle {
    /// Returns the number of elements.
    fn count(&self) -> usize;

    /// Exchanges two of them.
    fn exchange(&mut self, a: usize, b: usize);
}

impl<T> Shuffle for [T] {
    fn count(&self) -> usize {
        self.len()
    }
    fn exchange(&mut self, a: usize, b: usize) {
        self.swap(a, b);
    }
}

impl<T, const N: usize> Shuffle for [T; N] {
    fn count(&self) -> usize {
        N
    }
    fn exchange(&mut self, a: usize, b: usize) {
        self.swap(a, b);
    }
}

impl<T> Shuffle for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn exchange(&mut self, a: usize, b: usize) {
        self.swap(a, b);
    }
}

impl<T> Shuffle for List<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn exchange(&mut self, a: usize, b: usize) {
        self.swap(a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn the_numbers_are_those_of_the_crate_rand_pcg() {
        for seed in [0, 1, 7, u64::MAX] {
            let mut other = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
            let mut random = Random::new(seed);
            for _ in 0..1_000 {
                assert_eq!(random.next_u64(), other.next_u64());
                random = Random::thaw(random.state());
            }
            let (mut one, mut two) = ([0; 13], [0; 13]);
            random.fill_bytes(&mut one);
            other.fill_bytes(&mut two);
            assert_eq!((one, random.next_u32()), (two, other.next_u32()));
        }
    }

    #[test]
    fn every_order_is_as_likely_as_any_other() {
        let (mut random, mut seen) = (Random::new(9), std::collections::BTreeMap::<_, u32>::new());
        for _ in 0..6_000 {
            let (mut array, mut list) = ([0, 1, 2], List::from_iter([0, 1, 2]));
            random.shuffle(&mut array);
            random.shuffle(&mut list);
            *seen.entry(array).or_default() += 1;
            *seen.entry([list[0], list[1], list[2]]).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        // 2,000 are expected of each, with a standard deviation of 41.
        assert!(seen.values().all(|count| (1_800..2_200).contains(count)), "{seen:?}");
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(3);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.range(5..5), 5);
        for _ in 0..1_000 {
            assert!(random.below(3) < 3);
            assert!((-4..9).contains(&random.range(-4..9)));
            assert!((0.0..1.0).contains(&random.fraction()));
            random.range(i64::MIN..i64::MAX);
        }
    }
}
