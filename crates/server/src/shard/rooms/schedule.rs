//! When rooms tick and sync: at absolute times, spread over the period, so that rooms neither drift
//! nor bunch together.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::shard::keys::RoomKey;

const AN_INSTANT: Duration = Duration::from_nanos(1);

/// The last time at which something that is due then is not over.
pub(in crate::shard) fn before(due: Duration) -> Duration {
    due.saturating_sub(AN_INSTANT)
}

/// The rooms, in the order in which they are due.
///
/// A room at rest, for which nothing changes until it is called, is not here for each of its syncs.
/// When it is called, the syncs are counted at which a thread that waited for each of them would
/// have found nothing to do; the others are late, and still to be made.
#[derive(Default)]
pub(crate) struct Schedule {
    due: BTreeSet<(Duration, RoomKey)>,
    given: u32,
    /// When the turn began.
    now: Duration,
    /// If the next turn begins later than that, its thread has waited for something to happen.
    awake_until: Duration,
    /// Everything that was due until then is over.
    passed: Duration,
    /// All rooms are here for each sync. Only tests want that.
    pub(crate) is_restless: bool,
}

impl Schedule {
    /// A turn begins.
    pub(crate) fn begin(&mut self, now: Duration) {
        if now > self.awake_until {
            // What is due just now comes after what happens in this turn.
            self.passed = self.passed.max(before(now));
        }
        (self.now, self.awake_until) = (now, now);
    }

    /// When the turn began.
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// The thread works at least until then, instead of waiting for what is due.
    pub(crate) fn is_awake_until(&mut self, at: Duration) {
        self.awake_until = self.awake_until.max(at);
    }

    /// In this turn, all that is due has had its time.
    pub(crate) fn end(&mut self, now: Duration) {
        self.passed = self.passed.max(now);
    }

    /// Until when the syncs of a room at rest are over that is here for `due`.
    pub(super) fn passed(&self, due: Option<Duration>) -> Duration {
        due.map_or(self.passed, |due| self.passed.min(before(due)))
    }

    /// A place in the period for the next room, as a fraction of 2^32. Multiples of the golden
    /// ratio fill the period evenly, however many there are.
    pub(crate) fn phase(&mut self) -> u32 {
        self.given = self.given.wrapping_add(1);
        self.given.wrapping_mul(0x9E37_79B9)
    }

    /// Moves a room from one time to another.
    pub(crate) fn change(&mut self, room: RoomKey, from: Option<Duration>, to: Option<Duration>) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.due.remove(&(from, room));
        }
        if let Some(to) = to {
            self.due.insert((to, room));
        }
    }

    /// Takes out the room that is most overdue.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<(Duration, RoomKey)> {
        if self.due.first()?.0 > now {
            return None;
        }
        self.due.pop_first()
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.due.first().map(|&(deadline, _)| deadline)
    }
}

/// A rate, as a series of absolute times. They are counted from 1, and computed from the first, so
/// they never drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    hz: u32,
    first: Duration,
    /// The next one's number.
    next: u64,
}

impl Beat {
    /// Starts after `now`, at the given phase of the period; `None` for a rate of 0.
    pub(crate) fn new(hz: u32, phase: u32, now: Duration) -> Option<Self> {
        let period = 1_000_000_000_u128.checked_div(u128::from(hz))?.max(1);
        let offset = (period * u128::from(phase)) >> 32;
        let periods = (now.as_nanos() + period - offset) / period;
        let first = Duration::from_nanos((periods * period + offset) as u64);
        Some(Self { hz, first, next: 1 })
    }

    /// The same times, as those that follow so many others.
    pub(crate) fn after(self, others: u64) -> Self {
        let passed = u128::from(others) * 1_000_000_000 / u128::from(self.hz);
        let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX));
        Self {
            first: self.first.saturating_sub(passed),
            next: self.next.saturating_add(others),
            ..self
        }
    }

    /// The rate, the first time, and the number of the next one.
    pub(crate) fn parts(self) -> (u32, Duration, u64) {
        (self.hz, self.first, self.next)
    }

    /// Goes on with what [`parts`](Self::parts) returned; `None` if it can't be that.
    pub(crate) fn from_parts(hz: u32, first: Duration, next: u64) -> Option<Self> {
        (hz > 0 && (1..u64::MAX / 2).contains(&next)).then_some(Self { hz, first, next })
    }

    /// The number of them in a second.
    pub(crate) fn hz(&self) -> u32 {
        self.hz
    }

    /// The number of the next one.
    pub(crate) fn number(&self) -> u64 {
        self.next
    }

    /// When the next one is due.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline_after(0)
    }

    /// When the one after so many others is due.
    pub(crate) fn deadline_after(&self, others: u64) -> Duration {
        let (periods, hz) = (self.next - 1 + others, u64::from(self.hz));
        let nanoseconds = (periods % hz) * 1_000_000_000 / hz;
        self.first + Duration::new(periods / hz, nanoseconds as u32)
    }

    /// The numbers that are due, at most the last `count_max` of them. The others are skipped.
    pub(crate) fn take(&mut self, now: Duration, count_max: u64) -> std::ops::Range<u64> {
        if self.deadline() > now {
            return self.next..self.next;
        }
        let first = self.next;
        let elapsed = now - self.first;
        let hz = u64::from(self.hz);
        // Rounding in `deadline` is downwards, so the count may be one short, never one over.
        let mut reached =
            elapsed.as_secs() * hz + u64::from(elapsed.subsec_nanos()) * hz / 1_000_000_000 + 1;
        self.next = reached + 1;
        if self.deadline() <= now {
            reached += 1;
            self.next += 1;
        }
        let end = reached + 1;
        first.max(end.saturating_sub(count_max))..end
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Beat, Schedule};
    use crate::shard::slab::Key;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn the_room_that_is_most_overdue_comes_first() {
        let mut schedule = Schedule::default();
        let (a, b) = (Key::from_bits(1), Key::from_bits(2));
        schedule.change(a, None, Some(ms(30)));
        schedule.change(b, None, Some(ms(20)));
        assert_eq!((schedule.next(), schedule.pop(ms(19))), (Some(ms(20)), None));
        schedule.change(a, Some(ms(30)), Some(ms(10)));
        assert_eq!(schedule.pop(ms(25)), Some((ms(10), a)));
        assert_eq!(schedule.pop(ms(25)), Some((ms(20), b)));
        assert_eq!((schedule.next(), schedule.pop(ms(1000))), (None, None));
    }

    #[test]
    fn a_thread_that_waited_would_have_woken_for_what_was_due_before_it_did() {
        let us = Duration::from_micros;
        let mut schedule = Schedule::default();
        schedule.begin(ms(1));
        schedule.end(ms(1));
        assert_eq!(schedule.passed(None), ms(1), "nobody knows how long the turn takes");
        schedule.is_awake_until(ms(3));
        schedule.begin(ms(3));
        assert_eq!(schedule.passed(None), ms(1), "it worked: what was due meanwhile is late");
        schedule.end(ms(3));
        schedule.is_awake_until(ms(4));
        schedule.begin(ms(9));
        assert!(schedule.passed(None) > us(8_999));
        assert!(schedule.passed(None) < ms(9), "what is due just now comes after the input");
        assert!(schedule.passed(Some(ms(6))) < ms(6), "and so does a room's own deadline");
        schedule.begin(ms(9));
        assert!(schedule.passed(None) > us(8_999), "it never goes back");
        schedule.end(ms(9));
        assert_eq!(schedule.passed(None), ms(9));
        schedule.is_awake_until(Duration::MAX);
        schedule.begin(ms(20));
        assert_eq!(schedule.passed(None), ms(9), "it had more to do");
        schedule.begin(ms(30));
        assert!(schedule.passed(None) > ms(29));
    }

    #[test]
    fn rooms_are_spread_over_the_period() {
        let mut schedule = Schedule::default();
        let mut deadlines: Vec<Duration> = (0..50)
            .map(|_| Beat::new(20, schedule.phase(), ms(1000)).unwrap().deadline())
            .collect();
        deadlines.sort_unstable();
        assert!(deadlines.iter().all(|&at| at > ms(1000) && at <= ms(1050)), "{deadlines:?}");
        let widest = deadlines.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest < Some(ms(3)), "50 rooms in 50 ms: {widest:?}");
    }

    #[test]
    fn beats_do_not_drift() {
        for hz in [1, 3, 7, 20, 30, 60, 128] {
            let mut beat = Beat::new(hz, 12_345, ms(17)).unwrap();
            let first = beat.deadline();
            for number in 1..=u64::from(hz) * 60 {
                let now = beat.deadline();
                assert_eq!(beat.take(now, 5), number..number + 1, "{hz}");
            }
            assert_eq!(beat.deadline() - first, ms(60_000), "{hz}");
        }
        assert!(Beat::new(0, 0, ms(0)).is_none());
    }

    #[test]
    fn only_so_many_are_made_up_for() {
        let mut beat = Beat::new(10, 0, ms(0)).unwrap();
        let first = beat.deadline();
        assert_eq!(beat.take(first - Duration::from_nanos(1), 5), 1..1);
        assert_eq!(beat.take(first + ms(250), 5), 1..4);
        assert_eq!(beat.take(first + ms(1250), 5), 9..14);
        assert_eq!(beat.take(first + ms(1250), 5), 14..14);
        assert_eq!(beat.deadline(), first + ms(1300));
    }
}
