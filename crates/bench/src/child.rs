//! Runs the command again in a child process.

use std::io::{self, Read};
use std::process::{Command, Stdio, exit};
use std::thread;

use serde_json::Value;

/// The output of a case's process.
pub(crate) struct Report {
    /// The record's line, as printed.
    pub(crate) line: String,
    /// The same record, parsed.
    pub(crate) record: Value,
    /// Whether it exited successfully, so that everything it counted is verified.
    pub(crate) verified: bool,
}

/// Runs this program with the given arguments and waits for its record.
///
/// # Errors
/// The process can't be started, or exits without a record.
pub(crate) fn run(arguments: &[String]) -> io::Result<Report> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    // Kept open until the child has exited: see `end_with_parent`.
    let input = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(input);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default().to_owned();
    let record = serde_json::from_str(&line).map_err(|_| {
        io::Error::other(format!(
            "`{}` ended with {} and no record",
            arguments.join(" "),
            output.status
        ))
    })?;
    Ok(Report { line, record, verified: output.status.success() })
}

/// Exits this process when its parent is gone, for whatever reason. Nobody would read the record,
/// and no process is left behind.
#[expect(
    clippy::disallowed_methods,
    reason = "the parent process is gone, and no client is connected here"
)]
pub(crate) fn end_with_parent() {
    thread::spawn(|| {
        let mut byte = [0];
        // Nothing is ever written to this pipe, so the read returns when it is closed.
        let _ = io::stdin().read(&mut byte);
        exit(1);
    });
}
