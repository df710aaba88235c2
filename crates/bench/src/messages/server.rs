//! The server process: a node whose rooms answer, or the baseline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};
use playfield_state::Bytes;
use socket2::{Domain, Protocol, Socket, Type};

use super::clients::{ECHOED, answers, requests};
use super::{Case, Options, SERVER_CORE, Side};
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::server_process::{ServerProcess, report};

const LISTENER: Token = Token(usize::MAX);
const BACKLOG: i32 = 4_096;

/// A message of a client, which is answered with how it begins.
#[derive(Message)]
#[reply(Bytes)]
struct Report {
    data: Bytes,
}

/// Where clients report.
#[derive(State, Default)]
struct Desk {
    nothing: u8,
}

#[room(messages(Report), capacity = 100, empty_ms = 600_000)]
impl Room for Desk {}

impl Handle<Report> for Desk {
    fn handle(&mut self, report: Report, _: &Player, _: &mut Context<Self>) -> Result<Bytes> {
        Ok(Bytes::from(report.data[..ECHOED].to_vec()))
    }
}

/// Serves until standard input is closed.
pub(super) fn host(options: &Options, case: Case, side: Side) -> io::Result<()> {
    if options.shards.is_none() {
        pin(SERVER_CORE)?;
    }
    raise_descriptors();
    if side == Side::Bare {
        return host_bare(options, case);
    }
    let (listen, shards) = ((Ipv4Addr::LOCALHOST, 0).into(), options.shards.unwrap_or(1));
    let mut config = Config { listen, shards, ..Config::default() };
    for (name, value) in [
        ("connections_max", (options.count + 1_000).to_string()),
        ("handshakes_max", "1000000".into()),
        ("messages_per_second_max", "0".into()),
        ("bytes_per_second_max", "0".into()),
        ("heartbeat_ms", "120000".into()),
    ] {
        config.set(name, &value).map_err(io::Error::other)?;
    }
    let running = Server::new(config).room_type(RoomType::of::<Desk>("desk")).start()?;
    report(running.local_addr().port(), || vec![nanoseconds(process_cpu())])
}

fn host_bare(options: &Options, case: Case) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into());
    let port = listener.local_addr()?.port();
    let dialogue = options.dialogue();
    let request = requests(dialogue, case).len() / case.window;
    // As many as are written at once, from any of them on.
    let twice = answers(dialogue, case).repeat(2);
    thread::spawn(move || {
        if let Err(error) = answer(listener, request, &twice, case.window) {
            eprintln!("the baseline failed: {error}");
        }
    });
    report(port, || vec![nanoseconds(process_cpu())])
}

fn answer(
    mut listener: TcpListener,
    request: usize,
    twice: &[u8],
    window: usize,
) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut streams: Vec<(TcpStream, usize)> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let one = twice.len() / 2 / window;
    loop {
        match poll.poll(&mut events, Some(Duration::from_secs(1))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let token = Token(streams.len());
                    poll.registry().register(&mut stream, token, Interest::READABLE)?;
                    streams.push((stream, 0));
                }
                continue;
            }
            let (stream, read) = &mut streams[event.token().0];
            loop {
                let count = match stream.read(&mut buffer) {
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => 0,
                };
                let answered = *read / request;
                *read += count;
                let mut due = *read / request - answered;
                let mut at = answered % window;
                while due > 0 {
                    let some = due.min(window);
                    stream.write_all(&twice[at * one..(at + some) * one])?;
                    due -= some;
                    at = (at + some) % window;
                }
                if count < buffer.len() {
                    break;
                }
            }
        }
    }
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) address: SocketAddr,
}

impl Hosted {
    pub(super) fn start(options: &Options, case: Case, side: Side) -> io::Result<Self> {
        let mut arguments = vec![
            "bench".to_owned(),
            "messages".to_owned(),
            format!("--role={}", side.name()),
            format!("--count={}", options.count),
            format!("--transport={}", options.transport.name()),
            format!("--bytes={}", case.bytes),
            format!("--window={}", case.window),
        ];
        arguments.extend(options.shards.map(|shards| format!("--shards={shards}")));
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { address: process.address(0)?, process })
    }

    /// CPU time since the start.
    pub(super) fn cpu(&mut self) -> io::Result<Duration> {
        let ([cpu], _) = self.process.ask()?;
        Ok(Duration::from_nanos(cpu))
    }
}
