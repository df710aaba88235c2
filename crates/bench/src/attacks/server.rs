//! The server process: a node with one shard on one core, a room that is watched, and rooms to
//! attack.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};
use playfield_state::Map;

use super::SERVER_CORE;
use crate::clock::{Beat, pin, process_cpu};
use crate::limits::{raise_descriptors, resident};

/// How many entries the large room has, and how long each is.
const FAT_ENTRIES: u32 = 1000;
const FAT_ENTRY_BYTES: usize = 1000;
/// How long the long reply is.
const REPLY_BYTES: usize = 256 * 1024;
/// How many rooms there are to list.
const LISTED: usize = 200;

/// How late the watched room ticked, in microseconds, since the last report.
static LATE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Counts its ticks, which its player sees.
#[derive(State, Default)]
struct Watched {
    ticks: u64,
    #[sync(skip)]
    beat: Beat,
}

#[room(tick_hz = 20, sync_hz = 20)]
impl Room for Watched {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
        let late = self.beat.late(cx.tick(), 20);
        LATE.lock().unwrap_or_else(PoisonError::into_inner).push(late.as_micros() as u64);
    }
}

/// What attackers create.
#[derive(State, Default)]
struct Made {
    ticks: u64,
}

#[room(tick_hz = 20, sync_hz = 20)]
impl Room for Made {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
    }
}

/// Asks for a long reply.
#[derive(Message)]
#[reply(String)]
struct Long;

/// A room with a large state.
#[derive(State, Default)]
struct Fat {
    texts: Map<u32, String>,
}

#[room(messages(Long), empty_ms = 600_000, capacity = 10_000)]
impl Room for Fat {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        let mut fat = Self::default();
        for entry in 0..FAT_ENTRIES {
            fat.texts.insert(entry, "x".repeat(FAT_ENTRY_BYTES));
        }
        Ok(fat)
    }
}

impl Handle<Long> for Fat {
    fn handle(&mut self, _: Long, _: &Player, _: &mut Context<Self>) -> Result<String> {
        Ok("x".repeat(REPLY_BYTES))
    }
}

/// A room in the list.
#[derive(State, Default)]
struct Listed {
    nothing: u8,
}

#[room(empty_ms = 600_000)]
impl Room for Listed {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        for number in 0..8 {
            cx.set_metadata(&format!("key{number}"), "a value of the usual length")?;
        }
        Ok(Self { nothing: 1 })
    }
}

/// Serves until standard input is closed: prints its port and the id of the large room, then a line
/// of statistics for each line that it reads.
pub(super) fn host() -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    let mut config =
        Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 1, ..Config::default() };
    // Strangers come from this machine, here.
    config.set("trusted_addresses", "").map_err(io::Error::other)?;
    let running = Server::new(config)
        .room_type(RoomType::of::<Watched>("watched"))
        .room_type(RoomType::of::<Made>("made"))
        .room_type(RoomType::of::<Fat>("fat"))
        .room_type(RoomType::of::<Listed>("listed"))
        .start()?;
    let node = running.handle();
    let fat = node.create_room::<Fat>(&()).wait().map_err(io::Error::other)?;
    for _ in 0..LISTED {
        node.create_room::<Listed>(&()).wait().map_err(io::Error::other)?;
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{} {fat}", running.local_addr().port())?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        write!(out, "{} {}", process_cpu().as_nanos(), resident() / 1_000_000)?;
        let late = std::mem::take(&mut *LATE.lock().unwrap_or_else(PoisonError::into_inner));
        for late in late {
            write!(out, " {late}")?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

/// The server in its process.
pub(super) struct Hosted {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) node: SocketAddr,
    /// The id of the large room.
    pub(super) fat: String,
}

/// What the server says of itself.
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    pub(super) resident_mb: u64,
    /// How late each tick of the watched room was since the last call.
    pub(super) lateness_us: Vec<u64>,
}

impl Hosted {
    pub(super) fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "attacks", "--role", "server"])
            .env("PLAYFIELD_LOG", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let node = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let fat = String::new();
        let mut hosted = Self { child, input, output: BufReader::new(output), node, fat };
        let line = hosted.line()?;
        let mut words = line.split_whitespace();
        let (Some(port), Some(fat)) =
            (words.next().and_then(|port| port.parse().ok()), words.next())
        else {
            return Err(io::Error::other("the server process printed no port and no room"));
        };
        hosted.node.set_port(port);
        hosted.fat = fat.to_owned();
        Ok(hosted)
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [cpu, resident_mb, ref lateness_us @ ..] = numbers[..] else {
            return Err(io::Error::other("the server process printed no statistics"));
        };
        let (cpu, lateness_us) = (Duration::from_nanos(cpu), lateness_us.to_vec());
        Ok(Stats { cpu, resident_mb, lateness_us })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
