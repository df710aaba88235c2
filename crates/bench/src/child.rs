//! The command, once more, in a process of its own.

use std::io;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a case's process left.
pub(crate) struct Report {
    /// Its record, as it printed it.
    pub(crate) line: String,
    /// The same, read.
    pub(crate) record: Value,
    /// It ended well: what it counted, it had verified.
    pub(crate) verified: bool,
}

/// Runs this programme with the given arguments, and waits for its record.
///
/// # Errors
/// It can't be started, or ends without a record.
pub(crate) fn run(arguments: &[String]) -> io::Result<Report> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default().to_owned();
    let record = serde_json::from_str(&line).map_err(|_| {
        io::Error::other(format!("`{}` ended with {} and no record", arguments.join(" "), output.status))
    })?;
    Ok(Report { line, record, verified: output.status.success() })
}
