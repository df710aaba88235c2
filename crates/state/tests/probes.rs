//! Probes: the times of all places add up to the whole, a place that is sent has time, and patches
//! are the same with and without a probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common;

use common::Dice;
use common::field::Field;
use common::kinds::Kinds;
use common::odd::Odd;
use common::plaza::Plaza;
use common::swarm::Swarm;
use common::world::{Root, World};
use playfield_state::{
    Beside, Format, List, Map, PlaceTime, PlayerId, State, StateProfile, SyncProbe, Tracker,
    Tracking, beside,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

const ANN: PlayerId = PlayerId(1);
const PLAYERS: [PlayerId; 4] = [ANN, PlayerId(2), PlayerId(3), PlayerId(u64::MAX)];

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: cases.unwrap_or(24), failure_persistence: None, ..Config::default() }
}

/// A state whose patches are written for some players.
struct Written<T: State> {
    state: T,
    tracker: Tracker<T>,
    versions: [u64; PLAYERS.len()],
}

impl<T: Root> Written<T> {
    fn new(seed: u64) -> Self {
        let mut state = T::changed(seed % 90);
        let tracker = Tracker::new(&mut state, Tracking::On);
        Self { state, tracker, versions: [1; PLAYERS.len()] }
    }

    fn change(&mut self, seeds: &[u64]) {
        seeds.iter().for_each(|seed| self.state.change(&mut Dice::new(*seed)));
    }

    fn sync(&mut self) {
        self.tracker.sync(&mut self.state);
        self.state.synced();
    }

    /// The body of a patch for a player; empty if nothing changed.
    fn patch(&mut self, player: usize) -> Vec<u8> {
        let mut body = Vec::new();
        self.tracker.patch(PLAYERS[player], self.versions[player], Format::Packed, &mut body);
        self.versions[player] = self.tracker.version();
        body
    }
}

/// A probe, and the looks at its clock.
struct Probed {
    probe: SyncProbe,
    looks: Arc<AtomicU64>,
    /// The looks while it ran.
    whole: u64,
}

impl Probed {
    fn new<T: State>() -> Self {
        let looks = Arc::new(AtomicU64::new(0));
        let probe = SyncProbe::counting_looks(&T::schema(), Arc::clone(&looks)).unwrap();
        Self { probe, looks, whole: 0 }
    }

    /// The work while the probe runs.
    fn run<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let running = self.probe.begin();
        let began = self.looks.load(Ordering::Relaxed);
        let done = work();
        drop(running);
        self.whole += self.looks.load(Ordering::Relaxed) - began;
        done
    }
}

fn assert_adds_up<T: Root>(seed: u64) {
    let mut dice = Dice::new(seed);
    let [mut plain, mut room] = [Written::<T>::new(seed), Written::<T>::new(seed)];
    let mut probed = Probed::new::<T>();
    let mut profile = StateProfile::new(&T::schema()).unwrap();
    for player in PLAYERS {
        let mut body = Vec::new();
        room.tracker.snapshot(player, Format::Packed, &mut body);
        profile.snapshot(player, &body).unwrap();
    }
    for _ in 0..30 {
        let seeds: Vec<u64> = (0..dice.pick(6)).map(|_| dice.pick(1 << 40) as u64).collect();
        plain.change(&seeds);
        room.change(&seeds);
        plain.sync();
        probed.run(|| room.sync());
        let (times, counts) = (probed.probe.places(), profile.fields());
        for (player, of) in PLAYERS.into_iter().enumerate() {
            if dice.once_in(3) {
                continue;
            }
            let body = plain.patch(player);
            assert_eq!(probed.run(|| room.patch(player)), body, "the probe changes nothing");
            if !body.is_empty() {
                profile.patch(of, &body).unwrap();
            }
        }
        let (now, sent) = (probed.probe.places(), profile.fields());
        for (at, field) in sent.iter().enumerate() {
            let (before, sent_before) = (&times[at], &counts[at].patches);
            let is_in = |now: u64, before: u64| now > before;
            let [shared, own] = [
                is_in(now[at].shared.marks, before.shared.marks),
                is_in(now[at].own.marks, before.own.marks),
            ];
            let path = &field.path;
            assert!(shared || field.patches.shared == sent_before.shared, "{path}: no shared time");
            assert!(own || field.patches.own == sent_before.own, "{path}: no own time");
        }
    }
    let sum: u64 = probed.probe.places().iter().map(all).sum();
    assert_eq!(sum, probed.whole);
}

/// The time of a place.
fn all(PlaceTime { compare, shared, own }: &PlaceTime) -> u64 {
    compare.ns + shared.ns + own.ns
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_times_of_all_places_are_the_whole(seed in any::<u64>()) {
        assert_adds_up::<World>(seed);
        assert_adds_up::<Swarm>(seed);
        assert_adds_up::<Kinds>(seed);
        assert_adds_up::<Field>(seed);
        assert_adds_up::<Odd>(seed);
        assert_adds_up::<Plaza>(seed);
    }
}

#[derive(State, Default)]
struct Table {
    round: u32,
    seats: Map<PlayerId, Seat>,
    #[sync(hidden)]
    deck: List<u8>,
    log: List<u8>,
}

#[derive(State, Default)]
struct Seat {
    #[sync(quantize = 0.1)]
    heat: f32,
    hp: [u8; 2],
    #[sync(owner)]
    hand: List<u8>,
}

/// The marks of each place with any: comparing, writing for all, writing for one.
fn marks(probe: &SyncProbe, of: &StateProfile) -> Vec<(String, [u64; 3])> {
    let names = of.fields().into_iter().map(|field| field.path);
    let names = names.chain(Beside::ALL.iter().map(|of| format!("{of:?}")));
    let row = |(name, PlaceTime { compare, shared, own }): (String, PlaceTime)| {
        (name, [compare.marks, shared.marks, own.marks])
    };
    names.zip(probe.places()).map(row).filter(|(_, marks)| *marks != [0; 3]).collect()
}

#[test]
fn each_look_counts_for_the_place_before_it() {
    let mut table = Table::default();
    (1..=2).for_each(|player| {
        table.seats.insert(PlayerId(player), Seat::default());
    });
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let profile = StateProfile::new(&Table::schema()).unwrap();
    let mut probed = Probed::new::<Table>();
    table.round = 1;
    let seat = table.seats.get_mut(&ANN).unwrap();
    (seat.heat, seat.hp) = (1.0, [0, 7]);
    seat.hand.push(3);
    probed.run(|| tracker.sync(&mut table));
    let row = |name: &str, marks: [u64; 3]| (name.to_owned(), marks);
    let compared = [
        row("", [1, 0, 0]),
        row("round", [1, 0, 0]),
        // On the way to the entry, after it, and after all.
        row("seats", [3, 0, 0]),
        row("seats.*", [1, 0, 0]),
        row("seats.*.heat", [1, 0, 0]),
        row("seats.*.hp", [1, 0, 0]),
        row("seats.*.hp.*", [1, 0, 0]),
        row("seats.*.hand", [1, 0, 0]),
        row("log", [1, 0, 0]),
        row("Sync", [2, 0, 0]),
    ];
    assert_eq!(marks(&probed.probe, &profile), compared);
    let mut written = Probed::new::<Table>();
    for player in [ANN, PlayerId(2)] {
        written.run(|| {
            beside(Beside::Player);
            tracker.patch(player, 1, Format::Packed, &mut Vec::new())
        });
    }
    // The second player has nothing of their own, which is found in the map.
    let expected = [
        row("", [0, 1, 2]),
        row("round", [0, 1, 0]),
        row("seats", [0, 2, 3]),
        row("seats.*", [0, 1, 1]),
        row("seats.*.heat", [0, 1, 0]),
        row("seats.*.hp", [0, 1, 0]),
        row("seats.*.hp.*", [0, 1, 0]),
        row("seats.*.hand", [0, 0, 2]),
        row("seats.*.hand.*", [0, 0, 1]),
        row("Sync", [2, 0, 0]),
        row("Player", [4, 0, 0]),
        row("Copies", [2, 0, 0]),
    ];
    assert_eq!(marks(&written.probe, &profile), expected);
    // Without a probe in this thread, nothing is counted.
    beside(Beside::Checks);
    table.round = 2;
    tracker.sync(&mut table);
    assert_eq!(marks(&written.probe, &profile), expected);
}
