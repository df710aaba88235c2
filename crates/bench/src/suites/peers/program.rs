//! A program of another project's code, which measures itself.

use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::process::Talker;

/// A running program. Its first line has the versions of what it measures, by name, as JSON. For
/// the name of a work in a line it does the work, and prints the figure of that round, as
/// `{"value": 1.5, "verified": true}`.
pub(super) struct Program {
    process: Talker,
    versions: Value,
}

impl Program {
    /// Starts a program; one in JavaScript by Node.js.
    pub(super) fn start(path: &Path) -> io::Result<Self> {
        let is_script = path.extension().is_some_and(|extension| extension == "mjs");
        let mut command = if is_script { Command::new("node") } else { Command::new(path) };
        if is_script {
            command.arg(path);
        }
        let mut process = Talker::start(&mut command)?;
        let versions = parse(path, &process.line()?)?;
        Ok(Self { process, versions })
    }

    /// The version of something that it measures.
    pub(super) fn version(&self, of: &str) -> String {
        self.versions[of].as_str().unwrap_or("unknown").to_owned()
    }

    /// Has it do a work once more.
    pub(super) fn round(&mut self, work: &str) -> io::Result<Value> {
        let line = self.process.ask(work)?;
        let round = parse(work.as_ref(), &line)?;
        match round["value"].as_f64() {
            Some(value) if value > 0.0 => Ok(round),
            _ => Err(io::Error::other(format!("{work}: no figure, but {}", line.trim()))),
        }
    }
}

fn parse(of: &Path, line: &str) -> io::Result<Value> {
    serde_json::from_str(line).map_err(|_| {
        let (of, line) = (of.display(), line.trim());
        io::Error::other(format!("{of}: printed {line:?} instead of JSON"))
    })
}
