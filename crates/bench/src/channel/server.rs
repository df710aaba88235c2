//! The server process: a node with one channel, or the baseline.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use playfield::channel::{Access, ChannelRule};
use playfield_server::{Config, Server};
use socket2::{Domain, Protocol, Socket, Type};

use super::{HISTORY, Options, SERVER_CORE, Side, audience};
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::server_process::{ServerProcess, report};

/// The channel.
pub(super) const CHANNEL: &str = "bench";

const BACKLOG: i32 = 4_096;

/// Serves until standard input is closed.
pub(super) fn host(options: &Options, side: Side) -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let port = match side {
        Side::Bare => return host_bare(options),
        Side::Node => {
            let running = start_node(options)?;
            let port = running.local_addr().port();
            (port, running)
        }
    };
    report(port.0, || vec![nanoseconds(process_cpu())])
}

fn start_node(options: &Options) -> io::Result<playfield_server::Running> {
    let mut config =
        Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 1, ..Config::default() };
    for (name, value) in [
        ("connections_max", (options.subscribers + 1_000).to_string()),
        ("handshakes_max", "1000000".into()),
        ("messages_per_second_max", "0".into()),
        ("publishes_per_second_max", "1000000".into()),
        ("heartbeat_ms", "120000".into()),
    ] {
        config.set(name, &value).map_err(io::Error::other)?;
    }
    let hour = Duration::from_secs(3_600);
    let rule = ChannelRule::new(CHANNEL)
        .publish(Access::Anyone)
        .history(usize::try_from(HISTORY).unwrap_or(usize::MAX), hour)
        .history_bytes(64 << 20)
        .bytes();
    Server::new(config).channel(rule).start()
}

/// Every connection is welcomed. The last one publishes: a length of four bytes, and a frame, which
/// is sent to all others.
fn host_bare(options: &Options) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    let subscribers = options.subscribers;
    thread::spawn(move || {
        if let Err(error) = send_to_all(&listener, subscribers) {
            eprintln!("the baseline failed: {error}");
        }
    });
    report(port, || vec![nanoseconds(process_cpu())])
}

fn send_to_all(listener: &TcpListener, subscribers: usize) -> io::Result<()> {
    let mut streams = Vec::with_capacity(subscribers);
    let welcome = audience::bare_welcome();
    for _ in 0..subscribers {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(&welcome)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
    }
    let (mut publisher, _) = listener.accept()?;
    publisher.write_all(&welcome)?;
    let (mut length, mut frame) = ([0; 4], Vec::new());
    loop {
        publisher.read_exact(&mut length)?;
        frame.resize(u32::from_le_bytes(length) as usize, 0);
        publisher.read_exact(&mut frame)?;
        for stream in &mut streams {
            stream.write_all(&frame)?;
        }
    }
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
            "channel".to_owned(),
            format!("--role={}", side.name()),
            format!("--subscribers={}", options.subscribers),
        ];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { address: process.address(0)?, process })
    }

    /// CPU time since the start.
    pub(super) fn cpu(&mut self) -> io::Result<Duration> {
        let ([cpu], _) = self.process.ask()?;
        Ok(Duration::from_nanos(cpu))
    }
}
