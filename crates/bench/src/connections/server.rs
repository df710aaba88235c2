//! The server process: a node without rooms, or the baseline.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield_server::{Config, Server};

use super::{Options, SERVER_CORE, Side, bare, tables};
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::{raise_descriptors, resident};
use crate::server_process::{self, ServerProcess};

/// Serves until standard input is closed.
pub(super) fn host(options: &Options, side: Side) -> io::Result<()> {
    match side {
        Side::Bare => bare::host(options),
        Side::Node => host_node(options),
    }
}

fn host_node(options: &Options) -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let shards = tables::needed(options.count);
    let mut config =
        Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards, ..Config::default() };
    let set = |config: &mut Config, name: &str, value: String| {
        config.set(name, &value).map_err(io::Error::other)
    };
    set(&mut config, "connections_max", (options.count + 1000).to_string())?;
    set(&mut config, "handshakes_max", "10000000".into())?;
    set(&mut config, "messages_per_second_max", "0".into())?;
    // Clients heartbeat by themselves: the node asks only who is late.
    let period_ms = options.heartbeat.as_millis().max(15_000);
    set(&mut config, "heartbeat_ms", (4 * period_ms).to_string())?;
    if shards > 1 {
        set(&mut config, "descriptors", "per_shard".into())?;
    }
    let running = Server::new(config).start()?;
    report(running.local_addr().port(), || {
        let total = running.stats().total();
        [total.connections, total.sessions]
    })
}

/// Reports the port, then CPU time, memory and these numbers on request.
pub(super) fn report(port: u16, numbers: impl Fn() -> [u64; 2]) -> io::Result<()> {
    server_process::report(port, || {
        [vec![nanoseconds(process_cpu()), resident()], numbers().to_vec()].concat()
    })
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) address: SocketAddr,
}

/// What the server says of itself.
#[derive(Clone, Copy)]
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Resident memory, in bytes.
    pub(super) resident: u64,
    pub(super) connections: u64,
    pub(super) sessions: u64,
}

impl Hosted {
    pub(super) fn start(options: &Options, side: Side) -> io::Result<Self> {
        let arguments = [
            "bench".to_owned(),
            "connections".to_owned(),
            format!("--role={}", side.name()),
            format!("--count={}", options.count),
            format!("--transport={}", options.transport.name()),
            format!("--heartbeat={}", options.heartbeat.as_secs()),
            format!("--resumable={}", if options.is_resumable { "on" } else { "off" }),
        ];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { address: process.address(0)?, process })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu, resident, connections, sessions], _) = self.process.ask()?;
        Ok(Stats { cpu: Duration::from_nanos(cpu), resident, connections, sessions })
    }
}
