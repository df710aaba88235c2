//! Limits of logging: a frequent event is logged now and then, and counted each time.

use std::time::Duration;

/// The minimum time between two log lines about the same subject.
const PERIOD: Duration = Duration::from_secs(60);

/// The subjects that a shard has logged lately: a few values.
pub(crate) struct LogLimit<K>(Vec<(K, Duration)>);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq> LogLimit<K> {
    /// Returns whether the log has not said it within a minute. If so, it is to say it now.
    pub(crate) fn is_due(&mut self, about: K, now: Duration) -> bool {
        if self.0.iter().any(|(of, until)| *of == about && now < *until) {
            return false;
        }
        self.0.retain(|(of, _)| *of != about);
        self.0.push((about, now + PERIOD));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::LogLimit;

    #[test]
    fn the_same_is_logged_once_a_minute() {
        let mut limit = LogLimit::default();
        let mut is_due = |about, seconds| limit.is_due(about, Duration::from_secs(seconds));
        assert!(is_due("a", 0) && !is_due("a", 59) && is_due("b", 59));
        assert!(is_due("a", 60) && !is_due("b", 118) && !is_due("a", 119) && is_due("b", 119));
        assert_eq!(limit.0.len(), 2);
    }
}
