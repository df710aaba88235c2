//! The server process: a node on one core, rooms that are watched, and rooms to attack.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;

use playfield_console::Console;
use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Fleet, FleetSettings};
use playfield_state::Map;

use crate::harness::process::{Role, Server, Usage, Words, node, serve};
use crate::harness::ticks::AllTicks;

pub(crate) const ROLE: Role = Role { name: "attacks", log: "off", serve: host };

/// The number of entries in a large room, and the size of each: less than
/// `limits.session.outbox_bytes.max`.
const FAT_ENTRIES: u32 = 900;
const FAT_ENTRY_BYTES: usize = 1000;
/// The bytes of the texts in a large room.
pub(super) const FAT_BYTES: u64 = FAT_ENTRIES as u64 * FAT_ENTRY_BYTES as u64;
/// The number of large rooms.
const FAT_ROOMS: usize = 12;
/// The length of the long reply.
const REPLY_BYTES: usize = 256 * 1024;
/// The number of rooms to list.
const LISTED: usize = 200;

/// The ticks of the watched rooms.
static TICKS: AllTicks = AllTicks::new(20);

/// Counts its ticks, which its player sees.
#[derive(State, Default)]
pub(super) struct Watched {
    pub(super) ticks: u64,
    /// Follows from `ticks`, so that a copy shows whether it is whole.
    pub(super) mixed: u64,
}

impl Watched {
    /// Returns the value of `mixed`.
    pub(super) fn mix(ticks: u64) -> u64 {
        ticks.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Asks which tick is the last.
#[derive(Message)]
#[reply(u64)]
struct Last;

// The clients here answer no pings.
#[room(
    messages(Last),
    tick_hz = 20,
    sync_hz = 20,
    silence_ms = 600_000,
    empty_ms = 600_000,
    grace_ms = 10_000
)]
impl Room for Watched {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
        self.mixed = Self::mix(self.ticks);
        TICKS.note(cx.room_id(), cx.tick());
    }
}

impl Handle<Last> for Watched {
    fn handle(&mut self, _: Last, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        Ok(self.ticks)
    }
}

/// The state of the rooms that attackers create.
#[derive(State, Default)]
struct Made {
    ticks: u64,
}

#[room(tick_hz = 20, sync_hz = 20, silence_ms = 600_000)]
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

#[room(messages(Long), empty_ms = 600_000, grace_ms = 60_000, capacity = 10_000)]
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

/// Takes any device.
struct Devices;

impl Fleet for Devices {}

/// Names its ports and the ids of rooms.
fn host(words: &mut Words) -> io::Result<()> {
    // Strangers come from this machine, here.
    let mut config = node(1, &[("limits.address.trusted", &"")])?;
    config.shards = words.next()?;
    (config.websocket.deflate, config.tls.self_signed) = (true, true);
    let running = playfield_server::Server::new(config)
        .room_type(RoomType::of::<Watched>("watched"))
        .room_type(RoomType::of::<Made>("made"))
        .room_type(RoomType::of::<Fat>("fat"))
        .room_type(RoomType::of::<Listed>("listed"))
        .fleet(Devices, FleetSettings::default())
        .start()?;
    let node = running.handle();
    let console = Console::listen((Ipv4Addr::LOCALHOST, 0).into(), "")?;
    let ports = format!("{} {}", running.local_addr().port(), console.address().port());
    console.serve(node.clone());
    // Each goes to the shard with the least load, the first of them if several have the same: a
    // large room to the first, another to the second, and a watched one to each.
    let mut ids = vec![node.create_room::<Fat>(&()).wait().map_err(io::Error::other)?];
    ids.push(node.create_room::<Listed>(&()).wait().map_err(io::Error::other)?);
    for _ in 0..2 {
        ids.push(node.create_room::<Watched>(&()).wait().map_err(io::Error::other)?);
    }
    for _ in 1..FAT_ROOMS {
        ids.push(node.create_room::<Fat>(&()).wait().map_err(io::Error::other)?);
    }
    for _ in 0..LISTED {
        node.create_room::<Listed>(&()).wait().map_err(io::Error::other)?;
    }
    serve(format!("{ports} {}", ids.join(" ")), || {
        let stats = node.stats();
        let last = stats.shards.last().map_or(0, |shard| shard.bytes_out);
        let total = stats.total();
        [vec![total.messages_in, total.sessions_resumed, last], TICKS.report_ns()].concat()
    })
}

/// The server in its process.
pub(super) struct Hosted {
    process: Server,
    pub(super) node: SocketAddr,
    pub(super) places: Places,
}

/// Its console, and the ids of its rooms.
pub(super) struct Places {
    pub(super) console: SocketAddr,
    /// The large rooms. The first is on the first shard.
    pub(super) fat: Vec<String>,
    /// A small room on the second shard, if there is one.
    pub(super) other: String,
    /// A room to watch on each shard.
    pub(super) watched: Vec<String>,
}

/// The usage of the server, and its counters.
pub(super) struct Stats {
    usage: Usage,
    /// The number of messages it has read.
    pub(super) messages_in: u64,
    /// The number of resumed sessions.
    pub(super) sessions_resumed: u64,
    /// The bytes that its last shard has written.
    pub(super) last_bytes_out: u64,
}

impl Deref for Stats {
    type Target = Usage;

    fn deref(&self) -> &Usage {
        &self.usage
    }
}

impl Stats {
    /// Returns the lateness of each tick of the watched rooms since the last call, in ns.
    pub(super) fn lateness_ns(&self) -> &[u64] {
        &self.usage.more[3..]
    }
}

impl Hosted {
    pub(super) fn start(shards: usize) -> io::Result<Self> {
        let process = ROLE.start(&[&shards])?;
        let word = |at: usize| process.word(at).map(str::to_owned);
        let fat = [2].into_iter().chain(6..6 + FAT_ROOMS - 1).map(word);
        let places = Places {
            console: process.address(1)?,
            fat: fat.collect::<io::Result<_>>()?,
            other: word(3)?,
            watched: (4..4 + shards).map(word).collect::<io::Result<_>>()?,
        };
        Ok(Self { node: process.address, process, places })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let usage = self.process.usage()?;
        let [messages_in, sessions_resumed, last_bytes_out] =
            *usage.more.first_chunk().ok_or_else(|| io::Error::other("no counters"))?;
        Ok(Stats { usage, messages_in, sessions_resumed, last_bytes_out })
    }
}
