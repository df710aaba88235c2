//! Which room is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::slab::Key;

/// Rooms in the order in which they are due. A room that is due earlier than was said is entered again; it knows which entry counts.
#[derive(Default)]
pub(super) struct Schedule(BinaryHeap<Reverse<(Duration, Key)>>);

impl Schedule {
    pub(super) fn set(&mut self, at: Duration, room: Key) {
        self.0.push(Reverse((at, room)));
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn take_due(&mut self, now: Duration) -> Option<(Duration, Key)> {
        self.0.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}

/// A beat on absolute deadlines: the k-th is at `start + k · period`, however late the ones before it were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    start: Duration,
    period: Duration,
    /// The last one that was done, or skipped.
    done: u64,
}

impl Beat {
    /// `hz` beats a second. Rooms begin at points of the period that lie as far apart as they can, whatever their number: the `nth` at
    /// the fraction n·φ of it (φ: the golden ratio).
    pub(super) fn new(now: Duration, hz: u32, nth: u64) -> Option<Self> {
        let period = Duration::from_secs(1).checked_div(hz)?;
        let fraction = (nth as f64 * 0.618_033_988_749_894_9).fract();
        Some(Self { start: now + period.mul_f64(fraction), period, done: 0 })
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Duration {
        self.at(self.done + 1)
    }

    /// The beats that are due, at most `most` of them; the rest counts as done. The second number says how many were skipped.
    pub(super) fn take_due(&mut self, now: Duration, most: u64) -> (std::ops::RangeInclusive<u64>, u64) {
        let due = (now.saturating_sub(self.start).as_nanos() / self.period.as_nanos()) as u64;
        let first = (self.done + 1).max((due + 1).saturating_sub(most));
        let skipped = if due > self.done { first - self.done - 1 } else { 0 };
        self.done = self.done.max(due);
        (first..=due, skipped)
    }

    fn at(&self, number: u64) -> Duration {
        let nanos = self.period.as_nanos() * u128::from(number);
        self.start + Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_late_beat_does_not_move_the_next() {
        let mut beat = Beat::new(ms(1_000), 20, 0).unwrap();
        assert_eq!(beat.next(), ms(1_050));
        assert_eq!(beat.take_due(ms(1_049), 5).0.count(), 0);
        assert_eq!(beat.take_due(ms(1_090), 5), (1..=1, 0));
        assert_eq!(beat.next(), ms(1_100));
    }

    #[test]
    fn what_is_past_the_cap_is_skipped_and_stays_skipped() {
        let mut beat = Beat::new(ms(0), 20, 0).unwrap();
        assert_eq!(beat.take_due(ms(1_000), 5), (16..=20, 15));
        assert_eq!(beat.next(), ms(1_050));
    }

    #[test]
    fn rooms_are_spread_over_the_period() {
        let mut starts: Vec<u64> =
            (0..50).map(|nth| Beat::new(ms(0), 20, nth).unwrap().start.as_micros() as u64).collect();
        starts.sort_unstable();
        let widest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest < 3 * 50_000 / 50, "{widest}");
    }

    #[test]
    fn a_room_that_never_beats_has_no_beat() {
        assert!(Beat::new(ms(0), 0, 0).is_none());
    }
}
