//! The log of a program that installs no backend of its own.

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

/// Writes each record to standard error, one line each.
struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // In one write, so that lines of several threads don't mix.
            let line = format!("{}: {}: {}\n", record.level(), record.target(), record.args());
            // A full disk or a closed pipe must not end the node, as `eprintln!` would.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    fn flush(&self) {}
}

/// Installs a [`log`] backend that writes to standard error, unless the program has one already or
/// `level` is `Off`. Lines that can't be written are dropped.
pub fn log_to_stderr(level: LevelFilter) {
    if level != LevelFilter::Off && log::set_logger(&StandardError).is_ok() {
        log::set_max_level(level);
    }
}
