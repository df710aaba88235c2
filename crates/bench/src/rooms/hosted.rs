//! The server process of a case.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::SERVER_CORE;
use crate::clock::{delayed, nanoseconds, process_cpu};
use crate::limits::resident;
use crate::server_process::{self, ServerProcess};

/// A server in a separate process.
pub(super) struct Hosted {
    process: ServerProcess,
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
    /// Resident memory, in bytes.
    pub(super) resident: u64,
}

impl Hosted {
    /// Starts this program as a server and waits until it listens.
    pub(super) fn start(arguments: &[String]) -> io::Result<Self> {
        let process = ServerProcess::start(arguments, None)?;
        Ok(Self { address: process.address(0)?, process })
    }

    /// Requests the statistics.
    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu_ns, delayed_ns, resident], _) = self.process.ask()?;
        Ok(Stats {
            at: Instant::now(),
            cpu: Duration::from_nanos(cpu_ns),
            delayed: Duration::from_nanos(delayed_ns),
            resident,
        })
    }
}

/// The server's side: reports its port, then statistics until standard input is closed.
pub(super) fn report(port: u16) -> io::Result<()> {
    server_process::report(port, || {
        vec![nanoseconds(process_cpu()), nanoseconds(delayed(SERVER_CORE)), resident()]
    })
}
