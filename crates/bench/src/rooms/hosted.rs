//! The server process, and its protocol with the driver: a line with the port, then a line of
//! statistics per request. The server exits when its input is closed, so none is left behind.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::SERVER_CORE;
use crate::clock::{delayed, process_cpu};
use crate::machine::proc_value;

/// A server in a separate process.
pub(super) struct Hosted {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) address: SocketAddr,
}

/// A server's statistics at one point in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stats {
    pub(super) at: Instant,
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Time in which it was runnable but something else ran.
    pub(super) delayed: Duration,
    /// Resident memory.
    pub(super) rss_kb: u64,
}

impl Hosted {
    /// Starts this program as a server and waits until it listens.
    pub(super) fn start(arguments: &[String]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut hosted = Self { child, input, output: BufReader::new(output), address };
        let [port] = hosted.line()?;
        hosted.address.set_port(u16::try_from(port).map_err(io::Error::other)?);
        Ok(hosted)
    }

    /// Requests the statistics.
    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        self.input.write_all(b"\n")?;
        let [cpu_ns, delayed_ns, rss_kb] = self.line()?;
        Ok(Stats {
            at: Instant::now(),
            cpu: Duration::from_nanos(cpu_ns),
            delayed: Duration::from_nanos(delayed_ns),
            rss_kb,
        })
    }

    fn line<const N: usize>(&mut self) -> io::Result<[u64; N]> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        numbers.try_into().map_err(|_| {
            io::Error::other(format!("the server process printed {line:?} instead of {N} numbers"))
        })
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's side: reports its port, then statistics until standard input is closed.
pub(super) fn report(port: u16) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{port}")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let rss_kb = proc_value("/proc/self/status", "VmRSS")
            .and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok())
            .unwrap_or(0);
        writeln!(out, "{} {} {rss_kb}", process_cpu().as_nanos(), delayed(SERVER_CORE).as_nanos())?;
        out.flush()?;
    }
    Ok(())
}
