//! The number of overdue ticks that a room makes up for.
//!
//! A room that was held up makes up for all, as far as `tuning.catch_up_ticks` allows: its
//! simulation loses nothing. On a shard with more rooms than it has time for, each tick that is
//! made up for takes the time of syncs, and makes the next run later. A room that keeps falling
//! behind therefore runs no more ticks at once than belong to a sync, or take no longer than one.

use std::ops::Range;
use std::time::Duration;

use crate::shard::rooms::lateness::{Cost, Micros};
use crate::shard::rooms::schedule::Beat;

/// The ticks that a room has made up for lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp {
    /// The number of ticks made up for, less those that were on time since: a second of them at most.
    made_up: u32,
    /// The time that a tick took.
    tick: Micros,
}

impl CatchUp {
    /// The numbers of the ticks to run now, `limit` at most. The others that are due are skipped.
    pub(super) fn take(
        &mut self,
        ticks: &mut Beat,
        syncs: Option<&Beat>,
        cost: &Cost,
        now: Duration,
        limit: u64,
    ) -> Range<u64> {
        let (hz, first) = (ticks.hz(), ticks.number());
        let of_a_sync = syncs.map_or(1, |syncs| hz.div_ceil(syncs.hz()));
        let credit = 1 + hz.saturating_sub(self.made_up);
        let count_max = u64::from(of_a_sync.max(credit)).max(self.as_long_as(cost, limit));
        let taken = ticks.take(now, count_max.min(limit));
        let made_up = u32::try_from(taken.end - taken.start).unwrap_or(u32::MAX).saturating_sub(1);
        self.made_up = match taken.end - first {
            0 => self.made_up,
            1 => self.made_up.saturating_sub(1),
            _ => self.made_up.saturating_add(made_up).min(hz),
        };
        taken
    }

    /// The number of ticks that take as long as a sync: the limit, if they take no time.
    fn as_long_as(self, cost: &Cost, limit: u64) -> u64 {
        let (sync, tick) = (cost.syncing(), Duration::from(self.tick));
        let ticks = sync.as_nanos().checked_div(tick.as_nanos());
        ticks.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(limit)
    }

    /// So many ticks took this long.
    pub(super) fn took(&mut self, ticks: u64, time: Duration) {
        if let Some(ticks) = u32::try_from(ticks).ok().filter(|ticks| *ticks > 0) {
            self.tick = (time / ticks).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::CatchUp;
    use crate::shard::rooms::lateness::Cost;
    use crate::shard::rooms::schedule::Beat;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A room whose ticks take 3 ms, and those of its ticks that run if it is run this often.
    struct Room {
        ticks: Beat,
        syncs: Option<Beat>,
        catch_up: CatchUp,
        cost: Cost,
        now: Duration,
    }

    impl Room {
        fn new(tick_hz: u32, sync_hz: u32, sync_ms: u64) -> Self {
            let none = Duration::ZERO;
            let mut catch_up = CatchUp::default();
            catch_up.took(2, MS(6));
            let ticks = Beat::new(tick_hz, 0, none).unwrap();
            let now = ticks.deadline();
            let syncs = Beat::new(sync_hz, 0, none);
            Self { ticks, syncs, catch_up, cost: Cost::new(none, MS(sync_ms), none), now }
        }

        fn run_every(&mut self, ms: u64, times: u32) -> Vec<u64> {
            let runs = (0..times).map(|_| {
                self.now += MS(ms);
                let Self { ticks, syncs, catch_up, cost, now } = self;
                let taken = catch_up.take(ticks, syncs.as_ref(), cost, *now, 5);
                taken.end - taken.start
            });
            runs.collect()
        }
    }

    #[test]
    fn a_room_that_was_held_up_makes_up_for_its_ticks() {
        let mut room = Room::new(20, 20, 0);
        assert_eq!(room.run_every(0, 1), [1]);
        assert_eq!(room.run_every(250, 1), [5]);
        assert_eq!(room.run_every(50, 4), [1; 4]);
        assert_eq!(room.run_every(400, 4), [5; 4], "more of them are skipped");
        // All of the second is used up but what those on time gave back.
        assert_eq!(room.run_every(250, 3), [5, 1, 1]);
        assert_eq!(room.run_every(50, 20), [1; 20]);
        assert_eq!(room.run_every(250, 6), [5, 5, 5, 5, 5, 1]);
    }

    #[test]
    fn a_room_that_is_always_late_runs_the_ticks_of_a_sync() {
        for (tick_hz, sync_hz, of_a_sync) in [(20, 20, 1), (60, 20, 3), (20, 0, 1), (20, 60, 1)] {
            let mut room = Room::new(tick_hz, sync_hz, 2);
            room.run_every(300, 20);
            assert_eq!(room.run_every(300, 2), [of_a_sync; 2], "{tick_hz} {sync_hz}");
        }
    }

    #[test]
    fn ticks_that_take_no_longer_than_a_sync_are_made_up_for() {
        let mut room = Room::new(20, 20, 14);
        room.run_every(300, 20);
        assert_eq!(room.run_every(300, 2), [4; 2]);
        room.catch_up.took(5, Duration::ZERO);
        assert_eq!(room.run_every(300, 2), [5; 2]);
    }

    #[test]
    fn a_room_that_is_late_every_other_time_makes_up_for_all() {
        let mut room = Room::new(20, 20, 0);
        room.run_every(0, 1);
        for _ in 0..100 {
            assert_eq!([room.run_every(75, 1), room.run_every(25, 1)], [[1], [1]]);
            assert_eq!([room.run_every(100, 1), room.run_every(50, 1)], [[2], [1]]);
        }
    }
}
