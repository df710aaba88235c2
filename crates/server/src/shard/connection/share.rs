//! Shares a shard's time among connections: each is served for a while and then waits for its next
//! turn, and those who took little lately come before those who took much.
//!
//! What counts is time, not messages: a message costs what its room does with it.

use std::time::Duration;

/// The time slice of a connection.
const VISIT: Duration = Duration::from_micros(500);
/// The clock is read after this much work: reading it costs as much as a small message.
const WORK_PER_LOOK: u32 = 16;
/// The work of reading a message of few bytes.
const WORK_OF_MESSAGE: u32 = 1;
/// This many bytes are one more unit of work.
const BYTES_PER_WORK: usize = 1024;
/// The work of a message that a room handles.
pub(crate) const WORK_OF_ROOM: u32 = 4;
/// Work that may take long: the clock is read after it.
pub(crate) const WORK_OF_NODE: u32 = WORK_PER_LOOK;

/// The time for which one connection is served.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    began: Duration,
    work: u32,
}

impl Visit {
    /// A visit begins.
    pub(crate) fn begin(&mut self, now: Duration) {
        *self = Self { began: now, work: 0 };
    }

    /// When it began.
    pub(crate) fn began(&self) -> Duration {
        self.began
    }

    /// A message was read.
    #[inline]
    pub(crate) fn read(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes / BYTES_PER_WORK).unwrap_or(WORK_PER_LOOK);
        self.work = self.work.saturating_add(WORK_OF_MESSAGE + bytes);
    }

    /// Something was done that takes longer than reading.
    #[inline]
    pub(crate) fn did(&mut self, work: u32) {
        self.work = self.work.saturating_add(work);
    }

    /// Returns whether it is over. The clock is read only once in a while.
    #[inline]
    pub(crate) fn is_over(&mut self, now: impl FnOnce() -> Duration) -> bool {
        if self.work < WORK_PER_LOOK {
            return false;
        }
        self.work = 0;
        now().saturating_sub(self.began) >= VISIT
    }
}

/// The work that a connection took lately, as a bucket that leaks by 1 ms of work in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    us: u32,
    /// The time of the last change, in milliseconds. Wraps around after 49 days.
    at_ms: u32,
}

/// More than this is much. A thousand connections that take much take all of a core.
const MUCH_US: u32 = 2000;

impl Taken {
    /// Adds `time` of work, which ended now.
    pub(crate) fn add(&mut self, now: Duration, time: Duration) {
        self.leak(now);
        self.us = self.us.saturating_add(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// Returns whether that is much.
    pub(crate) fn is_much(self, now: Duration) -> bool {
        self.us(now) > MUCH_US
    }

    /// Returns the time taken as of now, in microseconds.
    fn us(mut self, now: Duration) -> u32 {
        self.leak(now);
        self.us
    }

    fn leak(&mut self, now: Duration) {
        let now_ms = now.as_millis() as u32;
        self.us = self.us.saturating_sub(now_ms.wrapping_sub(self.at_ms));
        self.at_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Taken, Visit, WORK_OF_NODE};

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn a_visit_ends_by_the_clock_which_is_read_now_and_then() {
        let mut visit = Visit::default();
        visit.begin(us(1000));
        let mut looks = 0;
        for _ in 0..160 {
            visit.read(10);
            let is_over = visit.is_over(|| {
                looks += 1;
                us(1499)
            });
            assert!(!is_over);
        }
        assert_eq!(looks, 10);
        visit.did(WORK_OF_NODE);
        assert!(visit.is_over(|| us(1500)));
        visit.begin(us(1500));
        visit.read(1 << 20);
        assert!(visit.is_over(|| us(2000)), "many bytes are much work");
    }

    #[test]
    fn what_was_taken_is_forgotten_at_1_ms_per_second() {
        let mut taken = Taken::default();
        taken.add(us(0), us(2000));
        assert!(!taken.is_much(us(0)));
        taken.add(us(0), us(1000));
        assert!(taken.is_much(us(999_000)));
        assert!(!taken.is_much(us(1_000_000)));
        taken.add(us(10_000_000), us(2001));
        assert!(taken.is_much(us(10_000_000)), "nothing is saved up");
    }
}
