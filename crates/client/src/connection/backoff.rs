//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// Exponential backoff with full jitter: a random time up to a limit that doubles, so that the
/// clients of a node that restarts do not all come back at once (M. Brooker, "Exponential Backoff
/// And Jitter", 2015).
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) first: Duration,
    pub(super) most: Duration,
    attempts: u32,
}

impl Backoff {
    pub(super) fn new(first: Duration, most: Duration) -> Self {
        Self { first, most: most.max(first), attempts: 0 }
    }

    /// The next wait. `random` is any number.
    pub(super) fn next(&mut self, random: u32) -> Duration {
        let limit = self.first.saturating_mul(1 << self.attempts.min(30)).min(self.most);
        self.attempts = self.attempts.saturating_add(1);
        limit.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// The connection has lasted: after the next loss the waits start over.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn the_limit_doubles_up_to_the_most_and_the_wait_is_anything_below() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let most: Vec<u128> = (0..8).map(|_| backoff.next(u32::MAX).as_millis()).collect();
        assert_eq!(most, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.next(0), Duration::ZERO);
        for _ in 0..1000 {
            assert!(backoff.next(u32::MAX / 2) <= Duration::from_secs(5));
        }
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX), Duration::from_millis(100));
    }
}
