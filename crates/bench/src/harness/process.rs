//! This program in other processes: servers that are asked for their usage, and cases that end with
//! a record.

use std::fmt::Display;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio, exit};
use std::str::FromStr;
use std::thread;

pub(crate) use playfield_measure::process::{Server, Talker, Usage};
use playfield_server::Config;
use serde_json::Value;

use super::allocations;
use super::machine::{SERVER_CORE, pin, raise_descriptors};

/// A server that a process of its own can be.
pub struct Role {
    /// Its name on the command line.
    pub name: &'static str,
    /// The level of its log.
    pub(crate) log: &'static str,
    /// Serves until standard input is closed.
    pub(crate) serve: fn(&mut Words) -> io::Result<()>,
}

impl Role {
    /// Runs this process as the server, by what the suite's process says.
    ///
    /// # Errors
    /// If the server can't run.
    pub fn run(&self, words: Vec<String>) -> io::Result<()> {
        raise_descriptors();
        (self.serve)(&mut Words(words.into_iter()))
    }

    /// Starts it with these words in a process of its own, and waits until it serves.
    pub(crate) fn start(&self, words: &[&dyn Display]) -> io::Result<Server> {
        let arguments = ["role", self.name].into_iter().map(str::to_owned);
        let words = words.iter().map(ToString::to_string);
        Server::start(&arguments.chain(words).collect::<Vec<_>>(), self.log)
    }
}

/// Words from one process to another.
pub(crate) struct Words(std::vec::IntoIter<String>);

impl Words {
    pub(crate) fn next<T: FromStr>(&mut self) -> io::Result<T> {
        let word = self.0.next().unwrap_or_default();
        word.parse().map_err(|_| io::Error::other(format!("{word:?} is not what a role expects")))
    }
}

/// The server's end: see [`playfield_measure::process::serve`].
pub(crate) fn serve(first: impl Display, more: impl FnMut() -> Vec<u64>) -> io::Result<()> {
    let heap = || allocations::so_far().map_or(0, |so_far| so_far.live_bytes);
    playfield_measure::process::serve(first, heap, more)
}

/// The configuration of a node on loopback with so many shards. One with a single shard is pinned
/// to the server's core, and so is all of this process.
pub(crate) fn node(shards: usize, settings: &[(&str, &dyn Display)]) -> io::Result<Config> {
    if shards == 1 {
        pin(SERVER_CORE)?;
    }
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let mut config = Config { listen, shards, ..Config::default() };
    for (name, value) in settings {
        config.set(name, &value.to_string()).map_err(io::Error::other)?;
    }
    Ok(config)
}

/// The same for this many busy clients that have one address.
pub(crate) fn node_for(connections: usize, shards: usize) -> io::Result<Config> {
    node(
        shards,
        &[
            ("limits.connections.total", &(connections + 1_000)),
            ("limits.handshakes.total", &10_000_000),
            ("limits.session.messages.per_second", &0),
            ("limits.session.bytes.per_second", &0),
            ("timeouts.heartbeat", &"2m"),
        ],
    )
}

/// The end of a case's process.
pub(crate) struct Finished {
    /// The record's line, as printed.
    pub(crate) line: String,
    /// The same record, parsed.
    pub(crate) record: Value,
    /// Says whether it exited successfully, so that everything it counted is verified.
    pub(crate) is_verified: bool,
}

/// Runs this program with the given arguments and waits for its record.
///
/// # Errors
/// The process can't be started, or exits without a record.
pub(crate) fn run(arguments: &[String]) -> io::Result<Finished> {
    let (text, is_verified) = printed(arguments, Stdio::inherit())?;
    let line = text.lines().last().unwrap_or_default().to_owned();
    let record = serde_json::from_str(&line).map_err(|_| {
        io::Error::other(format!("`{}` ended without a record", arguments.join(" ")))
    })?;
    Ok(Finished { line, record, is_verified })
}

/// Runs this program with the given arguments. Returns its standard output, and whether it
/// succeeded. Its standard error goes to `errors`.
///
/// # Errors
/// The process can't be started.
pub(crate) fn printed(arguments: &[String], errors: Stdio) -> io::Result<(String, bool)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()?;
    // Kept open until the child has exited: see `end_with_parent`.
    let input = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(input);
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}

/// Runs a program to its end. Returns what it prints.
///
/// # Errors
/// The process can't be started, or fails.
pub(crate) fn output(command: &mut Command) -> io::Result<String> {
    let output = command.stderr(Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(format!("{command:?}: {}", output.status))),
    }
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
