//! The server process: a node with two shards, whose rooms note how late they tick.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};

use crate::allocations;
use crate::clock::{nanoseconds, process_cpu};
use crate::limits::{raise_descriptors, resident};
use crate::server_process::{ServerProcess, report};
use crate::ticks::AllTicks;

/// How many ticks a second.
const TICK_HZ: u32 = 20;

/// The ticks of all rooms.
static TICKS: AllTicks = AllTicks::new(TICK_HZ);

/// What the rooms do: set once, before the node starts.
static PACE: OnceLock<Pace> = OnceLock::new();

/// Happens at the rate of the [pace](Pace), to everyone.
#[derive(Message)]
pub(super) struct Struck {
    pub(super) hour: u64,
}

/// Asks which hour it is.
#[derive(Message)]
#[reply(u64)]
struct Now;

/// A room whose players see and hear the time.
#[derive(State, Default)]
pub(super) struct Clock {
    pub(super) hour: u64,
    /// Follows from `hour`, so that a copy shows whether it is whole.
    pub(super) mixed: u64,
    /// Changes with each tick, where the pace asks for it.
    ticks: u64,
}

impl Clock {
    /// What `mixed` is.
    pub(super) fn mix(hour: u64) -> u64 {
        hour.wrapping_mul(0x9E37_79B9)
    }
}

// The clients here answer no pings.
#[room(
    messages(Now),
    events(Struck),
    tick_hz = 20,
    sync_hz = 20,
    silence_ms = 600_000,
    capacity = 30,
    grace_ms = 60_000
)]
impl Room for Clock {
    fn join(&mut self, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        TICKS.note(cx.room_id(), cx.tick());
        let pace = PACE.get().copied().unwrap_or_default();
        if pace == Pace::Ticks {
            self.ticks = cx.tick();
        }
        // No hour is left out, even if ticks are.
        let Some(hour_ticks) = pace.hour_ticks() else { return };
        if cx.tick() >= (self.hour + 1) * hour_ticks {
            self.hour += 1;
            self.mixed = Self::mix(self.hour);
            cx.emit(&Struck { hour: self.hour });
        }
    }
}

impl Handle<Now> for Clock {
    fn handle(&mut self, _: Now, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        Ok(self.hour)
    }
}

/// How often rooms send events and patches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Never.
    Idle,
    /// A patch 20 times a second, and an event every ten seconds.
    Ticks,
    /// An event and a patch every second.
    #[default]
    Events,
}

impl Pace {
    /// All, as they are named in reports and options.
    pub const ALL: [(&'static str, Self); 3] =
        [("idle", Self::Idle), ("ticks", Self::Ticks), ("events", Self::Events)];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, pace)| *pace == self).map_or("", |(name, _)| name)
    }

    /// How many ticks an hour has.
    fn hour_ticks(self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Ticks => Some(10 * u64::from(TICK_HZ)),
            Self::Events => Some(u64::from(TICK_HZ)),
        }
    }
}

/// Serves until standard input is closed: reports its port, and then statistics.
pub(super) fn host(pace: Pace) -> io::Result<()> {
    raise_descriptors();
    PACE.get_or_init(|| pace);
    let mut config =
        Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 2, ..Config::default() };
    // All clients have one of two addresses.
    config.set("sessions_away_per_address_max", "100000").map_err(io::Error::other)?;
    let running = Server::new(config).room_type(RoomType::of::<Clock>("clock")).start()?;
    report(running.local_addr().port(), || {
        // 0 where allocations are not counted.
        let heap = allocations::so_far().map_or(0, |so_far| so_far.live_bytes);
        [vec![nanoseconds(process_cpu()), resident(), heap], TICKS.report_ns()].concat()
    })
}

/// The server in its process.
pub(super) struct Hosted {
    process: ServerProcess,
    pub(super) node: SocketAddr,
}

/// What the server says of itself.
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    /// Resident memory, in bytes.
    pub(super) resident: u64,
    /// What is allocated, in bytes, if that is counted.
    pub(super) heap: Option<u64>,
    /// How late each tick was since the last call.
    pub(super) lateness_ns: Vec<u64>,
}

impl Hosted {
    pub(super) fn start(pace: Pace) -> io::Result<Self> {
        let arguments = ["bench", "resume", "--role", "server", "--pace", pace.name()];
        let process = ServerProcess::start(&arguments, Some("error"))?;
        Ok(Self { node: process.address(0)?, process })
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        let ([cpu, resident, heap], lateness_ns) = self.process.ask()?;
        let heap = (heap > 0).then_some(heap);
        Ok(Stats { cpu: Duration::from_nanos(cpu), resident, heap, lateness_ns })
    }
}
