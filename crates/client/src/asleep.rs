//! Notices that this process, or the whole device, has slept.

use std::time::{Duration, Instant, SystemTime};

/// A longer difference between the two clocks is a sleep.
const SLEEP: Duration = Duration::from_secs(5);

/// The monotonic clock stands still while a device is suspended, on some systems; the wall clock
/// goes on.
#[derive(Debug)]
pub(crate) struct Asleep {
    monotonic: Instant,
    wall: SystemTime,
}

impl Asleep {
    pub(crate) fn new() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// Returns whether the device has slept since the last call. A wall clock that was set forward
    /// looks the same; that does no harm.
    pub(crate) fn has_been(&mut self) -> bool {
        self.has_been_at(Instant::now(), SystemTime::now())
    }

    /// The same, at this time.
    pub(crate) fn has_been_at(&mut self, monotonic: Instant, wall: SystemTime) -> bool {
        let passed = monotonic - self.monotonic;
        let by_wall = wall.duration_since(self.wall).unwrap_or_default();
        (self.monotonic, self.wall) = (monotonic, wall);
        by_wall.saturating_sub(passed) >= SLEEP
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime};

    use super::Asleep;

    #[test]
    fn only_a_wall_clock_that_ran_ahead_shows_a_sleep() {
        let (start, wall) = (Instant::now(), SystemTime::now());
        let mut asleep = Asleep { monotonic: start, wall };
        let s = Duration::from_secs;
        assert!(!asleep.has_been_at(start + s(100), wall + s(100)));
        assert!(asleep.has_been_at(start + s(101), wall + s(3700)));
        assert!(!asleep.has_been_at(start + s(102), wall + s(3701)), "once");
        assert!(!asleep.has_been_at(start + s(103), wall), "it was set back");
    }
}
