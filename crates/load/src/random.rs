//! Random numbers that are the same for the same seed.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The generator of one connection (PCG XSL-RR 128/64).
#[derive(Clone, Debug)]
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    /// The generator of the connection with this number.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        // Fibonacci hashing keeps the seeds of neighbors apart.
        Self(Pcg64Mcg::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The error of the multiplication is below 2^-64 for each value, which no load shows.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from 0 up to, not including, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
