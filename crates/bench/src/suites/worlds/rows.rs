//! The rows, and one measurement of each.

use std::rc::Rc;
use std::time::{Duration, Instant};

use playfield_state::{Format, Tracking};

use crate::harness::allocations;
use crate::suites::sync::copies::check;
use crate::suites::sync::room::Room;
use crate::workloads::Workload as _;
use crate::workloads::entities::{
    Crowd, Entities, Gridded, GriddedRound, Plane, Round as Circle, RoundInFloats, Windowed,
};

/// A world.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) players: u64,
    pub(super) entities: u32,
    /// The number of entities that move per step.
    pub(super) changed: u32,
    /// One in how many syncs is made, since each takes so long.
    pub(super) syncs_share: u64,
    /// The ways to decide who sees what. The first is what others are compared with.
    pub(super) kinds: Vec<Kind>,
}

/// A way to decide who sees what.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) measure: Box<dyn Fn(u64, bool) -> Round>,
    /// The mean number of changed entities in sight in so many syncs, summed over all players.
    pub(super) in_sight: Box<dyn Fn(u64) -> f64>,
}

/// One measurement.
#[derive(Default)]
pub(super) struct Round {
    /// The mean time of a sync.
    pub(super) sync_ms: f64,
    pub(super) bytes: f64,
    pub(super) allocations: Option<f64>,
    /// The memory that the room holds, without the state before its first sync.
    pub(super) room_mb: f64,
    messages: u64,
    compared: u64,
    pub(super) failure: Option<String>,
}

impl Round {
    pub(super) fn verified(&self) -> bool {
        self.failure.is_none() && self.messages > 0 && self.compared == self.messages
    }
}

/// Syncs before those that count.
const WARM_UP: u64 = 5;

pub(super) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut windows = |name, players, changed, moving, borrowing| {
        rows.push(Row {
            name,
            players,
            entities: 10_000,
            changed,
            syncs_share: 1,
            kinds: vec![
                kind("function", world::<Windowed>(players, 10_000, changed, moving, borrowing)),
                kind("place", world::<Gridded>(players, 10_000, changed, moving, borrowing)),
            ],
        });
    };
    windows("windows, players move", 100, 100, 100, false);
    windows("windows, all move", 100, 10_000, 100, false);
    windows("at rest, untouched", 300, 0, 0, false);
    windows("at rest, all borrowed", 300, 0, 0, true);
    let mut battle = |name, function| {
        let place = kind("place", world::<GriddedRound>(500, 2_000, 2_000, 500, false));
        let kinds = vec![function, place];
        let (players, entities, changed, syncs_share) = (500, 2_000, 2_000, 1);
        rows.push(Row { name, players, entities, changed, syncs_share, kinds });
    };
    let function = kind("function", world::<Circle>(500, 2_000, 2_000, 500, false));
    battle("battle, all move", function);
    let function = kind("hypot", world::<RoundInFloats>(500, 2_000, 2_000, 500, false));
    battle("battle, against hypot", function);
    let mut crowd = |name, changed, moving| {
        let crowd = world::<Crowd>(100, 100_000, changed, moving, false).on_plane(8);
        let kinds = vec![kind("place, nearest 64", crowd)];
        let (players, entities, syncs_share) = (100, 100_000, 4);
        rows.push(Row { name, players, entities, changed, syncs_share, kinds });
    };
    crowd("crowd on one spot, one moves", 1, 0);
    crowd("crowd on one spot, players move", 1_000, 100);
    rows
}

fn world<S>(
    players: u64,
    entities: u32,
    changed: u32,
    moving: u64,
    borrowing: bool,
) -> Entities<S> {
    let world = Entities::new(players, entities, changed, true, moving);
    if borrowing { world.borrowing() } else { world }
}

fn kind<S: Plane + 'static>(name: &'static str, world: Entities<S>) -> Kind {
    let world = Rc::new(world);
    let same = world.clone();
    Kind {
        name,
        measure: Box::new(move |syncs, corrupt_one| measure(&world, syncs, corrupt_one)),
        in_sight: Box::new(move |syncs| in_sight(&same, syncs)),
    }
}

fn in_sight<S: Plane>(world: &Entities<S>, syncs: u64) -> f64 {
    let mut model = world.model();
    let mut all = 0;
    for iteration in 0..WARM_UP + syncs {
        world.step_model(&mut model, iteration);
        if iteration >= WARM_UP {
            all += world.changed_in_sight(&model, iteration);
        }
    }
    all as f64 / syncs as f64
}

/// Messages are moved aside between syncs and checked at the end. So syncs follow each other as in
/// a server.
fn measure<S: Plane>(world: &Entities<S>, syncs: u64, corrupt_one: bool) -> Round {
    let live = || allocations::so_far().map_or(0, |all| all.live_bytes);
    let counted = || allocations::so_far().map_or(0, |all| all.count);
    let before = live();
    let mut room = Room::new(world, Format::Packed, Tracking::On);
    let mut round = Round { room_mb: (live() - before) as f64 / 1e6, ..Round::default() };
    let mut took = Duration::ZERO;
    let (mut bytes, mut allocated) = (0, 0);
    for iteration in 0..WARM_UP + syncs {
        room.step(iteration);
        let (count, began) = (counted(), Instant::now());
        room.sync();
        let synced = began.elapsed();
        let count = counted() - count;
        let sent = room.keep();
        if iteration >= WARM_UP {
            took += synced;
            bytes += sent;
            allocated += count;
        }
    }
    if corrupt_one {
        room.sent.corrupt_one();
    }
    let checked = check(world, &room, Format::Packed, WARM_UP + syncs);
    let mean = |sum: f64| sum / syncs as f64;
    round.sync_ms = mean(took.as_secs_f64() * 1e3);
    round.bytes = mean(bytes as f64);
    round.allocations = allocations::so_far().map(|_| mean(allocated as f64));
    round.messages = room.sent.messages();
    round.compared = checked.compared;
    round.failure = checked.failure;
    round
}
