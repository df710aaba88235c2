//! Finds the handler that does not return.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When a shard's turn began, in milliseconds since the node started, plus one; 0 = it waits for something to do.
#[derive(Debug, Default)]
pub(crate) struct Pulse(AtomicU64);

impl Pulse {
    pub(crate) fn begin(&self, since_start: Duration) {
        self.0.store(since_start.as_millis() as u64 + 1, Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.store(0, Relaxed);
    }
}

/// Watches the pulses of all shards.
#[derive(Debug)]
pub(crate) struct Watchdog {
    pub(crate) started: Instant,
    pub(crate) pulses: Vec<Pulse>,
    healthy: AtomicBool,
    ended: Mutex<bool>,
    wake: Condvar,
}

impl Watchdog {
    pub(crate) fn new(shards: usize) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            pulses: (0..shards).map(|_| Pulse::default()).collect(),
            healthy: AtomicBool::new(true),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        })
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy.load(Relaxed)
    }

    /// Looks again and again until the node ends.
    pub(crate) fn watch(&self, limit: Duration) {
        let mut reported = vec![0; self.pulses.len()];
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            self.look(limit, &mut reported);
            let waited = self.wake.wait_timeout(ended, limit / 2);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    fn look(&self, limit: Duration, reported: &mut [u64]) {
        let now = self.started.elapsed().as_millis() as u64;
        let mut healthy = true;
        for (shard, pulse) in self.pulses.iter().enumerate() {
            let began = pulse.0.load(Relaxed);
            if began == 0 || now.saturating_sub(began) < limit.as_millis() as u64 {
                continue;
            }
            healthy = false;
            if reported[shard] != began {
                reported[shard] = began;
                log::error!(
                    "shard {shard} has been in one turn for {} ms, past watchdog_ms = {}: a room's handler does not return, and all \
                     rooms of that shard stand still; move long work into cx.compute or cx.spawn",
                    now - began,
                    limit.as_millis(),
                );
            }
        }
        self.healthy.store(healthy, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_does_not_end_is_not_healthy_until_it_does() {
        let watchdog = Watchdog::new(2);
        let limit = Duration::ZERO;
        watchdog.look(limit, &mut [0, 0]);
        assert!(watchdog.is_healthy());
        watchdog.pulses[1].begin(Duration::ZERO);
        watchdog.look(limit, &mut [0, 0]);
        assert!(!watchdog.is_healthy());
        watchdog.pulses[1].end();
        watchdog.look(limit, &mut [0, 0]);
        assert!(watchdog.is_healthy());
    }
}
