//! When connections have something to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No time: never.
pub(crate) const NEVER: u64 = u64::MAX;

/// A heap of times. Each connection keeps the time of its valid entry, and skips others.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(u64, u32)>>);

impl Timers {
    /// Adds an entry, in nanoseconds.
    pub(crate) fn add(&mut self, at: u64, number: u32) {
        self.0.push(Reverse((at, number)));
    }

    /// The next time, valid or not.
    pub(crate) fn next(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out an entry that is due.
    pub(crate) fn pop(&mut self, now: u64) -> Option<(u64, u32)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
