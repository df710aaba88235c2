//! The server process: a node on one core with one shard, and the baseline beside it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield_server::{Config, Server};

use super::{PAGE, SERVER_CORE, bare};
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::{raise_descriptors, resident};
use crate::server_process::{ServerProcess, report};

/// Serves until standard input is closed: reports two ports, and then statistics.
pub(super) fn host() -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let config = Config { listen, shards: 1, tls_self_signed: true, ..Config::default() };
    let running = Server::new(config).page("/", "text/plain", PAGE).start()?;
    let bare = bare::start()?;
    let ports = format!("{} {}", running.local_addr().port(), bare.port());
    report(ports, || vec![nanoseconds(process_cpu()), resident()])
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) node: SocketAddr,
    pub(super) bare: SocketAddr,
}

/// What the server says of itself.
#[derive(Clone, Copy)]
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Resident memory, in bytes.
    pub(super) resident: u64,
}

impl Hosted {
    /// Starts this program as the server.
    pub(super) fn start() -> io::Result<Self> {
        let arguments = ["bench", "tls", "--role", "server"];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { node: process.address(0)?, bare: process.address(1)?, process })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu, resident], _) = self.process.ask()?;
        Ok(Stats { cpu: Duration::from_nanos(cpu), resident })
    }
}
