//! Runs scripts for the browser's client by Node.js.

use std::io::{ErrorKind, Write as _, stderr};
use std::process::Command;

/// What the script printed. `None` if Node.js is missing, or has no WebSocket, which it reports.
///
/// # Panics
///
/// If the script fails, and in CI instead of `None`.
pub(crate) fn run(script: &str, arguments: &[String]) -> Option<String> {
    let skip = |why: &str| {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        // This bypasses the test harness, which hides the output of passing tests.
        writeln!(stderr(), "playfield: {why}, so the test {script} is skipped.")
            .expect("stderr can be written");
        None
    };
    let output = Command::new("node")
        .args(["--no-warnings", "--experimental-websocket"])
        .arg(format!("{}/../../sdk/typescript/test/served/{script}", env!("CARGO_MANIFEST_DIR")))
        .args(arguments)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return skip("node is missing"),
        Err(error) => panic!("node can't be started: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrote = String::from_utf8_lossy(&output.stderr);
    if said == "no WebSocket\n" || wrote.contains("bad option") {
        return skip("node has no WebSocket");
    }
    assert!(output.status.success(), "{said}{wrote}");
    Some(said)
}
