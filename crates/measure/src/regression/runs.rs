//! A field that grows by 3 % is found, and one that does not is not: in runs of a room, each with
//! other random values, by a simulated clock.

use playfield::prelude::{Map, PlayerId, State};
use playfield_client::session::UpdateKind;
use playfield_load::{Profiled, Profiler};
use playfield_state::{Format, Tracker, Tracking};

use super::FieldBytes;

const PLAYERS: u64 = 8;
/// Eight seconds at 20 Hz.
const SYNCS: u64 = 160;
/// Runs of a room for a profile, as `profile` does.
const RUNS: u64 = 5;
const COMPARED: u64 = 20;
const LARGER: f64 = 0.03;

#[derive(State, Default)]
struct Field {
    units: Map<PlayerId, Unit>,
    round: u32,
}

#[derive(State, Default)]
struct Unit {
    #[sync(quantize = 0.01)]
    x: f64,
    #[sync(quantize = 0.01)]
    y: f64,
    hp: u16,
    orders: String,
}

/// A generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A profile of some runs; `larger` is how much longer orders are.
fn profiled(seed: u64, larger: f64) -> Profiled {
    let profiler = Profiler::default();
    for run in 0..RUNS {
        profiler.resume();
        play(&profiler, seed * RUNS + run, larger);
    }
    profiler.profiled().expect("all bodies were read")
}

fn play(profiler: &Profiler, seed: u64, larger: f64) {
    let mut dice = Dice(seed);
    let mut field = Field::default();
    for player in 1..=PLAYERS {
        let (x, y) = (dice.fraction() * 100.0, dice.fraction() * 100.0);
        field.units.insert(PlayerId(player), Unit { x, y, hp: 1000, orders: String::new() });
    }
    let mut tracker = Tracker::new(&mut field, Tracking::On);
    let (of, viewer) = (Field::schema(), PlayerId(1));
    let mut body = Vec::new();
    tracker.snapshot(viewer, Format::Packed, &mut body);
    profiler.count(&of, viewer.0, UpdateKind::Snapshot, &body);
    for sync in 0..SYNCS {
        for player in 1..=PLAYERS {
            let Some(unit) = field.units.get_mut(&PlayerId(player)) else { continue };
            // They go where they want, and fight now and then, for a while.
            unit.x = (unit.x + dice.fraction() - 0.5).clamp(0.0, 100.0);
            unit.y = (unit.y + dice.fraction() - 0.5).clamp(0.0, 100.0);
            if (sync / 40 + seed + player).is_multiple_of(3) && dice.fraction() < 0.5 {
                unit.hp = (unit.hp + 1000 - dice.next() as u16 % 90) % 1000;
            }
            let length = (80.0 + 40.0 * dice.fraction()) * (1.0 + larger);
            let letter = char::from(b'a' + (dice.next() % 26) as u8);
            unit.orders = letter.to_string().repeat((length + dice.fraction()) as usize);
        }
        field.round += u32::from(sync.is_multiple_of(20));
        tracker.sync(&mut field);
        body.clear();
        tracker.patch(viewer, tracker.version() - 1, Format::Packed, &mut body);
        profiler.count(&of, viewer.0, UpdateKind::Patch, &body);
    }
}

/// The fields that differ between two runs, by their paths.
fn claimed(before: &Profiled, now: &Profiled) -> Vec<String> {
    let whole = before.bytes.bytes() as f64 / before.patches as f64;
    let fields = 0..before.fields.len();
    let differs = |field: &usize| {
        let [then, now] = [before, now].map(|profiled| FieldBytes::of(profiled, *field));
        then.differs(&now, whole) == Some(true)
    };
    fields.filter(differs).map(|field| before.fields[field].path.clone()).collect()
}

#[test]
fn a_field_that_grows_by_3_percent_is_found_and_no_other() {
    let mut found = 0;
    for run in 0..COMPARED {
        let before = profiled(1 + run, 0.0);
        let equal = claimed(&before, &profiled(1001 + run, 0.0));
        assert!(equal.is_empty(), "run {run}: {equal:?} have not changed");
        let larger = claimed(&before, &profiled(2001 + run, LARGER));
        found += u64::from(larger == ["units.*.orders"]);
        assert!(larger.iter().all(|path| path == "units.*.orders"), "run {run}: {larger:?}");
    }
    assert!(found >= COMPARED - 1, "{found} of {COMPARED} were found");
}
