//! The server process: a service, rooms, or the baseline.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield_server::service::{Frame, NativeFrames, Peer, Result, Service};
use playfield_server::{Config, Server};

use super::{Class, Options, Rooms, SERVER_CORE, Transport, floor, room};
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::{raise_descriptors, resident};
use crate::server_process::{self, ServerProcess};
use crate::side::Side;

/// Where the service of class A is reached by WebSocket.
pub(super) const PATH: &str = "/echo";
/// How many players are in a shared room.
const SHARED: u32 = 100;

/// A protocol of a user's own: each frame is sent back.
struct Echo;

impl Service for Echo {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    #[inline]
    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(frame.body)?)
    }
}

/// Serves until standard input is closed.
pub(super) fn host(options: &Options, side: Side) -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    if side == Side::Bare {
        return floor::host(is_raw_websocket(options));
    }
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let mut config = Config { listen, shards: 1, ..Config::default() };
    for (name, value) in [
        ("connections_max", (options.connections + 1_000).to_string()),
        ("handshakes_max", "1000000".into()),
        ("messages_per_second_max", "0".into()),
        ("bytes_per_second_max", "0".into()),
        ("heartbeat_ms", "120000".into()),
        ("requests_unanswered_max", (options.window + 1_024).to_string()),
    ] {
        config.set(name, &value).map_err(io::Error::other)?;
    }
    let server = Server::new(config);
    let running = match options.class {
        Class::A if options.transport == Transport::WebSocket => {
            server.service_at_path(PATH, |_| Echo).start()?
        }
        Class::A => server.service(listen, |_| Echo).start()?,
        Class::B | Class::Room => {
            let capacity = if options.rooms == Rooms::Own { 1 } else { SHARED };
            server.room_type(room::halls(capacity)).start()?
        }
    };
    report(running.local_addr().port())
}

/// Whether messages of a WebSocket are sent back, whatever is in them.
fn is_raw_websocket(options: &Options) -> bool {
    (options.class, options.transport) == (Class::A, Transport::WebSocket)
}

/// Reports the port, then CPU time and memory on request.
pub(super) fn report(port: u16) -> io::Result<()> {
    server_process::report(port, || vec![nanoseconds(process_cpu()), resident()])
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) address: SocketAddr,
}

impl Hosted {
    pub(super) fn start(options: &Options, side: Side) -> io::Result<Self> {
        let arguments = [
            "bench".to_owned(),
            "echo".to_owned(),
            format!("--role={}", side.name()),
            format!("--class={}", options.class.name()),
            format!("--connections={}", options.connections),
            format!("--window={}", options.window),
            format!("--transport={}", options.transport.name()),
            format!("--rooms={}", options.rooms.name()),
        ];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { address: process.address(0)?, process })
    }

    /// Where clients connect.
    pub(super) fn url(&self, transport: Transport) -> String {
        let scheme = if transport == Transport::Tcp { "tcp" } else { "ws" };
        format!("{scheme}://{}", self.address)
    }

    /// CPU time since the start, and resident memory in bytes.
    pub(super) fn usage(&mut self) -> io::Result<(Duration, u64)> {
        let ([cpu, resident], _) = self.process.ask()?;
        Ok((Duration::from_nanos(cpu), resident))
    }
}
