//! Rates: token buckets, for messages and for whatever else costs something.

use std::fmt;
use std::time::Duration;

use playfield_state::MessageRate;

/// Buckets count time in this part of a nanosecond, so that rates of many bytes a second are exact
/// enough. A `u64` then holds 36 years.
const UNITS_PER_NS: u64 = 16;

/// A number of messages per time, some of which may come in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time that one token takes to come back, in units.
    interval: u64,
    /// The time that a whole burst takes to come back, in units.
    full: u64,
}

impl Rate {
    /// `count` in each `time`, and at most `burst` at once. Both counts are at least 1.
    #[must_use]
    pub const fn new(count: u64, time: Duration, burst: u64) -> Self {
        let count = if count == 0 { 1 } else { count };
        // Rounded up, so that it is never more than was set.
        Self::from_interval(units(time).div_ceil(count), burst)
    }

    /// One in each `interval_ns` nanoseconds, and at most `burst` at once.
    #[must_use]
    pub const fn every(interval_ns: u64, burst: u64) -> Self {
        Self::from_interval(interval_ns.saturating_mul(UNITS_PER_NS), burst)
    }

    const fn from_interval(interval: u64, burst: u64) -> Self {
        let burst = if burst == 0 { 1 } else { burst };
        Self { interval, full: interval.saturating_mul(burst) }
    }

    /// This many times the rate, with the same burst times as much. At least once.
    const fn times(self, count: u64) -> Self {
        let count = if count == 0 { 1 } else { count };
        let interval = self.interval.div_ceil(count);
        Self::from_interval(interval, self.burst().saturating_mul(count))
    }
}

impl From<MessageRate> for Rate {
    fn from(MessageRate { interval_ns, burst }: MessageRate) -> Self {
        Self::every(interval_ns, burst)
    }
}

impl Rate {
    /// The faster of both, with the larger burst.
    const fn most(self, other: Self) -> Self {
        let (burst, other_burst) = (self.burst(), other.burst());
        Self::from_interval(
            if self.interval < other.interval { self.interval } else { other.interval },
            if burst > other_burst { burst } else { other_burst },
        )
    }

    const fn burst(self) -> u64 {
        self.full / if self.interval == 0 { 1 } else { self.interval }
    }
}

impl fmt::Display for Rate {
    /// Writes it as in `10 per second, 20 at once`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = time(self.interval);
        if interval > Duration::from_secs(1) {
            write!(f, "1 in {interval:?}")?;
        } else {
            // To a tenth: an interval is a whole number of units.
            let tenths = (10.0 / interval.as_secs_f64()).round();
            write!(f, "{} per second", tenths / 10.0)?;
        }
        write!(f, ", {} at once", self.burst())
    }
}

/// A token bucket, kept as the time at which it is full again (the generic cell rate algorithm of
/// ITU-T I.371). A new one is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    full_at: u64,
    /// Until then, what [`credit`](Self::credit) gave is left: as much as comes back in that time.
    credit_until: u64,
}

impl Bucket {
    /// Takes `count` if all are there.
    ///
    /// # Errors
    /// How long it takes until they are. Nothing is taken then.
    #[inline]
    pub fn take(&mut self, now: Duration, rate: Rate, count: u64) -> Result<(), Duration> {
        let now = units(now);
        // A clock may be a little behind that by which the last was taken: that only delays.
        let full_at = self.full_at.max(now).saturating_add(rate.interval.saturating_mul(count));
        let most = now.saturating_add(rate.full);
        if full_at > most {
            return self.take_credit(now, most, full_at - most);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Takes the rest of the bucket, and what is missing from the credit.
    #[cold]
    fn take_credit(&mut self, now: u64, most: u64, missing: u64) -> Result<(), Duration> {
        let credit = self.credit_until.saturating_sub(now);
        if missing > credit {
            return Err(time(missing - credit));
        }
        self.credit_until -= missing;
        self.full_at = most;
        Ok(())
    }

    /// The sender could not send since `since`, and is back: what came meanwhile beyond a full
    /// bucket may be taken, too. It fades as fast as it came, so over any time no more is taken
    /// than a burst and what the rate gives.
    pub fn credit(&mut self, since: Duration, now: Duration) {
        let now = units(now);
        let credit = now.saturating_sub(self.full_at.max(units(since)));
        self.credit_until = self.credit_until.max(now.saturating_add(credit));
    }

    /// Takes `count`, whether they are there or not.
    pub fn spend(&mut self, now: Duration, rate: Rate, count: u64) {
        let cost = rate.interval.saturating_mul(count);
        let now = units(now);
        let full_at = self.full_at.max(now).saturating_add(cost);
        let missing = full_at.saturating_sub(now.saturating_add(rate.full));
        let credit = missing.min(self.credit_until.saturating_sub(now));
        self.credit_until -= credit;
        self.full_at = full_at - credit;
    }

    /// From when on one may be taken.
    #[must_use]
    pub fn ready_at(self, rate: Rate) -> Duration {
        time(self.full_at.saturating_sub(rate.full.saturating_sub(rate.interval)))
    }

    /// The time until it is full and the time for which its credit lasts, from `now` on, in
    /// sixteenths of a nanosecond: what to pass on to a bucket by another clock.
    #[must_use]
    pub fn remaining(self, now: Duration) -> [u64; 2] {
        [self.full_at, self.credit_until].map(|at| at.saturating_sub(units(now)))
    }

    /// Creates a bucket from what [`remaining`](Self::remaining) returned.
    #[must_use]
    pub fn with_remaining(remaining: [u64; 2], now: Duration) -> Self {
        let at = |left: u64| if left == 0 { 0 } else { left.saturating_add(units(now)) };
        let [full_at, credit_until] = remaining.map(at);
        Self { full_at, credit_until }
    }

    /// Of two buckets with the same rate, the one that has less left.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            full_at: self.full_at.max(other.full_at),
            credit_until: self.credit_until.min(other.credit_until),
        }
    }
}

/// A rate, and how much of what exceeds it is refused before the sender is given up.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    rate: Rate,
    /// The rate of what is refused; `None` if nothing is.
    refusals: Option<Rate>,
}

impl Limit {
    /// A rate, and the multiple of it past which the sender is given up: what is taken and what is
    /// refused together. At the multiple 1, nothing is refused without that.
    #[must_use]
    pub const fn new(rate: Rate, multiple: u64) -> Self {
        let refusals = match multiple.saturating_sub(1) {
            0 => None,
            more => Some(rate.times(more)),
        };
        Self { rate, refusals }
    }

    /// However low the rate is, so much of what exceeds it is refused before the sender is given
    /// up.
    #[must_use]
    pub const fn refusing(self, least: Rate) -> Self {
        let refusals = match self.refusals {
            Some(refusals) => Some(refusals.most(least)),
            None => Some(least),
        };
        Self { refusals, ..self }
    }
}

/// The answer of a [`Limiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The sender is within the rate.
    Within,
    /// The sender exceeds the rate: try again after this time.
    Exceeds(Duration),
    /// Too much was refused: the sender is to be given up.
    Excessive,
}

/// The use of one [`Limit`] by a sender.
pub type Limiter = Limiters<1>;

/// The use of `N` limits by one sender. For one who keeps to them, it takes 8 bytes for each and 8
/// for all.
#[derive(Clone, Debug)]
pub struct Limiters<const N: usize> {
    /// When the buckets of what is taken are full again.
    full_at: [u64; N],
    rest: Option<Box<[Rest; N]>>,
}

/// The record of a sender who exceeded a rate, or could not send for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// The end of the credit, as in [`Bucket`], for what is taken.
    credit_until: u64,
    refused: Bucket,
}

impl<const N: usize> Default for Limiters<N> {
    fn default() -> Self {
        Self { full_at: [0; N], rest: None }
    }
}

impl Limiters<1> {
    /// Its parts, in sixteenths of a nanosecond: when it is full, and of a sender who exceeded the
    /// rate or could not send, what is left of the credit and what was refused.
    pub(crate) fn freeze(&self) -> (u64, Option<[u64; 3]>) {
        let rest = self.rest.as_ref().map(|rest| {
            let [Rest { credit_until, refused: Bucket { full_at, credit_until: credit } }] = **rest;
            [credit_until, full_at, credit]
        });
        (self.full_at[0], rest)
    }

    /// Makes one of what [`freeze`](Self::freeze) returned.
    pub(crate) fn thaw(full_at: u64, rest: Option<[u64; 3]>) -> Self {
        let rest = rest.map(|[credit_until, full_at, credit]| {
            let refused = Bucket { full_at, credit_until: credit };
            Box::new([Rest { credit_until, refused }])
        });
        Self { full_at: [full_at], rest }
    }

    /// Takes `count`, or counts them as refused.
    #[inline]
    pub fn take(&mut self, now: Duration, limit: &Limit, count: u64) -> Verdict {
        self.take_of::<0>(now, limit, count)
    }
}

impl<const N: usize> Limiters<N> {
    /// Takes `count` of the limit in place `I`, or counts them as refused.
    #[inline]
    pub fn take_of<const I: usize>(&mut self, now: Duration, limit: &Limit, count: u64) -> Verdict {
        let mut taken = Bucket { full_at: self.full_at[I], credit_until: 0 };
        if taken.take(now, limit.rate, count).is_err() {
            return self.exceed(I, now, limit, count);
        }
        self.full_at[I] = taken.full_at;
        Verdict::Within
    }

    /// The sender could not send since `since`, and is back: see [`Bucket::credit`].
    pub fn credit(&mut self, since: Duration, now: Duration) {
        for place in 0..N {
            let mut taken = self.taken(place);
            taken.credit(since, now);
            if taken.credit_until > units(now) {
                self.rest_mut(place).credit_until = taken.credit_until;
            }
        }
    }

    fn taken(&self, place: usize) -> Bucket {
        let credit_until = self.rest.as_ref().map_or(0, |rest| rest[place].credit_until);
        Bucket { full_at: self.full_at[place], credit_until }
    }

    fn rest_mut(&mut self, place: usize) -> &mut Rest {
        &mut self.rest.get_or_insert_with(|| Box::new([Rest::default(); N]))[place]
    }

    /// Takes what is more than the bucket has from the credit, or counts it as refused.
    #[cold]
    fn exceed(&mut self, place: usize, now: Duration, limit: &Limit, count: u64) -> Verdict {
        let mut taken = self.taken(place);
        let verdict = taken.take(now, limit.rate, count);
        self.full_at[place] = taken.full_at;
        let rest = self.rest_mut(place);
        rest.credit_until = taken.credit_until;
        let Err(wait) = verdict else { return Verdict::Within };
        match limit.refusals.map(|rate| rest.refused.take(now, rate, count)) {
            Some(Ok(())) => Verdict::Exceeds(wait),
            Some(Err(_)) | None => Verdict::Excessive,
        }
    }
}

const fn units(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(time.subsec_nanos() as u64).saturating_mul(UNITS_PER_NS)
}

/// Rounded up: at the end of this time, it has passed.
const fn time(units: u64) -> Duration {
    Duration::from_nanos(units.div_ceil(UNITS_PER_NS))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{Bucket, Limit, Limiter, Limiters, Rate, Verdict};

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns how many can be taken at this time.
    fn drain(bucket: &mut Bucket, now: Duration, rate: Rate) -> u64 {
        std::iter::from_fn(|| bucket.take(now, rate, 1).ok()).count() as u64
    }

    #[test]
    fn a_burst_may_come_at_once_and_one_more_may_not() {
        for (count, burst) in [(1, 1), (10, 1), (1, 10), (7, 60), (999_983, 3), (60, 999_983)] {
            let rate = Rate::new(count, SECOND, burst);
            for now in [Duration::ZERO, Duration::from_secs(1000)] {
                assert_eq!(drain(&mut Bucket::default(), now, rate), burst);
            }
        }
    }

    #[test]
    fn one_in_two_seconds() {
        let rate = Rate::every(2_000_000_000, 1);
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(Duration::ZERO, rate, 1), Ok(()));
        let later = Duration::from_millis(1999);
        assert_eq!(bucket.take(later, rate, 1), Err(Duration::from_millis(1)));
        assert_eq!(bucket.take(2 * SECOND, rate, 1), Ok(()));
    }

    #[test]
    fn many_are_taken_whole_or_not_at_all() {
        let rate = Rate::new(1000, SECOND, 4000);
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(Duration::ZERO, rate, 3999), Ok(()));
        assert_eq!(bucket.take(Duration::ZERO, rate, 2), Err(Duration::from_millis(1)));
        assert_eq!(bucket.take(Duration::ZERO, rate, 1), Ok(()));
        assert!(bucket.take(SECOND, rate, 4001).is_err(), "more than a burst never fits");
    }

    #[test]
    fn what_exceeds_the_rate_is_refused_and_past_a_multiple_the_sender_is_given_up() {
        let limit = Limit::new(Rate::new(10, SECOND, 5), 3);
        let mut limiter = Limiter::default();
        let verdicts: Vec<Verdict> = (0..16).map(|_| limiter.take(SECOND, &limit, 1)).collect();
        let tenth = Duration::from_millis(100);
        assert_eq!(verdicts[..5], [Verdict::Within; 5]);
        assert_eq!(verdicts[5..15], [Verdict::Exceeds(tenth); 10], "twice the burst is refused");
        assert_eq!(verdicts[15], Verdict::Excessive);
    }

    #[test]
    fn limits_of_one_sender_are_apart_and_so_is_what_it_could_not_send() {
        let limits =
            [Limit::new(Rate::new(1, SECOND, 1), 2), Limit::new(Rate::new(10, SECOND, 10), 2)];
        let mut limiters = Limiters::<2>::default();
        assert_eq!(size_of_val(&limiters), 24);
        limiters.credit(SECOND, SECOND);
        let [one, other] = &limits;
        assert_eq!(limiters.take_of::<0>(SECOND, one, 1), Verdict::Within);
        assert!(limiters.rest.is_none(), "it keeps to the limits");
        assert_eq!(limiters.take_of::<0>(SECOND, one, 1), Verdict::Exceeds(SECOND));
        assert_eq!(limiters.take_of::<0>(SECOND, one, 1), Verdict::Excessive);
        assert_eq!(limiters.take_of::<1>(SECOND, other, 10), Verdict::Within);
        limiters.credit(SECOND, 4 * SECOND);
        // The bucket of the one was full again after 2 s, that of the other as well.
        let now = 4 * SECOND;
        let taken = (0..9).take_while(|_| limiters.take_of::<0>(now, one, 1) == Verdict::Within);
        assert_eq!(taken.count(), 3, "a burst, and two seconds' worth");
        assert_eq!(limiters.take_of::<1>(now, other, 30), Verdict::Within);
        assert_ne!(limiters.take_of::<1>(now, other, 1), Verdict::Within);
    }

    #[test]
    fn at_the_multiple_one_nothing_is_merely_refused() {
        let limit = Limit::new(Rate::new(10, SECOND, 2), 1);
        let mut limiter = Limiter::default();
        let verdicts = [(); 3].map(|()| limiter.take(SECOND, &limit, 1));
        assert_eq!(verdicts, [Verdict::Within, Verdict::Within, Verdict::Excessive]);
    }

    #[test]
    fn a_rate_reads_as_it_was_given() {
        for (rate, text) in [
            (Rate::new(10, SECOND, 20), "10 per second, 20 at once"),
            (Rate::new(3, SECOND, 1), "3 per second, 1 at once"),
            (Rate::every(666_666_667, 2), "1.5 per second, 2 at once"),
            (Rate::new(1, SECOND, 1), "1 per second, 1 at once"),
            (Rate::every(2_000_000_000, 1), "1 in 2s, 1 at once"),
        ] {
            assert_eq!(rate.to_string(), text);
        }
    }

    #[test]
    fn who_could_not_send_may_send_what_came_meanwhile_in_one_burst() {
        let rate = Rate::new(5, SECOND, 5);
        let at = Duration::from_secs;
        for (back, later, expected) in
            [(12, 0, 65), (12, 2, 55), (12, 6, 35), (12, 12, 5), (12, 60, 5), (0, 0, 5)]
        {
            let mut bucket = Bucket::default();
            bucket.credit(at(100), at(100 + back));
            let now = at(100 + back + later);
            assert_eq!(drain(&mut bucket, now, rate), expected, "{back} s away, {later} s later");
            assert_eq!(drain(&mut bucket, now + SECOND, rate), 5, "the rate goes on");
        }
    }

    #[test]
    fn coming_back_again_and_again_gives_no_more_than_the_rate() {
        let rate = Rate::new(5, SECOND, 5);
        let mut bucket = Bucket::default();
        assert_eq!(drain(&mut bucket, SECOND, rate), 5);
        let mut taken = 0;
        for second in 2..=21 {
            let now = Duration::from_secs(second);
            bucket.credit(now - SECOND, now);
            bucket.credit(now - SECOND, now);
            if second % 4 == 1 {
                taken += drain(&mut bucket, now, rate);
            }
        }
        assert!(taken <= 100, "{taken}");
    }

    #[test]
    fn extremes_do_not_overflow() {
        for rate in [Rate::every(u64::MAX, u64::MAX), Rate::every(0, 1), Rate::new(0, SECOND, 0)] {
            let limit = Limit::new(rate, u64::MAX);
            for now in [Duration::MAX, Duration::ZERO] {
                let mut limiter = Limiter::default();
                for count in [u64::MAX, 1, 0] {
                    limiter.take(now, &limit, count);
                }
                assert!(Bucket::default().ready_at(rate).is_zero());
            }
        }
    }

    proptest! {
        /// Over any stretch of time, no more is taken than the burst and what the rate gives back;
        /// and what is refused could not have been taken within that.
        #[test]
        fn it_takes_exactly_what_the_rate_allows(
            count in 1_u64..100_000,
            burst in 1_u64..1000,
            steps in proptest::collection::vec((0_u64..50_000_000, 1_u64..50), 1..200),
        ) {
            let rate = Rate::new(count, SECOND, burst);
            let mut bucket = Bucket::default();
            let mut now = Duration::ZERO;
            // The tokens that are there, as fractions of one: what a plain bucket would hold.
            let (mut level, full) = (rate.full, rate.full);
            for (step_ns, wanted) in steps {
                now += Duration::from_nanos(step_ns);
                level = full.min(level + step_ns * super::UNITS_PER_NS);
                let cost = wanted * rate.interval;
                match bucket.take(now, rate, wanted) {
                    Ok(()) => {
                        prop_assert!(cost <= level);
                        level -= cost;
                    }
                    Err(wait) => {
                        prop_assert!(cost > level);
                        let missing = super::time(cost - level);
                        prop_assert_eq!(wait, missing);
                        if cost <= full {
                            let mut later = bucket;
                            prop_assert_eq!(later.take(now + wait, rate, wanted), Ok(()));
                        }
                    }
                }
            }
        }

        /// Checks that what is taken and what is refused together stay below the multiple of the
        /// rate.
        #[test]
        fn a_sender_is_given_up_past_the_multiple_and_not_below(
            count in 1_u64..1000,
            burst in 1_u64..100,
            multiple in 2_u64..10,
            step_ms in 1_u64..200,
        ) {
            let limit = Limit::new(Rate::new(count, SECOND, burst), multiple);
            let mut limiter = Limiter::default();
            let mut offered = 0_u64;
            for step in 0..2000 {
                let now = Duration::from_millis(step * step_ms);
                let allowed = multiple * (burst + step * step_ms * count / 1000);
                match limiter.take(now, &limit, 1) {
                    Verdict::Excessive => {
                        // Each of the two buckets may have rounded down once.
                        prop_assert!(offered + 1 + multiple >= burst * multiple, "{offered} of {allowed}");
                        return Ok(());
                    }
                    _ => offered += 1,
                }
                prop_assert!(offered <= allowed + multiple, "{offered} of {allowed}");
            }
        }
    }
}
