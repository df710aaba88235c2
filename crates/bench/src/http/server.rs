//! The server process: a node on one core with one shard, and the baseline beside it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Message, On, Result, Room, RoomType, room};
use playfield_server::http::Request;
use playfield_server::{Config, NodeHandle, Server};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber};

use super::{SERVER_CORE, TICK_HZ, bare};
use crate::clock::{delayed, nanoseconds, pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::server_process::{ServerProcess, report};
use crate::ticks::AllTicks;

/// The page beside the room.
pub(super) const PAGE: &str = "a page of the usual length of a reply";

/// The ticks of the room.
static TICKS: AllTicks = AllTicks::new(TICK_HZ);

/// Counts.
#[derive(State, Default)]
struct Counter {
    total: u64,
}

/// Adds to the count, and asks for the sum.
#[derive(Message)]
#[reply(u64)]
struct Add {
    count: u64,
}

#[room(internal(Add), tick_hz = 60, empty_ms = 600_000)]
impl Room for Counter {
    fn tick(&mut self, cx: &mut Context<Self>) {
        TICKS.note(cx.room_id(), cx.tick());
    }
}

impl On<Add> for Counter {
    fn on(&mut self, add: Add, _: &mut Context<Self>) -> Result<u64> {
        self.total += add.count;
        Ok(self.total)
    }
}

async fn add(request: Request, node: NodeHandle) -> Result<String> {
    let count = request.text().and_then(|text| text.parse().ok()).ok_or("send a number")?;
    let room = request.param("id").unwrap_or_default();
    Ok(node.ask(room, &Add { count }).await?.to_string())
}

/// Serves until standard input is closed: reports two ports, and then statistics.
pub(super) fn host() -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let config = Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 1, ..Config::default() };
    // All clients have one address.
    let config = Config { http_requests_per_address_max: config.http_requests_max, ..config };
    let running = Server::new(config)
        .room_type(RoomType::of::<Counter>("counter"))
        .page("/", "text/plain; charset=utf-8", PAGE)
        .route("POST", "/rooms/{id}/add", add)
        .start()?;
    let bare = bare::start()?;
    report(format!("{} {}", running.local_addr().port(), bare.port()), || {
        let times = [process_cpu(), delayed(SERVER_CORE)].map(nanoseconds);
        [&times[..], &TICKS.report_ns()].concat()
    })
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) node: SocketAddr,
    pub(super) bare: SocketAddr,
    /// The id of the room.
    pub(super) room: String,
    /// Keeps the room's only player.
    _player: TcpStream,
}

/// What the server says of itself.
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Time in which it was runnable but something else ran.
    pub(super) delayed: Duration,
    /// How late each tick was since the last call.
    pub(super) lateness_us: Vec<u64>,
}

impl Hosted {
    /// Starts this program as the server, and creates the room.
    pub(super) fn start() -> io::Result<Self> {
        let arguments = ["bench", "http", "--role", "server"];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        let (node, bare) = (process.address(0)?, process.address(1)?);
        let (player, room) = create_room(node)?;
        Ok(Self { process, node, bare, room, _player: player })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu, delayed], lateness_ns) = self.process.ask()?;
        let lateness_us = lateness_ns.into_iter().map(|ns| ns / 1_000).collect();
        let (cpu, delayed) = (Duration::from_nanos(cpu), Duration::from_nanos(delayed));
        Ok(Stats { cpu, delayed, lateness_us })
    }
}

/// Joins a new room; the room's id.
fn create_room(node: SocketAddr) -> io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(node)?;
    let mut out = PREAMBLE.to_vec();
    let request = RequestNumber(1);
    let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request,
        room_type: "counter".into(),
        key: None,
        options: &[],
    });
    for message in [ClientMessage::Hello(Hello::new(Format::Packed)), join] {
        write_frame_with(&mut out, |out| message.encode(Format::Packed, out));
    }
    stream.write_all(&out)?;
    let framing = Framing { message_bytes_max: 1 << 20 };
    let mut input = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes)?;
        input.extend_from_slice(&bytes[..count]);
        while let Some(frame) = framing.decode(&input).map_err(io::Error::other)? {
            let message = ServerMessage::decode(Format::Packed, frame.body);
            if let ServerMessage::Joined(server::Joined { id, .. }) =
                message.map_err(io::Error::other)?
            {
                let id = id.into_owned();
                return Ok((stream, id));
            }
            let consumed = frame.consumed;
            input.drain(..consumed);
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
