//! This program in other processes: servers that are asked for their usage, and cases that end with
//! a record.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio, exit};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use playfield_server::Config;
use serde_json::Value;

use super::allocations;
use super::machine::{
    SERVER_CORE, delayed, nanoseconds, pin, process_cpu, raise_descriptors, resident,
};

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
}

/// Words from one process to another.
pub(crate) struct Words(std::vec::IntoIter<String>);

impl Words {
    pub(crate) fn next<T: FromStr>(&mut self) -> io::Result<T> {
        let word = self.0.next().unwrap_or_default();
        word.parse().map_err(|_| io::Error::other(format!("{word:?} is not what a role expects")))
    }
}

/// A server in a process of its own. Dropping it ends the process.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    first: Vec<String>,
    /// The address of the first port that it named.
    pub(crate) address: SocketAddr,
}

/// Resources that a server has used since its start.
pub(crate) struct Usage {
    pub(crate) at: Instant,
    pub(crate) cpu: Duration,
    /// Time in which it was runnable but something else ran.
    pub(crate) delayed: Duration,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
    /// Allocated memory in bytes, if that is counted.
    pub(crate) heap: Option<u64>,
    /// Numbers of the server's own.
    pub(crate) more: Vec<u64>,
}

impl Server {
    /// Starts a role with these words, and waits until it serves.
    pub(crate) fn start(role: &Role, words: &[&dyn Display]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["role", role.name])
            .args(words.iter().map(ToString::to_string))
            .env("PLAYFIELD_LOG", role.log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let (output, address) = (BufReader::new(output), (Ipv4Addr::LOCALHOST, 0).into());
        let mut server = Self { child, input, output, first: Vec::new(), address };
        server.first = server.line()?.split_whitespace().map(str::to_owned).collect();
        server.address = server.address(0)?;
        Ok(server)
    }

    /// A word of the first line, counted from 0.
    pub(crate) fn word(&self, at: usize) -> io::Result<&str> {
        let printed = || io::Error::other(format!("the server process printed {:?}", self.first));
        self.first.get(at).map(String::as_str).ok_or_else(printed)
    }

    /// The loopback address with the port that is a word of the first line.
    pub(crate) fn address(&self, at: usize) -> io::Result<SocketAddr> {
        let port = self.word(at)?.parse::<u16>().map_err(io::Error::other)?;
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }

    pub(crate) fn usage(&mut self) -> io::Result<Usage> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let Some(([cpu, delayed, resident, heap], more)) = numbers.split_first_chunk() else {
            return Err(io::Error::other(format!("the server process printed {line:?}")));
        };
        Ok(Usage {
            at: Instant::now(),
            cpu: Duration::from_nanos(*cpu),
            delayed: Duration::from_nanos(*delayed),
            resident: *resident,
            heap: (*heap > 0).then_some(*heap),
            more: more.to_vec(),
        })
    }

    /// How the process ended, if it has: it should serve for as long as this lives.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// CPU time since the start.
    pub(crate) fn cpu(&mut self) -> io::Result<Duration> {
        Ok(self.usage()?.cpu)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's end: prints a line of ports and other words, then its usage and its own numbers for
/// each line that it reads, until standard input is closed.
pub(crate) fn serve(first: impl Display, mut more: impl FnMut() -> Vec<u64>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{first}")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let [cpu, delayed] = [process_cpu(), delayed(SERVER_CORE)].map(nanoseconds);
        let heap = allocations::so_far().map_or(0, |so_far| so_far.live_bytes);
        let numbers = [cpu, delayed, resident(), heap].into_iter().chain(more());
        let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
        writeln!(out, "{}", numbers.join(" "))?;
        out.flush()?;
    }
    Ok(())
}

/// The configuration of a node on loopback with so many shards. One with a single shard is pinned to
/// the server's core, and so is all of this process.
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
            ("connections_max", &(connections + 1_000)),
            ("handshakes_max", &10_000_000),
            ("messages_per_second_max", &0),
            ("bytes_per_second_max", &0),
            ("heartbeat_ms", &120_000),
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
        let (arguments, status) = (arguments.join(" "), output.status);
        io::Error::other(format!("`{arguments}` ended with {status} and no record"))
    })?;
    Ok(Finished { line, record, is_verified: output.status.success() })
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
