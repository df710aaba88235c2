//! The time to wait before the next attempt to connect.

use std::time::Duration;

/// So shortly before the end of a session comes a last attempt, at most this long and at least half
/// as long before it.
const LAST: Duration = Duration::from_millis(200);

/// In this time before the end there is no attempt but the last: the clients of a node that is away
/// all have the same end, and would flood it if each tried ever faster.
const NEAR: Duration = Duration::from_secs(1);

/// Exponential backoff with full jitter: a random time up to a limit that doubles, so that the
/// clients of a node that restarts do not all come back at once (M. Brooker, "Exponential Backoff
/// And Jitter", 2015).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, most: Duration) -> Self {
        Self { first, most: most.max(first), attempts: 0 }
    }

    /// The next wait. `random` is any number. While the node keeps the session for certain, for
    /// `kept` from now on, the wait is at most half of that, or leads to the last attempt.
    pub(crate) fn next(&mut self, random: u32, kept: Duration) -> Duration {
        let limit = self.first.saturating_mul(1 << self.attempts.min(30)).min(self.most);
        self.attempts = self.attempts.saturating_add(1);
        let part = |of: Duration| of.mul_f64(f64::from(random) / f64::from(u32::MAX));
        if kept.is_zero() || limit <= kept / 2 {
            part(limit)
        } else if kept <= LAST {
            part(limit.min(LAST))
        } else if kept > NEAR {
            part(kept / 2)
        } else {
            kept - LAST + part(LAST / 2)
        }
    }

    /// The connection has lasted: after the next loss the waits start over.
    pub(crate) fn reset(&mut self) {
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
        let most: Vec<u128> =
            (0..8).map(|_| backoff.next(u32::MAX, Duration::ZERO).as_millis()).collect();
        assert_eq!(most, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(backoff.next(0, Duration::ZERO), Duration::ZERO);
        for _ in 0..1000 {
            assert!(backoff.next(u32::MAX / 2, Duration::ZERO) <= Duration::from_secs(5));
        }
        backoff.reset();
        assert_eq!(backoff.next(u32::MAX, Duration::ZERO), Duration::from_millis(100));
    }
    /// When the attempts of a client whose node is unreachable are made, in milliseconds.
    fn attempts(mut backoff: Backoff, grace_ms: u64, random: impl Fn(u32) -> u32) -> Vec<u64> {
        let grace = Duration::from_millis(grace_ms);
        let (mut at, mut made) = (Duration::ZERO, Vec::new());
        for attempt in 0..100_000 {
            at += backoff.next(random(attempt), grace.saturating_sub(at));
            made.push(u64::try_from(at.as_millis()).unwrap());
            if at > grace * 2 && made.len() > 1 {
                break;
            }
        }
        made
    }

    #[test]
    fn several_attempts_fall_within_the_grace_and_one_comes_shortly_before_its_end() {
        let backoffs = [(100, 5_000), (100, 60_000), (1_000, 1_000), (3_600_000, 3_600_000)];
        for (first, most) in backoffs {
            for grace_ms in [1_000, 10_000, 60_000] {
                let (first, most) = (Duration::from_millis(first), Duration::from_millis(most));
                for random in [|_| u32::MAX, |_| u32::MAX / 2, |n: u32| n.wrapping_mul(0x9e37_79b9)]
                {
                    let made = attempts(Backoff::new(first, most), grace_ms, random);
                    let within: Vec<_> = made.iter().filter(|at| **at < grace_ms).collect();
                    let case = format!("{first:?}, {most:?}, {grace_ms}");
                    assert!(within.len() >= if grace_ms > 1_000 { 4 } else { 1 }, "{case}");
                    let near = within.iter().filter(|at| grace_ms - **at < 900).count();
                    assert!(first.as_secs() == 0 || near <= 3, "{case}: {near} near the end");
                    assert!(grace_ms - **within.last().unwrap() <= 200, "{case}");
                }
            }
        }
        // Without a grace, or after it, only the settings count.
        let backoff = Backoff::new(Duration::from_secs(9), Duration::from_secs(9));
        assert_eq!(attempts(backoff, 0, |_| u32::MAX)[..2], [9_000, 18_000]);
    }
}
