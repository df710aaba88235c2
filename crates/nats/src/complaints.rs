//! Errors that repeat themselves are logged now and then.

use std::time::{Duration, Instant};

/// The shortest time between two lines of the log.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Complaints {
    last: Option<Instant>,
    left_out: u64,
}

impl Complaints {
    /// Logs an error, unless one was logged a moment ago.
    pub(crate) fn log(&mut self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < PAUSE) {
            self.left_out += 1;
            return;
        }
        match std::mem::take(&mut self.left_out) {
            0 => log::error!("{}", text()),
            left_out => log::error!("{} (and {left_out} more errors since)", text()),
        }
        self.last = Some(now);
    }
}
