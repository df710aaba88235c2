//! When to look at a connection again: a wheel of deadlines, at constant cost for each.

use std::time::Duration;

use crate::shard::keys::ConnectionKey;
use crate::shard::moment::Moment;

const SLOTS: u64 = 256;
/// How many places a slot keeps when it is empty.
const SLOT_KEPT: usize = 1024;

/// A connection, and the deadline at which to look at it.
pub(crate) type Timeout = (Moment, ConnectionKey);

/// Deadlines by slots of time. A deadline is met late by at most one slot, never early; one beyond
/// the wheel's turn comes up at its end, and its owner then sets it again.
pub(crate) struct Timeouts {
    slots: Vec<Vec<Timeout>>,
    slot: Duration,
    /// How many slots are behind us.
    passed: u64,
    waiting: usize,
}

impl Timeouts {
    /// A wheel whose slots are as long as `slot`, or a millisecond if that is longer.
    pub(crate) fn new(slot: Duration) -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self { slots, slot: slot.max(Duration::from_millis(1)), passed: 0, waiting: 0 }
    }

    pub(crate) fn set(&mut self, deadline: Duration, connection: ConnectionKey) {
        let slot = deadline.as_nanos().div_ceil(self.slot.as_nanos());
        let slot =
            u64::try_from(slot).unwrap_or(u64::MAX).clamp(self.passed + 1, self.passed + SLOTS - 1);
        self.slots[(slot % SLOTS) as usize].push((deadline.into(), connection));
        self.waiting += 1;
    }

    /// Moves all connections that are due to `due`.
    pub(crate) fn expire(&mut self, now: Duration, due: &mut Vec<Timeout>) {
        let reached = (now.as_nanos() / self.slot.as_nanos()) as u64;
        let turn_ends = self.passed.saturating_add(SLOTS);
        for slot in self.passed + 1..=reached.min(turn_ends) {
            let slot = &mut self.slots[(slot % SLOTS) as usize];
            due.append(slot);
            if slot.capacity() > SLOT_KEPT {
                *slot = Vec::new();
            }
        }
        self.passed = self.passed.max(reached);
        self.waiting -= due.len();
    }

    /// Gives back memory that many deadlines at once have taken.
    pub(crate) fn shrink(due: &mut Vec<Timeout>) {
        if due.capacity() > SLOT_KEPT {
            *due = Vec::new();
        }
    }

    /// How many deadlines are set.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// When there may be something due.
    pub(crate) fn next(&self) -> Option<Duration> {
        let slots = u32::try_from(self.passed + 1).unwrap_or(u32::MAX);
        (self.waiting > 0).then(|| self.slot.saturating_mul(slots))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SLOTS, Timeouts};
    use crate::shard::slab::Key;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn due(timeouts: &mut Timeouts, now: Duration) -> Vec<u64> {
        let mut due = Vec::new();
        timeouts.expire(now, &mut due);
        due.into_iter().map(|(_, key)| key.bits()).collect()
    }

    #[test]
    fn deadlines_are_met_late_by_at_most_a_slot() {
        let mut timeouts = Timeouts::new(ms(10));
        for (deadline, connection) in [(25, 1), (30, 2), (31, 3), (0, 4)] {
            timeouts.set(ms(deadline), Key::from_bits(connection));
        }
        assert_eq!(timeouts.next(), Some(ms(10)));
        assert!(due(&mut timeouts, ms(9)).is_empty());
        assert_eq!(due(&mut timeouts, ms(29)), [4]);
        assert_eq!(due(&mut timeouts, ms(30)), [1, 2]);
        assert_eq!(due(&mut timeouts, ms(40)), [3]);
        assert_eq!(timeouts.next(), None);
    }

    #[test]
    fn a_deadline_beyond_the_turn_comes_up_at_its_end() {
        let mut timeouts = Timeouts::new(ms(10));
        timeouts.set(ms(1_000_000), Key::from_bits(1));
        assert!(due(&mut timeouts, ms(10 * (SLOTS - 2))).is_empty());
        assert_eq!(due(&mut timeouts, ms(10 * (SLOTS - 1))), [1]);
    }

    #[test]
    fn a_leap_in_time_loses_nothing() {
        let mut timeouts = Timeouts::new(ms(10));
        for connection in 0..100 {
            timeouts.set(ms(20 * connection), Key::from_bits(connection));
        }
        assert_eq!(due(&mut timeouts, ms(3_600_000)).len(), 100);
        timeouts.set(ms(3_600_001), Key::from_bits(1));
        assert_eq!(due(&mut timeouts, ms(3_600_010)), [1]);
    }
}
