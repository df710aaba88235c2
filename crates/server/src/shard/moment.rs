//! Times in 8 bytes: there are several for each connection.

use std::time::Duration;

/// A time since the node started, in nanoseconds: enough for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// A moment that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The time since the node started; the maximum if the moment never comes.
    pub(crate) fn time(self) -> Duration {
        if self == Self::NEVER { Duration::MAX } else { Duration::from_nanos(self.0) }
    }
}

impl From<Duration> for Moment {
    fn from(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Moment;

    #[test]
    fn a_moment_is_exact_and_never_stays_never() {
        for time in [Duration::ZERO, Duration::new(49 * 365 * 86_400, 999_999_999), Duration::MAX] {
            assert_eq!(Moment::from(time).time(), time);
        }
        assert_eq!(Moment::from(Duration::MAX), Moment::NEVER);
        assert!(Moment::from(Duration::ZERO) < Moment::NEVER);
    }
}
