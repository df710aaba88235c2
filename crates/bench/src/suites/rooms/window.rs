//! What is recorded during the measurement.

use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::harness::stats::Samples;

/// What one client received.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// When the last patch arrived.
    last: Option<Instant>,
    /// How many arrived in the window.
    messages: u64,
}

/// Counts and intervals, from the start of the measurement.
#[derive(Debug, Default)]
pub(super) struct Window {
    open: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) compared: u64,
    intervals_us: Vec<u32>,
    pub(super) failure: Option<Failure>,
}

/// A reason why a run proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Clients were lost or could not join: the size is too large, or the machine stood still.
    Overload(String),
    /// Something is wrong, however busy the machine is.
    Fault(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Overload(text) | Self::Fault(text)) = self;
        f.write_str(text)
    }
}

impl Window {
    /// Starts counting; `expected` is the expected number of messages.
    pub(super) fn open<'a>(
        &mut self,
        expected: usize,
        clients: impl Iterator<Item = &'a mut Arrivals>,
    ) {
        clients.for_each(|arrivals| arrivals.messages = 0);
        *self = Self {
            open: true,
            intervals_us: Vec::with_capacity(expected),
            failure: self.failure.take(),
            ..Self::default()
        };
    }

    /// Stops counting and returns the number of messages of the client that received the fewest. A
    /// client that has waited for a message for longer than `period` has an unfinished interval,
    /// which counts with its current length.
    pub(super) fn close<'a>(
        &mut self,
        now: Instant,
        period: Duration,
        clients: impl Iterator<Item = &'a Arrivals>,
    ) -> u64 {
        self.open = false;
        let mut least = u64::MAX;
        for arrivals in clients {
            least = least.min(arrivals.messages);
            let silence =
                arrivals.last.map_or(Duration::MAX, |last| now.saturating_duration_since(last));
            if silence > period {
                self.interval(silence);
            }
        }
        least
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Records messages of `bytes` bytes in total, received by one client at `now`.
    #[inline]
    pub(super) fn arrived(
        &mut self,
        messages: u64,
        bytes: usize,
        arrivals: &mut Arrivals,
        now: Instant,
    ) {
        if self.open {
            self.messages += messages;
            self.bytes += bytes as u64;
            arrivals.messages += messages;
            if let Some(last) = arrivals.last {
                self.interval(now.duration_since(last));
            }
        }
        arrivals.last = Some(now);
    }

    fn interval(&mut self, interval: Duration) {
        self.intervals_us.push(u32::try_from(interval.as_micros()).unwrap_or(u32::MAX));
    }

    /// Records a failure, at any time. The first counts, but a fault counts more than overload.
    pub(super) fn fail(&mut self, failure: Failure) {
        let is_overload = matches!(self.failure, Some(Failure::Overload(_)));
        if self.failure.is_none() || (is_overload && matches!(failure, Failure::Fault(_))) {
            self.failure = Some(failure);
        }
    }

    /// The intervals in milliseconds.
    pub(super) fn intervals_ms(&self) -> Samples {
        Samples::new(
            self.intervals_us
                .iter()
                .map(|us| Duration::from_micros((*us).into()).as_secs_f64() * 1e3)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Arrivals, Failure, Window};

    const PERIOD: Duration = Duration::from_millis(50);

    #[test]
    fn a_client_without_messages_affects_the_intervals_and_the_minimum() {
        let began = Instant::now();
        let mut clients = [Arrivals::default(), Arrivals::default()];
        let mut window = Window::default();
        for client in &mut clients {
            window.arrived(1, 10, client, began);
        }
        window.open(100, clients.iter_mut());
        for number in 1..=20 {
            window.arrived(1, 10, &mut clients[0], began + PERIOD * number);
        }
        let least = window.close(began + PERIOD * 20, PERIOD, clients.iter());
        assert_eq!((least, window.messages), (0, 20));
        assert_eq!(window.intervals_ms().percentile(100.0), 1000.0);
    }

    #[test]
    fn a_fault_counts_more_than_overload() {
        let failures = [
            Failure::Overload("a client was lost".into()),
            Failure::Fault("a hand differs".into()),
            Failure::Overload("another was lost".into()),
            Failure::Fault("another hand differs".into()),
        ];
        let mut window = Window::default();
        for (failure, first) in failures.iter().zip([0, 1, 1, 1]) {
            window.fail(failure.clone());
            assert_eq!(window.failure.as_ref(), Some(&failures[first]));
        }
    }

    #[test]
    fn an_unfinished_interval_that_is_not_late_is_not_counted() {
        let began = Instant::now();
        let mut clients = [Arrivals::default()];
        let mut window = Window::default();
        window.open(10, clients.iter_mut());
        window.arrived(1, 10, &mut clients[0], began);
        window.arrived(1, 10, &mut clients[0], began + PERIOD);
        assert_eq!(window.close(began + PERIOD * 3 / 2, PERIOD, clients.iter()), 2);
        assert_eq!(window.intervals_ms().percentile(100.0), 50.0);
    }
}
