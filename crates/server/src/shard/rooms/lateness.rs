//! The lateness of each room and of all rooms of a shard, and the rooms that missed syncs, with the
//! reason.

use std::fmt;
use std::time::Duration;

use crate::shard::rooms::thread_time::ThreadTime;

/// The minimum time between two reports about one room type.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// A time in microseconds, for what many rooms keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Micros(u32);

impl From<Duration> for Micros {
    fn from(time: Duration) -> Self {
        Self(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
    }
}

impl From<Micros> for Duration {
    fn from(Micros(us): Micros) -> Self {
        Self::from_micros(u64::from(us))
    }
}

/// The time that a regular sync of a room took. The longer one is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// All of it. The first field, since it decides which is the greater.
    total: Micros,
    /// Its ticks and timers since the sync before.
    pub(crate) ticks: Micros,
    /// Comparing its state with what was synced before.
    pub(crate) sync: Micros,
    /// Writing patches for all its players.
    pub(crate) patches: Micros,
}

impl Cost {
    pub(crate) fn new(ticks: Duration, sync: Duration, patches: Duration) -> Self {
        let total = (ticks + sync + patches).into();
        Self { total, ticks: ticks.into(), sync: sync.into(), patches: patches.into() }
    }

    /// The time without ticks and timers.
    pub(super) fn syncing(&self) -> Duration {
        Duration::from(self.sync) + Duration::from(self.patches)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ticks, sync, patches] = [self.ticks, self.sync, self.patches].map(Duration::from);
        write!(f, "ticks took {ticks:.1?}, the sync {sync:.1?}, patches {patches:.1?}")
    }
}

/// The most of something in the present period of the node's clock and in the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak<T, const PERIOD_S: u64> {
    /// The period that `most` is of.
    period: u32,
    most: T,
    /// The most in the period before.
    before: T,
}

/// The greatest lateness of a room in the last one to two seconds.
pub(crate) type Late = Peak<Micros, 1>;
/// The longest regular sync of a room in the last five to ten seconds, if there was one.
pub(crate) type LongestSync = Peak<Option<Cost>, 5>;

impl<T: Copy + Default + Ord, const PERIOD_S: u64> Peak<T, PERIOD_S> {
    #[inline]
    pub(crate) fn note(&mut self, now: Duration, value: T) {
        let period = (now.as_secs() / PERIOD_S) as u32;
        if period != self.period {
            self.before = if period == self.period + 1 { self.most } else { T::default() };
            (self.period, self.most) = (period, T::default());
        }
        self.most = self.most.max(value);
    }

    pub(crate) fn most(mut self, now: Duration) -> T {
        self.note(now, T::default());
        self.most.max(self.before)
    }
}

/// The lateness of the rooms of a full shard: the time that 98 of 100 runs stay within, to a
/// millisecond, twice in a row. Measured over [`RUNS`] and [`TIME`] at least each, so that growth
/// is seen soon where rooms are many, and a single hold-up does not count. Zero as long as its
/// thread waits for a fifth of the time, or has more to do with input than with rooms: then it is
/// not the rooms that make it late.
pub(crate) struct ShardLateness {
    began: ThreadTime,
    /// The number of runs by lateness, in milliseconds.
    runs: [u32; LATE_MS_MAX],
    count: u32,
    /// The lateness that the last measurement found.
    found: Duration,
    /// The lesser of the last two.
    late: Duration,
}

/// The least number of runs that are measured.
const RUNS: u32 = 100;
/// The least time for which they are measured.
const TIME: Duration = Duration::from_millis(100);
/// The time after which fewer runs are enough.
const TIME_MAX: Duration = Duration::from_secs(2);
/// The number of runs that say nothing after that time either.
const RUNS_MIN: u32 = 20;
/// A shard is full if it waits for less than one part in this many of its time.
const WAITED_PARTS: u32 = 5;
/// One run in this many is not looked at.
const OUTLIERS: u32 = 50;
/// The lateness, in milliseconds, from which all counts alike.
const LATE_MS_MAX: usize = 1024;

impl Default for ShardLateness {
    fn default() -> Self {
        let (began, runs, none) = (ThreadTime::default(), [0; LATE_MS_MAX], Duration::ZERO);
        Self { began, runs, count: 0, found: none, late: none }
    }
}

impl ShardLateness {
    #[inline]
    pub(crate) fn note(&mut self, late: Duration) {
        self.count += 1;
        self.runs[(late.as_millis() as usize).min(LATE_MS_MAX - 1)] += 1;
    }

    /// The new lateness, if a measurement has ended by now with another.
    #[inline]
    pub(crate) fn changed(&mut self, now: ThreadTime) -> Option<Duration> {
        let time = now.since(self.began);
        if time.all < TIME || (self.count < RUNS && time.all < TIME_MAX) {
            return None;
        }
        let is_full =
            self.count >= RUNS_MIN && time.waits < time.all / WAITED_PARTS && time.is_of_rooms();
        let found = if is_full { self.most() } else { Duration::ZERO };
        let (before, late) = (self.late, found.min(self.found));
        (self.began, self.found, self.late) = (now, found, late);
        (self.runs, self.count) = ([0; LATE_MS_MAX], 0);
        (late != before).then_some(late)
    }

    fn most(&self) -> Duration {
        let mut later = 0;
        let most = self.runs.iter().rposition(|runs| {
            later += runs;
            later > (self.count / OUTLIERS).max(1)
        });
        Duration::from_millis(most.unwrap_or_default() as u64)
    }

    /// When to look again, even if no room is run: as long as rooms were late.
    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.late.is_zero()).then(|| self.began.all + TIME_MAX)
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

    use super::{Cost, Late, Lateness, LongestSync, ShardLateness};
    use crate::shard::rooms::thread_time::ThreadTime;

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
        late.note(ms(1100), ms(30).into());
        late.note(ms(1900), ms(2).into());
        assert_eq!(late.most(ms(1950)), ms(30).into());
        late.note(ms(2500), ms(4).into());
        assert_eq!((late.most(ms(2600)), late.most(ms(3600))), (ms(30).into(), ms(4).into()));
        assert_eq!(late.most(ms(4000)), Duration::ZERO.into());
    }

    #[test]
    fn the_longest_sync_is_that_of_ten_seconds_at_most() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        let short = Cost::new(ms(9), ms(0), ms(0));
        let long = Cost::new(ms(0), ms(4), ms(6));
        let mut longest = LongestSync::default();
        longest.note(s(11), Some(long));
        longest.note(s(12), Some(short));
        assert_eq!(longest.most(s(14)), Some(long));
        longest.note(s(19), Some(short));
        assert_eq!(longest.most(s(19)), Some(long));
        assert_eq!((longest.most(s(20)), longest.most(s(24))), (Some(short), Some(short)));
        assert_eq!(longest.most(s(25)), None, "it rests");
    }

    #[test]
    fn a_shards_lateness_is_of_many_runs() {
        let ms = Duration::from_millis;
        let mut lateness = ShardLateness::default();
        let noted = |lateness: &mut ShardLateness, runs, late, at| {
            (0..runs).for_each(|_| lateness.note(ms(late)));
            lateness.changed(ThreadTime { all: ms(at), rooms: ms(at), ..ThreadTime::default() })
        };
        assert_eq!(noted(&mut lateness, 980, 8, 99), None, "too soon");
        assert_eq!(noted(&mut lateness, 20, 90, 100), None, "only once");
        assert_eq!(noted(&mut lateness, 98, 8, 1500), None, "too few runs");
        assert_eq!(noted(&mut lateness, 3, 900, 1501), Some(ms(8)), "the lesser of both");
        assert_eq!(lateness.next(), Some(ms(3501)));
        assert_eq!(noted(&mut lateness, 29, 5000, 3501), Some(ms(900)), "few, but it is time");
        assert_eq!(noted(&mut lateness, 30, 5000, 5501), Some(ms(1023)));
        assert_eq!(noted(&mut lateness, 30, 5000, 7501), None, "no other than before");
        assert_eq!(noted(&mut lateness, 19, 7, 9501), Some(ms(0)), "too few to say anything");
        assert_eq!(lateness.next(), None);
    }

    #[test]
    fn a_shard_that_waits_or_reads_is_not_full_of_rooms() {
        let ms = Duration::from_millis;
        let late = |waited, worked| {
            let mut lateness = ShardLateness::default();
            for at in [100, 200] {
                (0..100).for_each(|_| lateness.note(ms(7)));
                let [waits, rooms] = [waited, worked].map(|time| ms(time * at / 100));
                lateness.changed(ThreadTime { all: ms(at), waits, rooms });
            }
            lateness.late
        };
        assert_eq!((late(19, 41), late(20, 41), late(19, 40)), (ms(7), ms(0), ms(0)));
    }

    #[test]
    fn a_report_says_what_took_the_time() {
        let ms = Duration::from_millis;
        let cost = Cost::new(ms(1), ms(2), ms(30));
        assert_eq!(cost.to_string(), "ticks took 1.0ms, the sync 2.0ms, patches 30.0ms");
    }
}
