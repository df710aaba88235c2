//! The server process: a node on one core with one shard, and the baseline beside it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use playfield_derive::State;
use playfield_room::{Context, Message, On, Result, Room, RoomType, room};
use playfield_server::http::Request;
use playfield_server::{Config, NodeHandle, Server};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber};

use super::{SERVER_CORE, TICK_HZ, bare};
use crate::clock::{delayed, pin, process_cpu};
use crate::limits::raise_descriptors;

/// The page beside the room.
pub(super) const PAGE: &str = "a page of the usual length of a reply";

/// When ticks began, since the last report.
static TICKS: Mutex<Vec<(u64, Instant)>> = Mutex::new(Vec::new());

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
        let mut ticks = TICKS.lock().unwrap_or_else(PoisonError::into_inner);
        ticks.push((cx.tick(), Instant::now()));
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

/// Serves until standard input is closed: prints two ports, then a line of statistics for each line
/// that it reads.
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
    let mut out = io::stdout().lock();
    writeln!(out, "{} {}", running.local_addr().port(), bare.port())?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let cpu = process_cpu().as_nanos();
        write!(out, "{cpu} {}", delayed(SERVER_CORE).as_nanos())?;
        for late in lateness() {
            write!(out, " {}", late.as_micros())?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

/// How late each tick was since the last call, beside the one that was least late.
fn lateness() -> Vec<Duration> {
    let ticks = std::mem::take(&mut *TICKS.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(&(first, began)) = ticks.first() else { return Vec::new() };
    let period = Duration::from_secs(1) / TICK_HZ;
    let late = |(number, at): (u64, Instant)| {
        let due = period.as_nanos() as i128 * i128::from(number - first);
        at.saturating_duration_since(began).as_nanos() as i128 - due
    };
    let all: Vec<i128> = ticks.into_iter().map(late).collect();
    let least = all.iter().min().copied().unwrap_or_default();
    all.into_iter().map(|late| Duration::from_nanos((late - least) as u64)).collect()
}

/// The server in its process.
pub(super) struct Hosted {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) node: SocketAddr,
    pub(super) bare: SocketAddr,
    /// The id of the room.
    pub(super) room: String,
    /// Keeps the room's only player.
    _player: Option<TcpStream>,
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
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "http", "--role", "server"])
            .env("PLAYFIELD_LOG", "error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut hosted = Self {
            child,
            input,
            output: BufReader::new(output),
            node: nowhere,
            bare: nowhere,
            room: String::new(),
            _player: None,
        };
        let [node, bare] = hosted.line()?[..] else {
            return Err(io::Error::other("the server process printed no two ports"));
        };
        hosted.node.set_port(node as u16);
        hosted.bare.set_port(bare as u16);
        let (player, room) = create_room(hosted.node)?;
        (hosted._player, hosted.room) = (Some(player), room);
        Ok(hosted)
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let [cpu, delayed, lateness_us @ ..] = &line[..] else {
            return Err(io::Error::other("the server process printed no statistics"));
        };
        Ok(Stats {
            cpu: Duration::from_nanos(*cpu),
            delayed: Duration::from_nanos(*delayed),
            lateness_us: lateness_us.to_vec(),
        })
    }

    fn line(&mut self) -> io::Result<Vec<u64>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.split_whitespace().filter_map(|number| number.parse().ok()).collect())
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Joins a new room; the room's id.
fn create_room(node: SocketAddr) -> io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(node)?;
    let mut out = PREAMBLE.to_vec();
    let request = RequestNumber(1);
    let join = ClientMessage::JoinOrCreate {
        request,
        room_type: "counter".into(),
        key: None,
        options: &[],
    };
    for message in [ClientMessage::Hello(Hello::new(Format::Packed)), join] {
        let mut body = Vec::new();
        message.encode(Format::Packed, &mut body);
        write_frame(&mut out, &body);
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
            if let ServerMessage::Joined { id, .. } = message.map_err(io::Error::other)? {
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
