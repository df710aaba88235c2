//! The lateness of rooms' ticks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::machine::nanoseconds;

/// The ticks of one room.
#[derive(Debug)]
pub(crate) struct Ticks {
    period: Duration,
    /// The number and the time of the first tick.
    first: Option<(u64, Instant)>,
    /// The number after the last tick.
    next: u64,
    /// For each tick since the last report, its distance from its due time, in ns. Due times count
    /// from the first tick.
    offsets: Vec<i64>,
    /// The least offset of all ticks.
    least: i64,
}

impl Ticks {
    pub(crate) const fn new(period: Duration) -> Self {
        Self { period, first: None, next: 0, offsets: Vec::new(), least: 0 }
    }

    /// The room ticks now. Skipped ticks are as late as the next one that runs, so each period
    /// counts once, however long the shard was busy.
    pub(crate) fn note(&mut self, number: u64) {
        self.note_at(number, Instant::now());
    }

    fn note_at(&mut self, number: u64, at: Instant) {
        let (first, began) = *self.first.get_or_insert((number, at));
        let passed = at.saturating_duration_since(began).as_nanos() as i64;
        let period = self.period.as_nanos() as i64;
        let due = self.next.max(first)..=number;
        self.offsets.extend(due.map(|due| passed - (due - first) as i64 * period));
        self.least = self.offsets.last().map_or(self.least, |&last| self.least.min(last));
        self.next = number + 1;
    }

    /// Returns the lateness of each tick since the last report, compared with the least late tick
    /// of all.
    pub(crate) fn report(&mut self) -> Vec<Duration> {
        let late = |offset: i64| Duration::from_nanos(offset.abs_diff(self.least));
        std::mem::take(&mut self.offsets).into_iter().map(late).collect()
    }
}

/// The ticks of all rooms of a server that have the same rate.
pub(crate) struct AllTicks {
    hz: u32,
    rooms: Mutex<BTreeMap<String, Ticks>>,
}

impl AllTicks {
    pub(crate) const fn new(hz: u32) -> Self {
        Self { hz, rooms: Mutex::new(BTreeMap::new()) }
    }

    /// A room ticks now.
    pub(crate) fn note(&self, room: &str, number: u64) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticks) = rooms.get_mut(room) {
            return ticks.note(number);
        }
        let mut ticks = Ticks::new(Duration::from_secs(1) / self.hz);
        ticks.note(number);
        rooms.insert(room.to_owned(), ticks);
    }

    /// Returns the lateness of each tick since the last report, in ns.
    pub(crate) fn report_ns(&self) -> Vec<u64> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.values_mut().flat_map(Ticks::report).map(nanoseconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Ticks;

    #[test]
    fn skipped_ticks_are_as_late_as_the_next_one() {
        let begin = Instant::now();
        let mut ticks = Ticks::new(Duration::from_millis(1));
        assert!(ticks.report().is_empty());
        // 4, 5 and 6 were skipped.
        for (number, us) in [(2, 100), (3, 1_000), (7, 5_500), (8, 6_000)] {
            ticks.note_at(number, begin + Duration::from_micros(us));
        }
        let late = ticks.report().into_iter().map(|late| late.as_nanos()).collect::<Vec<_>>();
        assert_eq!(late, [100_000, 0, 3_500_000, 2_500_000, 1_500_000, 500_000, 0]);
        // Later reports compare with the same tick.
        ticks.note_at(9, begin + Duration::from_micros(7_300));
        assert_eq!(ticks.report(), [Duration::from_micros(300)]);
        assert!(ticks.report().is_empty());
    }
}
