//! The game's server while it runs.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;

use super::Event;
use super::group::Group;
use super::lines::lines;

/// The setting of how long a node waits for connections that are closing, and its value here: the
/// page is to reach the next server soon.
const CLOSE_TIMEOUT: &str = "PLAYFIELD_TIMEOUTS_CLOSE";
const SHORT: &str = "100ms";

/// The setting of where a node listens.
const LISTEN: &str = "PLAYFIELD_LISTEN";

/// The settings to start a server with.
pub(super) struct How {
    pub(super) folder: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// The folder that its pages come from.
    pub(super) pages: Option<PathBuf>,
    /// The address of its console.
    pub(super) console: Option<String>,
    /// The address of the last server.
    pub(super) listens: Option<String>,
}

impl How {
    /// The arguments; in place of port 0, the port that the last server had.
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = self.arguments.clone();
        let Some(listens) = &self.listens else { return arguments };
        let mut is_value = false;
        for argument in &mut arguments {
            let text = argument.to_string_lossy();
            if is_value && text.ends_with(":0") {
                *argument = listens.into();
            } else if text.starts_with("--listen=") && text.ends_with(":0") {
                *argument = format!("--listen={listens}").into();
            }
            is_value = *argument == *"--listen";
        }
        arguments
    }
}

/// A running server: its process, and those that have replaced it since.
pub(super) struct Node {
    group: Group,
    /// The number of this server among those that were started.
    pub(super) number: u64,
    /// The process that serves.
    pub(super) pid: u32,
}

/// The outcome of an order to a server to be replaced by a new build.
#[derive(Debug)]
pub(super) enum Outcome {
    /// This process has taken over the rooms and sessions.
    Replaced(u32),
    /// The server goes on, for this reason.
    Refused(String),
    /// The server can't be replaced, or has ended.
    Unreached,
}

impl Node {
    /// Starts it. It sends [`Event::Says`] for each line that it prints, and [`Event::Ended`], with
    /// `number`.
    pub(super) fn start(
        program: &Path,
        how: &How,
        number: u64,
        events: &SyncSender<Event>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(how.arguments()).current_dir(&how.folder);
        if std::env::var_os(LISTEN).is_some_and(|listen| listen.to_string_lossy().ends_with(":0"))
            && let Some(listens) = &how.listens
        {
            command.env(LISTEN, listens);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // A browser keeps connections that it does not use, for whose end a node waits at its own.
        // Here there is nothing left for them.
        if std::env::var_os(CLOSE_TIMEOUT).is_none() {
            command.env(CLOSE_TIMEOUT, SHORT);
        }
        if let Some(pages) = &how.pages {
            command.env("PLAYFIELD_PAGES", pages);
        }
        if let Some(console) = &how.console {
            command.env("PLAYFIELD_CONSOLE", console);
        }
        let mut group = Group::start(&mut command)?;
        let stdout = group.stdout().expect("standard output is a pipe");
        let events = events.clone();
        thread::spawn(move || {
            for line in lines(BufReader::new(stdout)) {
                if events.send(Event::Says { number, line }).is_err() {
                    return;
                }
            }
            let _ = events.send(Event::Ended { number });
        });
        let pid = group.id();
        Ok(Self { group, number, pid })
    }

    /// Has it replaced by a new process of this program. [`Event::Replaced`] with `order` follows.
    pub(super) fn replace(&self, program: &Path, order: u64, events: &SyncSender<Event>) {
        let (pid, program, events) = (self.pid, program.to_owned(), events.clone());
        thread::spawn(move || {
            let outcome = replace(pid, &program);
            let _ = events.send(Event::Replaced { order, outcome });
        });
    }

    /// Asks it to end.
    pub(super) fn stop(&mut self) {
        self.group.stop();
    }
}

#[cfg(target_os = "linux")]
fn replace(pid: u32, program: &Path) -> Outcome {
    use playfield_cli::upgrade::{Answer, replace};

    match replace(pid, program) {
        Ok(Answer::Done { pid, .. }) => Outcome::Replaced(pid),
        Ok(Answer::Failed { text }) => Outcome::Refused(text),
        Err(_) => Outcome::Unreached,
    }
}

/// Elsewhere no process can take over from another.
#[cfg(not(target_os = "linux"))]
fn replace(_: u32, _: &Path) -> Outcome {
    Outcome::Unreached
}
