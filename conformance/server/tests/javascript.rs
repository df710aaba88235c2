//! `playfield.js` plays the scenarios, by Node.js. If it is missing, or has no WebSocket, the test
//! reports that and is skipped.

use std::io::{ErrorKind, Write as _, stderr};
use std::process::Command;

#[test]
fn the_browsers_client_plays_all_scenarios() {
    let skip = |why: &str| {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        // This bypasses the test harness, which hides the output of passing tests.
        writeln!(stderr(), "playfield: {why}, so playfield.js plays no conformance scenarios.")
            .expect("stderr can be written");
    };
    let server = playfield_conformance::start(None).expect("a free port");
    let output = Command::new("node")
        .args(["--no-warnings", "--experimental-websocket"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/typescript/test/served/scenarios.mjs"))
        .arg(server.url())
        .output();
    server.shutdown();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return skip("node is missing"),
        Err(error) => panic!("node can't be started: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let wrote = String::from_utf8_lossy(&output.stderr);
    if said == "no WebSocket\n" || wrote.contains("bad option") {
        return skip("node has no WebSocket");
    }
    println!("{said}");
    assert!(output.status.success(), "{wrote}");
}
