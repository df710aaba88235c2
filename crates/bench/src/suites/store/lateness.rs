//! The lateness of another room of the shard while a state of 1 MB is saved and loaded.

use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use playfield_room::{Context, Message, On, Result, Room, room};
use playfield_server::NodeHandle;
use playfield_state::{State, save};

use super::Options;
use super::node::{StoreNode, of};
use super::states::Game;
use crate::harness::options::names;
use crate::harness::report::Record;
use crate::harness::stats::Samples;
use crate::harness::ticks::AllTicks;

names! {
    /// The load meanwhile.
    Meanwhile {
        Nothing = "another room's ticks",
        Saves = "the same, 1 MB saves",
        /// In turn: the room is saved, closed, and opened again.
        SavesAndLoads = "the same, 1 MB saves and loads",
    }
}

/// The time between two saves.
const PAUSE: Duration = Duration::from_millis(20);
/// The interval at which the node is asked whether a closed room is gone.
const POLL: Duration = Duration::from_millis(1);
/// The longest wait for a room to end.
const END_WAIT: Duration = Duration::from_secs(60);
/// The number of units that make 1 MB.
const UNITS: u32 = 25_000;

/// The ticks of the other room.
static TICKS: AllTicks = AllTicks::new(1_000);

/// Ticks a thousand times a second, and notes when.
#[derive(State, Default)]
struct Clock {}

/// Asks how late ticks were since the last question, in ns.
#[derive(Message)]
#[reply(Vec<u64>)]
struct Late;

#[room(internal(Late), tick_hz = 1_000, sync_hz = 0, empty_ms = 3_600_000)]
impl Room for Clock {
    fn tick(&mut self, cx: &mut Context<Self>) {
        TICKS.note(cx.room_id(), cx.tick());
    }
}

impl On<Late> for Clock {
    fn on(&mut self, _: Late, _: &mut Context<Self>) -> Result<Vec<u64>> {
        Ok(TICKS.report_ns())
    }
}

/// A room of 1 MB.
#[derive(State, Default)]
struct Large {
    game: Game,
    changes: u64,
    #[sync(skip)]
    saves: u64,
}

/// Changes it, and saves it. Returns how often it was changed, and how many saves have ended since
/// the room was opened.
#[derive(Message)]
#[reply([u64; 2])]
struct Change;

/// Asks for a hash of all of it.
#[derive(Message)]
#[reply(u64)]
struct Sum;

/// The end of a save.
#[derive(Message)]
struct Saved;

#[room(
    internal(Change, Sum, Saved),
    persist = 3_600,
    sync_hz = 0,
    empty_ms = 3_600_000,
    closing_ms = 60_000,
    join_wait_ms = 60_000
)]
impl Room for Large {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self::changed(0))
    }
}

impl Large {
    /// The state after this many changes.
    fn changed(times: u64) -> Self {
        let mut large = Self { game: Game::new(UNITS), ..Self::default() };
        (0..times).for_each(|_| large.change());
        large
    }

    fn change(&mut self) {
        self.changes += 1;
        if let Some(unit) = self.game.units.get_mut(&3) {
            unit.x += 1.0;
        }
    }

    fn sum(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&save(&self.game));
        hasher.finish()
    }
}

impl On<Change> for Large {
    fn on(&mut self, _: Change, cx: &mut Context<Self>) -> Result<[u64; 2]> {
        self.change();
        cx.save(Saved)?;
        Ok([self.changes, self.saves])
    }
}

impl On<Sum> for Large {
    fn on(&mut self, _: Sum, _: &mut Context<Self>) -> Result<u64> {
        Ok(self.sum())
    }
}

impl On<Saved> for Large {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        self.saves += 1;
        Ok(())
    }
}

/// The room, as the one who changes it knows it.
struct Driver {
    node: NodeHandle,
    room: String,
    changes: u64,
    /// Every answer counted every change.
    is_right: bool,
}

impl Driver {
    fn open(node: NodeHandle) -> Result<Self> {
        let room = node.find_or_create::<Large>("1", &()).wait()?;
        Ok(Self { node, room, changes: 0, is_right: true })
    }

    /// Changes the room, which then saves itself. Returns how many saves have ended.
    fn change(&mut self) -> Result<u64> {
        self.changes += 1;
        let [changes, saves] = self.node.ask(&self.room, &Change).wait()?;
        self.is_right &= changes == self.changes;
        Ok(saves)
    }

    /// Closes the room, and opens it again, once it is gone.
    fn reopen(&mut self) -> Result<()> {
        self.node.close(&self.room, "it is opened again")?;
        let began = Instant::now();
        while self.node.find("large", "1").is_some() {
            if began.elapsed() > END_WAIT {
                return Err("the room did not end".into());
            }
            std::thread::park_timeout(POLL);
        }
        self.room = self.node.find_or_create::<Large>("1", &()).wait()?;
        Ok(())
    }

    /// Compares all of the room with what it should be. What was wrong in any save is wrong from
    /// there on, since each state is made of the one before it.
    fn compare(&self, corrupt_one: bool) -> Result<bool> {
        let sum = self.node.ask(&self.room, &Sum).wait()? ^ u64::from(corrupt_one);
        Ok(self.is_right && sum == Large::changed(self.changes).sum())
    }
}

/// The record of one row.
pub(super) fn measure(
    meanwhile: Meanwhile,
    options: &Options,
) -> std::result::Result<Record, String> {
    let node = StoreNode::start(vec![of::<Clock>("clock"), of::<Large>("large")])?;
    measured(&node.handle(), meanwhile, options).map_err(|error| error.to_string())
}

fn measured(node: &NodeHandle, meanwhile: Meanwhile, options: &Options) -> Result<Record> {
    let clock = node.create_room::<Clock>(&()).wait()?;
    let mut driver = Driver::open(node.clone())?;
    // Both ways to save were taken once.
    driver.change()?;
    driver.reopen()?;
    let (mut saves, mut loads) = (0, 0);
    node.ask(&clock, &Late).wait()?;
    let until = Instant::now() + options.window;
    loop {
        match meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::Saves => saves = driver.change()?,
            Meanwhile::SavesAndLoads => {
                driver.change()?;
                std::thread::park_timeout(PAUSE);
                driver.reopen()?;
                (saves, loads) = (saves + 1, loads + 1);
            }
        }
        std::thread::park_timeout(PAUSE);
        if Instant::now() >= until {
            break;
        }
    }
    let late = node.ask(&clock, &Late).wait()?;
    let verified = !late.is_empty() && driver.compare(options.corrupt_one)?;
    let late = Samples::new(late.into_iter().map(|ns| ns as f64 / 1e3).collect());
    Ok(Record::of("store")
        .with("row", meanwhile.name())
        .with("saves", saves)
        .with("loads", loads)
        .measured("late_us_p50", late.percentile(50.0))
        .measured("late_us_p99", late.percentile(99.0))
        .measured("late_us_max", late.percentile(100.0))
        .with("verified", verified))
}
