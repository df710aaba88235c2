//! How late another room of the shard is while a state of 1 MB is saved and loaded.

use std::time::{Duration, Instant};

use playfield_room::{Context, Message, On, Result, Room, room};
use playfield_server::NodeHandle;
use playfield_state::State;

use super::node::{StoreNode, of};
use super::states::Game;
use crate::Record;
use crate::stats::Samples;

/// How long it is measured, with and without saves.
const WINDOW: Duration = Duration::from_secs(5);

/// Ticks a thousand times a second, and notes when.
#[derive(State, Default)]
struct Clock {
    #[sync(skip)]
    ticks: Vec<(u64, Instant)>,
}

/// Asks how late ticks were since the last question, in ns.
#[derive(Message)]
#[reply(Vec<u64>)]
struct Late;

#[room(internal(Late), tick_hz = 1_000, sync_hz = 0, empty_ms = 3_600_000)]
impl Room for Clock {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks.push((cx.tick(), Instant::now()));
    }
}

impl On<Late> for Clock {
    fn on(&mut self, _: Late, _: &mut Context<Self>) -> Result<Vec<u64>> {
        let ticks = std::mem::take(&mut self.ticks);
        let Some(&(first, begin)) = ticks.first() else { return Ok(Vec::new()) };
        // From the tick that was the least late.
        let offset = |&(tick, at): &(u64, Instant)| {
            at.duration_since(begin).as_nanos() as i64 - (tick - first) as i64 * 1_000_000
        };
        let least = ticks.iter().map(offset).min().unwrap_or_default();
        Ok(ticks.iter().map(|tick| offset(tick).abs_diff(least)).collect())
    }
}

/// A room of 1 MB.
#[derive(State, Default)]
struct Large {
    game: Game,
    saves: u64,
}

/// Changes it, and saves it.
#[derive(Message)]
#[reply(u64)]
struct Change;

/// The end of a save.
#[derive(Message)]
struct Saved;

#[room(internal(Change, Saved), persist = 3_600, sync_hz = 0, empty_ms = 3_600_000)]
impl Room for Large {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { game: Game::new(25_000), saves: 0 })
    }
}

impl On<Change> for Large {
    fn on(&mut self, _: Change, cx: &mut Context<Self>) -> Result<u64> {
        if let Some(unit) = self.game.units.get_mut(&3) {
            unit.x += 1.0;
        }
        cx.save(Saved)?;
        Ok(self.saves)
    }
}

impl On<Saved> for Large {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        self.saves += 1;
        Ok(())
    }
}

/// Waits for the window, and returns how late ticks were.
fn window(node: &NodeHandle, clock: &str, mut each: impl FnMut() -> Result<()>) -> Result<Samples> {
    node.ask(clock, &Late).wait()?;
    let until = Instant::now() + WINDOW;
    while Instant::now() < until {
        each()?;
    }
    let late = node.ask(clock, &Late).wait()?;
    Ok(Samples::new(late.into_iter().map(|ns| ns as f64 / 1e3).collect()))
}

/// The records of both cases.
pub(super) fn measure() -> Result<Vec<(Record, bool)>, String> {
    let node = StoreNode::start(vec![of::<Clock>("clock"), of::<Large>("large")])?;
    measured(&node.handle()).map_err(|error| error.to_string())
}

fn measured(node: &NodeHandle) -> Result<Vec<(Record, bool)>> {
    let clock = node.create_room::<Clock>(&()).wait()?;
    let large = node.new_room::<Large>(&()).key("1").create().wait()?;
    let pause = || {
        std::thread::park_timeout(Duration::from_millis(20));
        Ok(())
    };
    let still = window(node, &clock, pause)?;
    let before = node.ask(&large, &Change).wait()?;
    let mut asked = 0_u64;
    let saving = window(node, &clock, || {
        asked += 1;
        node.ask(&large, &Change).wait()?;
        pause()
    })?;
    let saves = node.ask(&large, &Change).wait()? - before;
    let record = |row: &str, samples: &Samples, saves: u64| {
        Record::new()
            .with("suite", "store")
            .with("row", row)
            .with("saves", saves)
            .measured("late_us_p50", samples.percentile(50.0))
            .measured("late_us_p99", samples.percentile(99.0))
            .measured("late_us_max", samples.percentile(100.0))
            // Several changes may share a save.
            .with("verified", saves <= asked + 1)
    };
    Ok(vec![
        (record("another room's ticks, no saves", &still, 0), true),
        (record("another room's ticks, 1 MB saves", &saving, saves), saves > 0),
    ])
}
