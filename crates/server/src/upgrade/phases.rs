//! The time that the phases of an upgrade take, for the log.

use std::fmt::Write as _;
use std::time::Instant;

/// Phases, one after the other. Their times are logged when it is dropped.
pub(crate) struct Phases {
    of: &'static str,
    last: Instant,
    text: String,
}

impl Phases {
    /// Begins the first phase of a process, which is the old or the new one.
    pub(crate) fn begin(of: &'static str) -> Self {
        Self { of, last: Instant::now(), text: String::new() }
    }

    /// Ends a phase, and begins the next.
    pub(crate) fn end(&mut self, phase: &str) {
        let now = Instant::now();
        let took = now.duration_since(self.last).as_secs_f64() * 1e3;
        self.last = now;
        let separator = if self.text.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(self.text, "{separator}{phase} {took:.1} ms");
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        log::debug!("phases of the upgrade in the {} process: {}", self.of, self.text);
    }
}
