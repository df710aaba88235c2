//! The server process: nodes on one core, each with one shard.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield::{Config, Server};
use playfield_derive::State;
use playfield_room::{Context, Player, Result, Room, room};

use super::SERVER_CORE;
use super::algorithm::ALGORITHMS;
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::server_process::{ServerProcess, report};

/// The room type that says who a client is.
pub(super) const DOOR: &str = "door";

/// A room that refuses everyone; the error's text is the user of the client.
#[derive(State, Default)]
struct Door {}

#[room()]
impl Room for Door {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        Err(player.user().unwrap_or("a guest").to_owned().into())
    }
}

/// Serves until standard input is closed: reports a port for each algorithm and one for guests, and
/// then the processor time.
pub(super) fn host() -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let start = |server: Server| {
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        server.room::<Door>(DOOR).start(Config { listen, shards: 1, ..Config::default() })
    };
    let mut nodes = Vec::new();
    for algorithm in ALGORITHMS {
        nodes.push(start(Server::new().jwt(algorithm.jwt()?))?);
    }
    nodes.push(start(Server::new())?);
    let ports: Vec<_> = nodes.iter().map(|node| node.local_addr().port().to_string()).collect();
    report(ports.join(" "), || vec![nanoseconds(process_cpu())])
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    /// The node of each algorithm.
    pub(super) nodes: [SocketAddr; ALGORITHMS.len()],
    /// The node that asks for no token.
    pub(super) guests: SocketAddr,
}

impl Hosted {
    /// Starts this program as the server.
    pub(super) fn start() -> io::Result<Self> {
        let process = ServerProcess::start(&["bench", "jwt", "--role", "server"], Some("error"))?;
        let guests = process.address(ALGORITHMS.len())?;
        let mut nodes = [guests; ALGORITHMS.len()];
        for (place, node) in nodes.iter_mut().enumerate() {
            *node = process.address(place)?;
        }
        Ok(Self { process, nodes, guests })
    }

    /// Its processor time since the start.
    pub(super) fn cpu(&mut self) -> io::Result<Duration> {
        let ([cpu], _) = self.process.ask()?;
        Ok(Duration::from_nanos(cpu))
    }
}
