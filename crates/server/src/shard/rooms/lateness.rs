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

/// How late a room was run lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// The second, by the node's clock, that it was last run in.
    second: u32,
    /// The most in that second, and in the one before, in microseconds.
    most_us: u32,
    before_us: u32,
}

impl Late {
    /// The room is run this late.
    #[inline]
    pub(crate) fn note(&mut self, now: Duration, late: Duration) {
        let second = now.as_secs() as u32;
        if second != self.second {
            self.before_us = if second == self.second + 1 { self.most_us } else { 0 };
            (self.second, self.most_us) = (second, 0);
        }
        self.most_us = self.most_us.max(u32::try_from(late.as_micros()).unwrap_or(u32::MAX));
    }

    /// The most in the present second and the one before.
    pub(crate) fn most(mut self, now: Duration) -> Duration {
        self.note(now, Duration::ZERO);
        Duration::from_micros(u64::from(self.most_us.max(self.before_us)))
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

    use super::{Cost, Late, Lateness};

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
    fn a_room_is_as_late_as_the_most_of_this_second_and_the_one_before() {
        let ms = Duration::from_millis;
        let mut late = Late::default();
        late.note(ms(1100), ms(30));
        late.note(ms(1900), ms(2));
        assert_eq!(late.most(ms(1950)), ms(30));
        late.note(ms(2500), ms(4));
        assert_eq!((late.most(ms(2600)), late.most(ms(3600))), (ms(30), ms(4)));
        assert_eq!(late.most(ms(4000)), Duration::ZERO);
    }

    #[test]
    fn a_report_says_what_took_the_time() {
        let ms = Duration::from_millis;
        let cost = Cost { ticks: ms(1), sync: ms(2), patches: ms(30) };
        assert_eq!(cost.to_string(), "ticks took 1.0ms, the sync 2.0ms, patches 30.0ms");
    }
}
