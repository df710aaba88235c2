//! The time of a shard's thread: how much of it the thread waits, and how much rooms take.

use std::time::Duration;

use crate::stats::Counters;

/// A busy shard is full of rooms if they take at least one part in this many of that time.
const ROOMS_PARTS: u32 = 2;

/// The time until now, or of a period, as the shard's counters have it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadTime {
    pub(super) all: Duration,
    /// The time in which there was nothing to do.
    pub(super) waits: Duration,
    /// The time for running rooms, and for writing to sockets, which is mostly their output.
    pub(super) rooms: Duration,
}

impl ThreadTime {
    pub(crate) fn new(now: Duration, counters: &Counters) -> Self {
        let rooms = Duration::from_nanos(counters.rooms_ns + counters.writes_ns);
        Self { all: now, waits: Duration::from_nanos(counters.waits_ns), rooms }
    }

    /// The time between then and this.
    pub(super) fn since(self, began: Self) -> Self {
        Self {
            all: self.all.saturating_sub(began.all),
            waits: self.waits.saturating_sub(began.waits),
            rooms: self.rooms.saturating_sub(began.rooms),
        }
    }

    pub(super) fn busy(self) -> Duration {
        self.all.saturating_sub(self.waits)
    }

    /// Returns whether rooms keep the shard busier than input does.
    pub(super) fn is_of_rooms(self) -> bool {
        self.rooms >= self.busy() / ROOMS_PARTS
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ThreadTime;
    use crate::stats::Counters;

    #[test]
    fn rooms_make_a_shard_busy_that_take_half_of_what_it_does_not_wait() {
        let ms = Duration::from_millis;
        let time = |now, [waits, rooms, writes]: [u64; 3]| {
            let [waits_ns, rooms_ns, writes_ns] = [waits, rooms, writes].map(|ms| ms * 1_000_000);
            ThreadTime::new(
                ms(now),
                &Counters { waits_ns, rooms_ns, writes_ns, ..Counters::default() },
            )
        };
        let began = time(1000, [900, 10, 10]);
        for (rooms, is_of_rooms) in [(39, false), (40, true)] {
            let time = time(1200, [1000, 10 + rooms, 20]).since(began);
            assert_eq!((time.busy(), time.is_of_rooms()), (ms(100), is_of_rooms), "{rooms}");
        }
    }
}
