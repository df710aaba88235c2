//! A build of the game.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Event;
use super::group::Group;
use super::lines::lines;

/// The package to build.
pub(super) struct Target {
    pub(super) folder: PathBuf,
    /// The program, if the package has several.
    pub(super) bin: Option<String>,
    pub(super) is_release: bool,
}

/// A running build.
pub(super) struct Build {
    group: Group,
    began: Instant,
}

/// The result of a build.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The programs, by name.
    pub(super) programs: Vec<(String, PathBuf)>,
}

impl Build {
    /// Starts it. When it has ended, it sends [`Event::Built`] with `number`.
    pub(super) fn start(
        target: &Target,
        number: u64,
        events: &SyncSender<Event>,
    ) -> io::Result<Self> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("build").arg("--message-format=json-render-diagnostics");
        match &target.bin {
            Some(bin) => command.args(["--bin", bin]),
            None => command.arg("--bins"),
        };
        if target.is_release {
            command.arg("--release");
        }
        command.current_dir(&target.folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let stdout = group.stdout().expect("standard output is a pipe");
        let events = events.clone();
        thread::spawn(move || {
            let made = read(BufReader::new(stdout));
            // If nobody hears it, `dev` has ended.
            let _ = events.send(Event::Built { number, made });
        });
        Ok(Self { group, began: Instant::now() })
    }

    /// Waits for its end. Returns how long it took, and whether it succeeded.
    pub(super) fn finish(mut self) -> io::Result<(Duration, bool)> {
        let status = self.group.wait()?;
        Ok((self.began.elapsed(), status.success()))
    }
}

/// Reads what cargo prints (<https://doc.rust-lang.org/cargo/reference/external-tools.html>).
fn read(printed: impl BufRead) -> Made {
    let mut made = Made::default();
    for line in lines(printed) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(path) = message["executable"].as_str() else { continue };
        let name = message["target"]["name"].as_str().unwrap_or_default();
        made.programs.push((name.to_owned(), path.into()));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn programs_are_read_from_what_cargo_prints() {
        let lines = concat!(
            "{\"reason\":\"compiler-artifact\",\"executable\":null,\"fresh\":true}\n",
            "a line that is not JSON\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"duel\"},\"fresh\":false,",
            "\"executable\":\"/x/duel\"}\n{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        let made = read(lines.as_bytes());
        assert_eq!(made.programs, [("duel".to_owned(), "/x/duel".into())]);
    }
}
