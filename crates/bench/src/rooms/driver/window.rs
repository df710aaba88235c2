//! What is noted while the measurement lasts.

use std::time::{Duration, Instant};

use crate::stats::Samples;

/// Counts and intervals, from the beginning of the measurement on.
#[derive(Debug, Default)]
pub(super) struct Window {
    open: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) compared: u64,
    intervals_us: Vec<u32>,
    pub(super) failure: Option<String>,
}

impl Window {
    /// Begins to count; `expected` is how many messages there will be.
    pub(super) fn open(&mut self, expected: usize) {
        *self = Self {
            open: true,
            intervals_us: Vec::with_capacity(expected),
            failure: self.failure.take(),
            ..Self::default()
        };
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Messages of `bytes` together came to one client at `now`, the ones before them at `last`.
    #[inline]
    pub(super) fn arrived(&mut self, messages: u64, bytes: usize, last: &mut Option<Instant>, now: Instant) {
        if self.open {
            self.messages += messages;
            self.bytes += bytes as u64;
            if let Some(last) = last {
                let interval = now.duration_since(*last).as_micros();
                self.intervals_us.push(u32::try_from(interval).unwrap_or(u32::MAX));
            }
        }
        *last = Some(now);
    }

    /// Something was wrong, at any time.
    pub(super) fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
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
