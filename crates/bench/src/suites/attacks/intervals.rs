//! The waits of a player for patches that were due at a steady rate.

use std::time::Duration;

/// The interval at which patches are due.
const PERIOD: Duration = Duration::from_millis(50);

/// The waits of one player. A freeze counts once for each patch that was due meanwhile, so that a
/// percentile can't hide a long one.
#[derive(Default)]
pub(super) struct Intervals {
    /// The wait at each due time, in ms.
    pub(super) waits_ms: Vec<f64>,
    /// The number of patches that have arrived.
    pub(super) patches: u64,
    /// The number of due times without a patch.
    pub(super) missed: u64,
}

impl Intervals {
    /// A patch arrived so long after the one before.
    pub(super) fn note(&mut self, interval: Duration) {
        self.waits_ms.push(interval.as_secs_f64() * 1e3);
        self.patches += 1;
        self.miss(interval);
    }

    /// The watch ends so long after the last patch.
    pub(super) fn end(&mut self, open: Duration) {
        if open > PERIOD {
            self.waits_ms.push(open.as_secs_f64() * 1e3);
            self.miss(open);
        }
    }

    /// Each later due time in an interval waited less by a period than the one before.
    fn miss(&mut self, interval: Duration) {
        let mut left = interval.saturating_sub(PERIOD);
        while left >= PERIOD {
            self.waits_ms.push(left.as_secs_f64() * 1e3);
            self.missed += 1;
            left -= PERIOD;
        }
    }

    /// Returns the share of the patches that were due and are missing, in percent.
    pub(super) fn missed_percent(&self) -> f64 {
        self.missed as f64 * 100.0 / (self.patches + self.missed).max(1) as f64
    }

    /// Adds those of another player.
    pub(super) fn add(&mut self, other: Self) {
        self.waits_ms.extend(other.waits_ms);
        self.patches += other.patches;
        self.missed += other.missed;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Intervals;
    use crate::harness::stats::Samples;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_percentile_shows_a_freeze() {
        let mut intervals = Intervals::default();
        for _ in 0..140 {
            intervals.note(ms(50));
        }
        intervals.note(ms(3_000));
        assert_eq!((intervals.patches, intervals.missed), (141, 59));
        assert_eq!(intervals.missed_percent(), 29.5);
        assert_eq!(Samples::new(intervals.waits_ms).percentile(99.0), 2_900.0);
    }

    #[test]
    fn only_whole_periods_without_a_patch_are_missed() {
        for (interval, waits) in
            [(2, vec![2.0]), (99, vec![99.0]), (100, vec![100.0, 50.0]), (120, vec![120.0, 70.0])]
        {
            let mut intervals = Intervals::default();
            intervals.note(ms(interval));
            assert_eq!(intervals.waits_ms, waits);
        }
        // The wait at the end is one more, if a patch is overdue.
        let mut intervals = Intervals::default();
        intervals.end(ms(50));
        assert_eq!((intervals.waits_ms.len(), intervals.missed_percent()), (0, 0.0));
        intervals.end(ms(110));
        assert_eq!((intervals.waits_ms.as_slice(), intervals.missed), (&[110.0, 60.0][..], 1));
    }
}
