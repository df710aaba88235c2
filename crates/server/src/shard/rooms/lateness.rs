//! Rooms that miss syncs: how many, and what took the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The minimum time between two reports about one room type.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Measures how long something takes. Nothing but counters and the log depends on it.
#[derive(Clone)]
pub(crate) enum Stopwatch {
    Running(Instant),
    /// Set by a test: the time, and how much of it passes with each look, in nanoseconds.
    #[cfg_attr(
        not(any(test, feature = "bare-shard")),
        expect(dead_code, reason = "tests set the time")
    )]
    Held(Arc<[AtomicU64; 2]>),
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self::Running(Instant::now())
    }

    pub(crate) fn read(&self) -> Duration {
        match self {
            Self::Running(started) => started.elapsed(),
            Self::Held(held) => {
                let [nanoseconds, per_look] = &**held;
                let per_look = per_look.load(Ordering::Relaxed);
                Duration::from_nanos(nanoseconds.fetch_add(per_look, Ordering::Relaxed))
            }
        }
    }
}

/// What the last regular sync of a room has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Its ticks and timers since the sync before.
    pub(crate) ticks: Duration,
    /// Comparing its state with what was synced before.
    pub(crate) sync: Duration,
    /// Writing patches for all its players.
    pub(crate) patches: Duration,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ticks, sync, patches } = self;
        write!(f, "ticks took {ticks:.1?}, the sync {sync:.1?}, patches {patches:.1?}")
    }
}

/// The syncs that rooms of each type have missed.
#[derive(Default)]
pub(crate) struct Lateness {
    types: Vec<Missed>,
}

#[derive(Clone, Default)]
struct Missed {
    /// Since the last report.
    syncs: u64,
    reported: Option<Duration>,
}

impl Lateness {
    /// A room of this type has missed this many syncs. Returns how many the type has missed since
    /// its last report, if it is time for another. In an empty room nobody misses them, so they are
    /// no reason for a report.
    pub(crate) fn missed(
        &mut self,
        room_type: u16,
        syncs: u64,
        players: usize,
        now: Duration,
    ) -> Option<u64> {
        let place = usize::from(room_type);
        if place >= self.types.len() {
            self.types.resize(place + 1, Missed::default());
        }
        let missed = &mut self.types[place];
        missed.syncs += syncs;
        if players == 0 {
            return None;
        }
        if missed.reported.is_some_and(|reported| now < reported + REPORT_INTERVAL) {
            return None;
        }
        missed.reported = Some(now);
        Some(std::mem::take(&mut missed.syncs))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, Lateness};

    #[test]
    fn each_room_type_is_reported_every_ten_seconds_at_most_with_all_that_was_missed() {
        let mut lateness = Lateness::default();
        let mut missed =
            |room_type, syncs, s| lateness.missed(room_type, syncs, 1, Duration::from_secs(s));
        assert_eq!(missed(1, 2, 0), Some(2));
        assert_eq!(missed(1, 3, 5), None);
        assert_eq!(missed(0, 1, 5), Some(1), "another type has its own");
        assert_eq!(missed(1, 4, 9), None);
        assert_eq!(missed(1, 1, 10), Some(8));
    }

    #[test]
    fn what_an_empty_room_misses_is_reported_only_with_what_players_miss() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.missed(1, 100, 0, Duration::ZERO), None);
        assert_eq!(lateness.missed(1, 2, 3, Duration::ZERO), Some(102));
    }

    #[test]
    fn a_report_says_what_took_the_time() {
        let ms = Duration::from_millis;
        let cost = Cost { ticks: ms(1), sync: ms(2), patches: ms(30) };
        assert_eq!(cost.to_string(), "ticks took 1.0ms, the sync 2.0ms, patches 30.0ms");
    }
}
