//! When to look at a connection again: a wheel of deadlines, at constant cost for each.

use std::time::Duration;

const SLOTS: u64 = 256;
/// The number of places that an empty slot keeps.
const SLOT_KEPT: usize = 1024;

/// The place of a connection in the slab. There is one for each idle connection: four bytes.
pub(crate) type Place = u32;

/// The slot of a connection that is in none.
pub(crate) const NO_SLOT: u64 = u64::MAX;

/// A connection that is due, and the slot that it was in. If the connection says that it is in
/// another slot by now, this means nothing.
pub(crate) type Timeout = (u64, Place);

/// Connections by slots of time. A deadline is met late by at most one slot, never early; one
/// beyond the wheel's turn comes up at its end, and its owner then sets it again.
pub(crate) struct Timeouts {
    slots: Vec<Vec<Place>>,
    slot: Duration,
    /// The number of slots that have passed.
    passed: u64,
    waiting: usize,
}

impl Timeouts {
    /// A wheel whose slots are as long as `slot`, or a millisecond if that is longer.
    pub(crate) fn new(slot: Duration) -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self { slots, slot: slot.max(Duration::from_millis(1)), passed: 0, waiting: 0 }
    }

    /// The slot in which a deadline comes up.
    pub(crate) fn slot_of(&self, deadline: Duration) -> u64 {
        let slot = deadline.as_nanos().div_ceil(self.slot.as_nanos());
        u64::try_from(slot).unwrap_or(u64::MAX).clamp(self.passed + 1, self.passed + SLOTS - 1)
    }

    pub(crate) fn set(&mut self, slot: u64, connection: Place) {
        self.slots[(slot % SLOTS) as usize].push(connection);
        self.waiting += 1;
    }

    /// Moves all connections that are due to `due`.
    pub(crate) fn expire(&mut self, now: Duration, due: &mut Vec<Timeout>) {
        let reached = (now.as_nanos() / self.slot.as_nanos()) as u64;
        let turn_ends = self.passed.saturating_add(SLOTS);
        for number in self.passed + 1..=reached.min(turn_ends) {
            let slot = &mut self.slots[(number % SLOTS) as usize];
            due.extend(slot.drain(..).map(|connection| (number, connection)));
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

    /// Returns the number of deadlines set.
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

    use super::{Place, SLOTS, Timeouts};
    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn set(timeouts: &mut Timeouts, deadline: Duration, connection: Place) {
        timeouts.set(timeouts.slot_of(deadline), connection);
    }

    fn due(timeouts: &mut Timeouts, now: Duration) -> Vec<Place> {
        let mut due = Vec::new();
        timeouts.expire(now, &mut due);
        due.into_iter().map(|(_, connection)| connection).collect()
    }

    #[test]
    fn deadlines_are_met_late_by_at_most_a_slot() {
        let mut timeouts = Timeouts::new(ms(10));
        for (deadline, connection) in [(25, 1), (30, 2), (31, 3), (0, 4)] {
            set(&mut timeouts, ms(deadline), connection);
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
        set(&mut timeouts, ms(1_000_000), 1);
        assert!(due(&mut timeouts, ms(10 * (SLOTS - 2))).is_empty());
        assert_eq!(due(&mut timeouts, ms(10 * (SLOTS - 1))), [1]);
    }

    #[test]
    fn a_leap_in_time_loses_nothing() {
        let mut timeouts = Timeouts::new(ms(10));
        for connection in 0..100 {
            set(&mut timeouts, ms(20 * u64::from(connection)), connection);
        }
        assert_eq!(due(&mut timeouts, ms(3_600_000)).len(), 100);
        set(&mut timeouts, ms(3_600_001), 1);
        assert_eq!(due(&mut timeouts, ms(3_600_010)), [1]);
    }
}
