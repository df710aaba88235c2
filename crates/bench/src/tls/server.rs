//! The server process: a node on one core with one shard, and the baseline beside it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use playfield_server::{Config, Server};

use super::{PAGE, SERVER_CORE, bare};
use crate::clock::{pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::machine::proc_value;

/// Serves until standard input is closed: prints two ports, then a line of statistics for each line
/// that it reads.
pub(super) fn host() -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let config = Config { listen, shards: 1, tls_self_signed: true, ..Config::default() };
    let running = Server::new(config).page("/", "text/plain", PAGE).start()?;
    let bare = bare::start()?;
    let mut out = io::stdout().lock();
    writeln!(out, "{} {}", running.local_addr().port(), bare.port())?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let rss_kb = proc_value("/proc/self/status", "VmRSS")
            .and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok())
            .unwrap_or(0);
        writeln!(out, "{} {rss_kb}", process_cpu().as_nanos())?;
        out.flush()?;
    }
    Ok(())
}

/// The server in its process.
pub(super) struct Hosted {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) node: SocketAddr,
    pub(super) bare: SocketAddr,
}

/// What the server says of itself.
#[derive(Clone, Copy)]
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Resident memory.
    pub(super) rss_kb: u64,
}

impl Hosted {
    /// Starts this program as the server.
    pub(super) fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "tls", "--role", "server"])
            .env("PLAYFIELD_LOG", "error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let output = BufReader::new(output);
        let mut hosted = Self { child, input, output, node: nowhere, bare: nowhere };
        let [node, bare] = hosted.line()?;
        hosted.node.set_port(node as u16);
        hosted.bare.set_port(bare as u16);
        Ok(hosted)
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        self.input.write_all(b"\n")?;
        let [cpu, rss_kb] = self.line()?;
        Ok(Stats { cpu: Duration::from_nanos(cpu), rss_kb })
    }

    fn line(&mut self) -> io::Result<[u64; 2]> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        numbers
            .try_into()
            .map_err(|_| io::Error::other(format!("the server process printed {line:?}")))
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
