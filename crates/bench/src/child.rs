//! The command, once more, in a process of its own.

use std::io::{self, Read};
use std::process::{Command, Stdio, exit};
use std::thread;

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

/// Runs this program with the given arguments, and waits for its record.
///
/// # Errors
/// It can't be started, or ends without a record.
pub(crate) fn run(arguments: &[String]) -> io::Result<Report> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    // Held open until the child has ended: see `end_with_parent`.
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

/// Ends this process when the one that runs it is gone, however that ended: nobody would take the
/// record, and nothing is left behind.
#[expect(
    clippy::disallowed_methods,
    reason = "the process that runs this one is gone, and no client is connected here"
)]
pub(crate) fn end_with_parent() {
    thread::spawn(|| {
        let mut byte = [0];
        // Nothing is ever written there, so it returns at the end.
        let _ = io::stdin().read(&mut byte);
        exit(1);
    });
}
