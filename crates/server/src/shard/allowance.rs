//! Limits how often a session may do what costs the whole node something.

use std::time::Duration;

use playfield_room::{Error, rate};
use playfield_wire::ErrorCode;

use crate::config::RateLimit;

/// A rate with a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// The setting that it comes from.
    setting: &'static str,
    count: u64,
    unit: &'static str,
    /// The holder of the limit: a session or an address.
    owner: &'static str,
    rate: rate::Rate,
}

impl Rate {
    pub(crate) fn new(setting: &'static str, limit: RateLimit) -> Self {
        let RateLimit { count, per, .. } = limit;
        let rate = rate::Rate::new(count, per.time(), limit.burst());
        Self { setting, count, unit: per.unit(), owner: "session", rate }
    }

    /// The same for all sessions of an address together.
    pub(crate) fn of_address(self) -> Self {
        Self { owner: "address", ..self }
    }
}

/// A token bucket, by the time since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance(rate::Bucket);

impl Allowance {
    /// Whether one may be taken now; the error names the setting and says when.
    pub(crate) fn check(self, now: Duration, rate: Rate) -> Result<(), Error> {
        let Self(mut bucket) = self;
        let Err(wait) = bucket.take(now, rate.rate, 1) else { return Ok(()) };
        let Rate { setting, count, unit, owner, .. } = rate;
        let wait_s = wait.as_nanos().div_ceil(Duration::from_secs(1).as_nanos());
        let text = format!(
            "{setting}: the limit is {count} per {unit} and {owner}; try again in {wait_s} s"
        );
        Err(Error::new(ErrorCode::Limit, text).with_retry_after(wait))
    }

    /// From when on one may be taken.
    pub(crate) fn ready_at(self, rate: Rate) -> Duration {
        self.0.ready_at(rate.rate)
    }

    /// Of two allowances with the same rate, the one that has less left.
    pub(crate) fn least(self, other: Self) -> Self {
        Self(self.0.least(other.0))
    }

    /// The allowance as it is now, for a shard or a node whose clock is another.
    pub(crate) fn remaining(self, now: Duration) -> [u64; 2] {
        self.0.remaining(now)
    }

    /// Creates an allowance from what [`remaining`](Self::remaining) returned.
    pub(crate) fn with_remaining(remaining: [u64; 2], now: Duration) -> Self {
        Self(rate::Bucket::with_remaining(remaining, now))
    }

    /// The client could send nothing since `since`, and is back.
    pub(crate) fn credit(&mut self, since: Duration, now: Duration) {
        self.0.credit(since, now);
    }

    /// Takes one that was there.
    pub(crate) fn take(&mut self, now: Duration, rate: Rate) {
        self.0.spend(now, rate.rate, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_wire::ErrorCode;

    use super::{Allowance, Rate};
    use crate::config::RateLimit;

    /// Takes as many as can be taken at this time, and returns the number.
    fn drain(allowance: &mut Allowance, now: Duration, rate: Rate) -> usize {
        let takes = || {
            allowance.check(now, rate).ok()?;
            allowance.take(now, rate);
            Some(())
        };
        std::iter::from_fn(takes).count()
    }

    #[test]
    fn a_burst_is_as_many_as_the_rate_and_one_more_is_refused() {
        for count in [1, 2, 3, 7, 60, 999_983, 1_000_000] {
            for rate in [
                Rate::new("x", RateLimit::per_second(count)),
                Rate::new("x", RateLimit::per_minute(count)),
            ] {
                for now in [Duration::ZERO, Duration::from_secs(1000)] {
                    assert_eq!(drain(&mut Allowance::default(), now, rate) as u64, count);
                }
            }
        }
    }

    #[test]
    fn what_was_taken_comes_back_one_by_one_and_no_more_than_there_was() {
        let rate = Rate::new("x", RateLimit::per_minute(60));
        let mut allowance = Allowance::default();
        let mut now = Duration::from_secs(5);
        drain(&mut allowance, now, rate);
        now += Duration::from_millis(999);
        assert_eq!(drain(&mut allowance, now, rate), 0);
        now += Duration::from_millis(1);
        assert_eq!(drain(&mut allowance, now, rate), 1);
        now += Duration::from_millis(10_500);
        assert_eq!(drain(&mut allowance, now, rate), 10);
        now += Duration::from_secs(3600);
        assert_eq!(drain(&mut allowance, now, rate), 60);
    }

    #[test]
    fn over_any_time_it_is_at_most_the_burst_and_the_rate() {
        let rate = Rate::new("x", RateLimit::per_second(7));
        let mut allowance = Allowance::default();
        let taken: usize =
            (0..10_000).map(|ms| drain(&mut allowance, Duration::from_millis(ms), rate)).sum();
        assert_eq!(taken, 7 + 69);
    }

    #[test]
    fn the_error_names_the_setting_its_value_and_when_to_try_again() {
        let rate = Rate::new("rooms", RateLimit::per_minute(3));
        let mut allowance = Allowance::default();
        let now = Duration::from_millis(100);
        drain(&mut allowance, now, rate);
        let error = allowance.check(now, rate).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
        assert_eq!(error.text(), "rooms: the limit is 3 per minute and session; try again in 20 s");
        assert_eq!(error.retry_after_ms(), Some(20_000));
        let error = allowance.check(now + Duration::from_micros(19_000_001), rate).unwrap_err();
        assert!(error.text().ends_with("try again in 1 s"));
    }

    #[test]
    fn a_clock_that_is_behind_only_delays() {
        let rate = Rate::new("x", RateLimit::per_second(2));
        let mut allowance = Allowance::default();
        drain(&mut allowance, Duration::from_secs(10), rate);
        assert_eq!(drain(&mut allowance, Duration::from_millis(9990), rate), 0);
        assert_eq!(drain(&mut allowance, Duration::from_millis(10_500), rate), 1);
    }
}
