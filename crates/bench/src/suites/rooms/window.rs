//! The records of the measurement.

use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::harness::stats::Samples;

/// The messages that one client received.
#[derive(Debug, Default)]
pub(in crate::suites) struct Arrivals {
    /// When the last patch arrived.
    last: Option<Instant>,
    /// The number of messages that arrived in the window.
    pub(in crate::suites) messages: u64,
    /// Leaves its intervals and waits out: it joins later, leaves early, or reads slowly.
    pub(in crate::suites) is_uneven: bool,
}

/// Counts and intervals, from the start of the measurement.
#[derive(Debug, Default)]
pub(in crate::suites) struct Window {
    open: bool,
    pub(in crate::suites) messages: u64,
    pub(in crate::suites) bytes: u64,
    pub(in crate::suites) compared: u64,
    /// Patches of rooms that wait for players: they are decoded, but there is nothing to compare.
    pub(in crate::suites) early: u64,
    intervals_us: Vec<u32>,
    /// The times that pings waited for their answers.
    waits_us: Vec<u32>,
    pub(in crate::suites) failure: Option<Failure>,
}

/// A reason why a run proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::suites) enum Failure {
    /// Clients were lost or could not join: the size is too large, or the machine stood still.
    Overload(String),
    /// Something is wrong, however busy the machine is.
    Fault(String),
}

impl Failure {
    /// Returns the failure that the loss of a client is: a fault if what it was sent is wrong.
    pub(super) fn of_lost(client: usize, why: &io::Error) -> Self {
        let text = format!("client {client}: {why}");
        match why.kind() {
            io::ErrorKind::InvalidData => Self::Fault(text),
            _ => Self::Overload(text),
        }
    }
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
    pub(in crate::suites) fn open<'a>(
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
    pub(in crate::suites) fn close<'a>(
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
            if silence > period && !arrivals.is_uneven {
                self.interval(silence);
            }
        }
        least
    }

    pub(in crate::suites) fn is_open(&self) -> bool {
        self.open
    }

    /// Records messages of `bytes` bytes in total, received by one client at `now`.
    #[inline]
    pub(in crate::suites) fn arrived(
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
            if let Some(last) = arrivals.last.filter(|_| !arrivals.is_uneven) {
                self.interval(now.duration_since(last));
            }
        }
        arrivals.last = Some(now);
    }

    fn interval(&mut self, interval: Duration) {
        self.intervals_us.push(micros(interval));
    }

    /// Records how long a ping waited for its answer, or waits at the end.
    pub(in crate::suites) fn waited(&mut self, wait: Duration) {
        if self.open {
            self.waits_us.push(micros(wait));
        }
    }

    /// Records a failure, at any time. The first counts, but a fault counts more than overload.
    pub(in crate::suites) fn fail(&mut self, failure: Failure) {
        let is_overload = matches!(self.failure, Some(Failure::Overload(_)));
        if self.failure.is_none() || (is_overload && matches!(failure, Failure::Fault(_))) {
            self.failure = Some(failure);
        }
    }

    /// The intervals in milliseconds.
    pub(in crate::suites) fn intervals_ms(&self) -> Samples {
        milliseconds(&self.intervals_us)
    }

    /// Returns the number of intervals, and of waits of pings, that are longer than this, each with
    /// the number of all.
    pub(in crate::suites) fn longer_than(&self, time: Duration) -> [(usize, usize); 2] {
        let limit = micros(time);
        [&self.intervals_us, &self.waits_us]
            .map(|times| (times.iter().filter(|time| **time > limit).count(), times.len()))
    }

    /// The waits of pings in milliseconds.
    pub(in crate::suites) fn waits_ms(&self) -> Samples {
        milliseconds(&self.waits_us)
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

fn milliseconds(times_us: &[u32]) -> Samples {
    Samples::new(times_us.iter().map(|us| f64::from(*us) / 1e3).collect())
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
