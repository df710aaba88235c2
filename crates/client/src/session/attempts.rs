//! When to restore a lost connection: how long to wait before each attempt, how long an attempt may
//! take, and when to give up.

use std::time::Duration;

use super::backoff::Backoff;

/// A connection that has lasted this long is not counted among the attempts to restore one.
const LASTING: Duration = Duration::from_secs(5);

/// While the node keeps the session, an attempt takes at most this part of that time, unless that
/// is shorter than `ATTEMPT`: an attempt that hangs, such as over a network that is gone, leaves
/// time for others.
const PART: u32 = 3;
const ATTEMPT: Duration = Duration::from_secs(3);

/// The frequency and the time limits of attempts to restore a lost connection.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time to keep trying before giving up. Zero: not at all. Default: 60 seconds.
    pub reconnect_timeout: Duration,
    /// The time limit of one attempt, up to the welcome, and that of the token for it. Default: 10
    /// seconds.
    pub timeout: Duration,
    /// The wait before the first attempt, which doubles with each attempt. Default: 100
    /// milliseconds.
    pub backoff_first: Duration,
    /// The most that it grows to. Default: 5 seconds.
    pub backoff_most: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            reconnect_timeout: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            backoff_first: Duration::from_millis(100),
            backoff_most: Duration::from_secs(5),
        }
    }
}

/// The attempts to restore a connection, since it was lost. Time is the time since any fixed
/// moment.
///
/// Each attempt is a [`wait`](Self::wait), its [`begin`](Self::begin), a token, and a
/// [`dial`](Self::dial). It ends with [`welcomed`](Self::welcomed), or with
/// [`failed`](Self::failed) or [`lost`](Self::lost).
#[derive(Debug)]
pub struct Attempts {
    reconnect_timeout: Duration,
    timeout: Duration,
    backoff: Backoff,
    /// The time limit of the present attempt.
    limit: Duration,
    /// The time for which the node keeps the session for certain, and the end of that time.
    grace: Duration,
    kept_until: Duration,
    /// When the present attempt, or connection, began.
    began: Duration,
    is_welcomed: bool,
    /// The time that the attempts took. Time that this process slept does not count.
    took: Duration,
    /// The time that the node wants this client to wait.
    retry_after: Option<Duration>,
}

impl Attempts {
    /// The first connection is made at `now`.
    #[must_use]
    pub fn new(patience: Patience, now: Duration) -> Self {
        Self {
            reconnect_timeout: patience.reconnect_timeout,
            timeout: patience.timeout,
            backoff: Backoff::new(patience.backoff_first, patience.backoff_most),
            limit: patience.timeout,
            grace: Duration::ZERO,
            kept_until: now,
            began: now,
            is_welcomed: false,
            took: Duration::ZERO,
            retry_after: None,
        }
    }

    /// The node has answered the hello. Returns whether that is news.
    pub fn welcomed(&mut self, now: Duration) -> bool {
        let is_news = !std::mem::replace(&mut self.is_welcomed, true);
        if is_news {
            (self.began, self.took) = (now, Duration::ZERO);
        }
        is_news
    }

    /// When the present attempt has failed, unless the node answers.
    #[must_use]
    pub fn welcome_by(&self) -> Option<Duration> {
        (!self.is_welcomed).then(|| self.began.saturating_add(self.limit))
    }

    /// The time limit of any attempt.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The time limit of the present attempt.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// The connection was lost, or the attempt at one has failed. The node keeps the session for
    /// `grace` from the loss on, and may want this client to wait. The waits start over if the
    /// connection brought the session forward. Returns whether it was an attempt.
    pub fn lost(
        &mut self,
        made_progress: bool,
        grace: Duration,
        retry_after: Option<Duration>,
        now: Duration,
    ) -> bool {
        self.retry_after = retry_after;
        if !std::mem::take(&mut self.is_welcomed) {
            self.failed(now);
            return true;
        }
        if made_progress || now.saturating_sub(self.began) >= LASTING {
            self.backoff.reset();
        }
        (self.grace, self.kept_until) = (grace, now.saturating_add(grace));
        false
    }

    /// The present attempt has failed before it came to a connection.
    pub fn failed(&mut self, now: Duration) {
        self.took += now.saturating_sub(self.began).min(self.timeout);
    }

    /// Returns whether the time for attempts is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.took >= self.reconnect_timeout
    }

    /// Returns the time that the attempts took so far.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Returns the time to wait before the next attempt. `random` is any number.
    pub fn wait(&mut self, random: u32, now: Duration) -> Duration {
        let mut wait = self.backoff.next(random, self.kept(now));
        if let Some(retry_after) = self.retry_after.take() {
            wait = wait.saturating_add(retry_after);
        }
        // There is time for one attempt at least, and the last comes when the time is over.
        wait = wait.min(self.reconnect_timeout.saturating_sub(self.took));
        self.took += wait;
        wait
    }

    /// An attempt begins.
    pub fn begin(&mut self, now: Duration) {
        self.began = now;
    }

    /// The token is there: what is left of the attempt has a time limit of its own, which this
    /// returns.
    pub fn dial(&mut self, now: Duration) -> Duration {
        self.failed(now);
        self.began = now;
        let part = if self.kept(now).is_zero() { Duration::MAX } else { self.grace / PART };
        self.limit = self.timeout.min(part.max(ATTEMPT));
        self.limit
    }

    /// Returns the time for which the node still keeps the session for certain.
    fn kept(&self, now: Duration) -> Duration {
        self.kept_until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Attempts, Patience};

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// When the attempts of a client whose node is unreachable begin, and when it gives up.
    fn story(patience: Patience, grace: Duration, attempt: Duration) -> (Vec<Duration>, Duration) {
        let mut attempts = Attempts::new(patience, Duration::ZERO);
        assert!(attempts.welcomed(seconds(1)) && !attempts.welcomed(seconds(2)));
        let (mut now, mut begun) = (seconds(100), Vec::new());
        assert!(!attempts.lost(true, grace, None, now));
        loop {
            now += attempts.wait(u32::MAX, now);
            attempts.begin(now);
            begun.push(now - seconds(100));
            let limit = attempts.dial(now);
            assert_eq!(attempts.welcome_by(), Some(now + limit));
            now += attempt.min(limit);
            attempts.failed(now);
            if attempts.is_over() {
                return (begun, now - seconds(100));
            }
        }
    }

    #[test]
    fn attempts_follow_until_the_time_is_over_whatever_the_grace() {
        for grace in [Duration::ZERO, seconds(1), seconds(30)] {
            let (begun, end) = story(Patience::default(), grace, Duration::ZERO);
            assert!(begun.len() >= 12, "{begun:?}");
            assert_eq!((*begun.last().unwrap(), end), (seconds(60), seconds(60)));
        }
        let patience = Patience { reconnect_timeout: seconds(12), ..Patience::default() };
        assert_eq!(story(patience, seconds(10), Duration::ZERO).1, seconds(12));
    }

    #[test]
    fn an_attempt_that_hangs_leaves_time_for_others() {
        let (begun, _) = story(Patience::default(), seconds(30), seconds(3600));
        assert!(begun.iter().filter(|at| **at < seconds(30)).count() >= 3, "{begun:?}");
        let (begun, end) = story(Patience::default(), Duration::ZERO, seconds(3600));
        assert!(begun.len() >= 5 && end <= seconds(70), "{begun:?} {end:?}");
    }

    #[test]
    fn the_node_says_how_long_to_wait() {
        let mut attempts = Attempts::new(Patience::default(), Duration::ZERO);
        attempts.welcomed(Duration::ZERO);
        assert!(!attempts.lost(true, Duration::ZERO, Some(seconds(7)), seconds(1)));
        assert_eq!(attempts.wait(0, seconds(1)), seconds(7));
        assert_eq!(attempts.wait(0, seconds(8)), Duration::ZERO);
        // A refusal at the door is an attempt.
        attempts.begin(seconds(8));
        assert!(attempts.lost(false, Duration::ZERO, Some(seconds(9)), seconds(10)));
        assert_eq!((attempts.wait(0, seconds(10)), attempts.took()), (seconds(9), seconds(18)));
    }
}
