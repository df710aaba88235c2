//! The server process: a node with one shard on one core, a room that is watched, and rooms to
//! attack.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};
use playfield_state::Map;

use super::SERVER_CORE;
use crate::clock::{nanoseconds, pin, process_cpu};
use crate::limits::{raise_descriptors, resident};
use crate::server_process::{ServerProcess, report};
use crate::ticks::AllTicks;

/// How many entries the large room has, and how long each is.
const FAT_ENTRIES: u32 = 1000;
const FAT_ENTRY_BYTES: usize = 1000;
/// How long the long reply is.
const REPLY_BYTES: usize = 256 * 1024;
/// How many rooms there are to list.
const LISTED: usize = 200;

/// The ticks of the watched room.
static TICKS: AllTicks = AllTicks::new(20);

/// Counts its ticks, which its player sees.
#[derive(State, Default)]
struct Watched {
    ticks: u64,
}

#[room(tick_hz = 20, sync_hz = 20)]
impl Room for Watched {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
        TICKS.note(cx.room_id(), cx.tick());
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

/// Serves until standard input is closed: reports its port and the id of the large room, and then
/// statistics.
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
    report(format!("{} {fat}", running.local_addr().port()), || {
        [vec![nanoseconds(process_cpu()), resident() / 1_000_000], TICKS.report_ns()].concat()
    })
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
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
    pub(super) lateness_ns: Vec<u64>,
}

impl Hosted {
    pub(super) fn start() -> io::Result<Self> {
        let arguments = ["bench", "attacks", "--role", "server"];
        let process = ServerProcess::start(&arguments, Some("off"))?;
        Ok(Self { node: process.address(0)?, fat: process.word(1)?.to_owned(), process })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu, resident_mb], lateness_ns) = self.process.ask()?;
        Ok(Stats { cpu: Duration::from_nanos(cpu), resident_mb, lateness_ns })
    }
}
