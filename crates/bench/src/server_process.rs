//! A server in a process of its own, and what it and the driver say to each other: a first line,
//! then a line of numbers for each line that the driver writes. The server exits when its input is
//! closed, so none is left behind.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The driver's end of a server process. Dropping it ends the process.
pub(crate) struct ServerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    first: Vec<String>,
}

impl ServerProcess {
    /// Starts this program with these arguments, and waits for its first line. `log` replaces the
    /// level of its log.
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: &[A], log: Option<&str>) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .envs(log.map(|level| ("PLAYFIELD_LOG", level)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let output = BufReader::new(output);
        let mut process = Self { child, input, output, first: Vec::new() };
        process.first = process.line()?.split_whitespace().map(str::to_owned).collect();
        Ok(process)
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

    /// Requests a line of numbers: `N`, and those that follow them.
    pub(crate) fn ask<const N: usize>(&mut self) -> io::Result<([u64; N], Vec<u64>)> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let Some((first, rest)) = numbers.split_first_chunk() else {
            let text = format!("the server process printed {line:?} instead of {N} numbers");
            return Err(io::Error::other(text));
        };
        Ok((*first, rest.to_vec()))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's end: prints the first line, then numbers on request, until standard input is
/// closed.
pub(crate) fn report(first: impl Display, mut numbers: impl FnMut() -> Vec<u64>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{first}")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let numbers: Vec<_> = numbers().iter().map(u64::to_string).collect();
        writeln!(out, "{}", numbers.join(" "))?;
        out.flush()?;
    }
    Ok(())
}
