//! WebSocket clients in Python, by the benchmark of the Python package.

use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::comparison::Comparison;
use super::{Options, Peer};
use crate::harness::process::output;

/// The rows of that benchmark that are measured here.
const ROWS: [&str; 6] =
    ["sync-rr", "sync-window", "await-rr", "await-window", "callback-rr", "callback-window"];

/// Compares our clients with all others that are installed. The rounds are those of the benchmark.
pub(super) fn compare(
    options: &Options,
    add: &mut dyn FnMut(Comparison) -> io::Result<()>,
) -> io::Result<()> {
    // The script leaves the interpreter's path behind when all is installed.
    let Some(path) = options.installed(Peer::Python, "python/interpreter") else { return Ok(()) };
    let interpreter = std::fs::read_to_string(path)?;
    let mut command = Command::new(interpreter.trim());
    command.arg(Path::new("sdk/python/bench/run.py")).arg("--json");
    command.args(["--rounds", &options.rounds.to_string()]);
    if options.is_quick {
        command.arg("--quick");
    }
    command.args(ROWS.iter().flat_map(|row| ["--row", row]));
    rows(&output(&mut command)?)?.into_iter().try_for_each(add)
}

/// The rows of printed lines: of each work, ours beside every other client.
fn rows(lines: &str) -> io::Result<Vec<Comparison>> {
    let all = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let is_ours = |row: &&Value| text(row, "client").starts_with("playfield");
    let is_same = |one: &Value, other: &Value| {
        ["row", "loop", "size"].iter().all(|name| one[*name] == other[*name])
    };
    // Rows without a package are the floor: the kernel and the interpreter.
    let (floors, theirs): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|row| !is_ours(row))
        .partition(|row| row["package_version"].as_str().is_none());
    let mut rows = Vec::new();
    for ours in all.iter().filter(is_ours) {
        let floor = floors.iter().find(|row| is_same(row, ours));
        for theirs in theirs.iter().filter(|row| is_same(row, ours)) {
            let words = ["row", "loop", "size_text"].map(|name| text(ours, name));
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            rows.push(Comparison {
                peer: text(theirs, "client"),
                version: text(theirs, "package_version"),
                work: format!("Python: {}, {}", words.join(", "), text(ours, "client")),
                unit: "µs a message",
                ours: figures(ours),
                theirs: figures(theirs),
                baseline: floor.map_or(Vec::new(), |row| figures(row)),
                more: Vec::new(),
                is_verified: [ours, theirs].iter().all(|row| row["verified"] == true),
            });
        }
    }
    Ok(rows)
}

/// The minimum, median and maximum over the rounds: all that is printed of them.
fn figures(row: &Value) -> Vec<f64> {
    ["us_min", "us", "us_max"].iter().filter_map(|name| row[*name].as_f64()).collect()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn ours_is_compared_with_each_other_client_on_the_same_work() {
        let line = |client: &str, version: &str, size: u32, us: f64| {
            format!(
                r#"{{"row":"sync-rr","loop":null,"size":{size},"size_text":"{size} B","client":"{client}","package_version":{version},"us":{us},"us_min":{us},"us_max":{us},"verified":true}}"#
            )
        };
        let lines = [
            line("playfield", r#""0.1.0""#, 64, 2.0),
            line("websockets", r#""17.0""#, 64, 6.0),
            line("picows", r#""1.0""#, 64, 3.0),
            line("socket", "null", 64, 1.0),
            line("websockets", r#""17.0""#, 512, 6.0),
        ];
        let rows = rows(&lines.join("\n")).unwrap();
        let peers: Vec<_> = rows.iter().map(|row| row.peer.as_str()).collect();
        assert_eq!(peers, ["websockets", "picows"]);
        let line = rows.into_iter().next().unwrap().record().line();
        for expected in [r#""work":"Python: sync-rr, 64 B, playfield""#, r#""ratio":3.0"#] {
            assert!(line.contains(expected), "{line}");
        }
    }
}
