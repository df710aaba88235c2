//! The progress of a measurement.

use std::io::{self, IsTerminal, Write};

/// The progress on standard error: one line that is written over, on a terminal alone.
pub(super) struct Shown {
    is_quiet: bool,
    width: usize,
}

impl Shown {
    /// Shows nothing if it is quiet.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, width: 0 }
    }

    pub(super) fn show(&mut self, what: &str) {
        if !self.is_quiet && io::stderr().is_terminal() {
            let width = std::mem::replace(&mut self.width, what.chars().count());
            // Measure even if standard error is closed.
            let _ = write!(io::stderr(), "\r{what:<width$}");
        }
    }

    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.width) > 0 {
            let _ = writeln!(io::stderr());
        }
    }
}
