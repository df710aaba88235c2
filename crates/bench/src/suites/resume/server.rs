//! The server process: a node with two shards, whose rooms note how late they tick.

use std::io;
use std::sync::OnceLock;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};

use crate::harness::options::names;
use crate::harness::process::{Role, Server, Words, node, serve};
use crate::harness::ticks::AllTicks;

pub(crate) const ROLE: Role = Role { name: "resume", log: "error", serve: host };

/// The ticks per second.
const TICK_HZ: u32 = 20;

/// The ticks of all rooms.
static TICKS: AllTicks = AllTicks::new(TICK_HZ);

/// Activity of the rooms: set once, before the node starts.
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
    /// Returns the value of `mixed`.
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
        let pace = PACE.get().copied().unwrap_or(Pace::Events);
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

names! {
    /// The rate at which rooms send events and patches.
    Pace {
        /// Never.
        Idle = "idle",
        /// A patch 20 times a second, and an event every ten seconds.
        Ticks = "ticks",
        /// An event and a patch every second.
        Events = "events",
    }
}

impl Pace {
    /// Returns the number of ticks in an hour.
    fn hour_ticks(self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Ticks => Some(10 * u64::from(TICK_HZ)),
            Self::Events => Some(u64::from(TICK_HZ)),
        }
    }
}

pub(super) fn start(pace: Pace) -> io::Result<Server> {
    ROLE.start(&[&pace])
}

fn host(words: &mut Words) -> io::Result<()> {
    let pace = words.next()?;
    PACE.get_or_init(|| pace);
    // All clients have one of two addresses.
    // The load is fixed, however late a busy machine makes the rooms.
    let config = node(
        2,
        &[
            ("limits.sessions_away.per_address", &100_000),
            ("rooms.lateness", &"0s"),
            ("rooms.busy_percent", &0),
        ],
    )?;
    let clocks = RoomType::of::<Clock>("clock");
    let running = playfield_server::Server::new(config).room_type(clocks).start()?;
    serve(running.local_addr().port(), || TICKS.report_ns())
}
