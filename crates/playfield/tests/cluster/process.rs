//! A node in a process of its own, which a test can kill.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use playfield::Running;

/// The settings of the node, a line each.
const SETTINGS: &str = "PLAYFIELD_TEST_SETTINGS";

/// A node in a process of its own. Dropping it kills it.
pub(crate) struct Process {
    child: Child,
    url: String,
    _output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this test program as a node with these settings, and waits until it serves.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(key, value)| format!("{key}={value}"));
        let settings = settings.collect::<Vec<_>>().join("\n");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["a_node_of_its_own", "--exact", "--ignored", "--nocapture"])
            .env(SETTINGS, settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let url = loop {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the node did not start");
            if let Some(url) = line.trim().strip_prefix("serves ") {
                break url.to_owned();
            }
        };
        Self { child, url, _output: output }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The settings that the test has given this process.
pub(crate) fn settings() -> Vec<(String, String)> {
    let settings = std::env::var(SETTINGS).unwrap();
    let pairs = settings.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Serves until the test ends.
pub(crate) fn serve(node: &Running, url: &str) {
    println!("serves {url}");
    // The end of the test closes it.
    let _ = std::io::stdin().read(&mut [0]);
    let _ = node;
}
