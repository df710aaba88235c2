//! Profiles: the bytes of all fields add up to those of the bodies, each byte counts for the field
//! that it belongs to, and what another type would save is what it does save.

use crate::common;

use common::Dice;
use common::documented::Table;
use common::field::Field;
use common::kinds::Kinds;
use common::odd::Odd;
use common::plaza::Plaza;
use common::swarm::Swarm;
use common::world::{Root, World};
use playfield_state::{
    FieldCounts, FieldProfile, Format, Map, MessageCounts, PlayerId, RoomProfile, State,
    StateProfile, Tracker, Tracking,
};
use playfield_wire::schema::{EventSchema, MessageSchema, RoomSchema, Type};
use proptest::prelude::*;
use proptest::test_runner::Config;

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);
/// A player who owns nothing, and is in no view.
const STRANGER: PlayerId = PlayerId(u64::MAX);

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: cases.unwrap_or(24), failure_persistence: None, ..Config::default() }
}

/// A room whose bodies for some players are counted.
struct Counted<T: State> {
    state: T,
    tracker: Tracker<T>,
    profile: StateProfile,
    /// The players, each with the version of the copy.
    players: Vec<(PlayerId, u64)>,
    snapshots: u64,
    patches: u64,
}

impl<T: State> Counted<T> {
    fn new(mut state: T, players: &[PlayerId]) -> Self {
        let tracker = Tracker::new(&mut state, Tracking::On);
        let profile = StateProfile::new(&T::schema()).unwrap();
        let players = players.iter().map(|player| (*player, 0)).collect();
        let mut counted = Self { state, tracker, profile, players, snapshots: 0, patches: 0 };
        (0..counted.players.len()).for_each(|place| counted.snapshot(place));
        counted
    }

    fn snapshot(&mut self, place: usize) {
        let (player, version) = &mut self.players[place];
        let mut body = Vec::new();
        self.tracker.snapshot(*player, Format::Packed, &mut body);
        self.profile.snapshot(*player, &body).unwrap();
        self.snapshots += body.len() as u64;
        *version = self.tracker.version();
    }

    /// Counts a patch. Returns the body, which is empty if nothing changed.
    fn patch(&mut self, place: usize) -> Vec<u8> {
        let (player, version) = &mut self.players[place];
        let mut body = Vec::new();
        if self.tracker.patch(*player, *version, Format::Packed, &mut body) {
            self.profile.patch(*player, &body).unwrap();
            self.patches += body.len() as u64;
            *version = self.tracker.version();
        }
        body
    }

    /// Syncs, and counts a patch for all.
    fn sync(&mut self, change: impl FnOnce(&mut T)) {
        change(&mut self.state);
        self.tracker.sync(&mut self.state);
        (0..self.players.len()).for_each(|place| drop(self.patch(place)));
    }

    fn field(&self, path: &str) -> FieldProfile {
        let fields = self.profile.fields();
        fields.into_iter().find(|field| field.path == path).unwrap_or_else(|| panic!("no {path}"))
    }

    /// The bytes that a type or a policy saves of a field in snapshots and in patches.
    fn saved(&self, path: &str, to: &str) -> Option<(i64, i64)> {
        let savings = self.field(path).savings;
        let found = savings.iter().find(|saving| saving.to == to)?;
        Some((found.snapshots, found.patches))
    }

    fn assert_complete(&self) {
        let fields = self.profile.fields();
        let sum = |of: fn(&FieldProfile) -> FieldCounts| {
            fields.iter().map(|field| of(field).bytes()).sum::<u64>()
        };
        assert_eq!(sum(|field| field.snapshots), self.snapshots);
        assert_eq!(sum(|field| field.patches), self.patches);
        assert_eq!(self.profile.snapshots().bytes(), self.snapshots);
        assert_eq!(self.profile.patches().bytes(), self.patches);
    }
}

/// Any history: the bytes of all fields are those of the bodies, and what is shared is what a
/// stranger is sent.
fn assert_adds_up<T: Root>(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut room = Counted::new(T::changed(seed % 90), &[ANN, BOB, STRANGER, PlayerId(3)]);
    for _ in 0..30 {
        for _ in 0..dice.pick(6) {
            room.state.change(&mut dice);
        }
        room.tracker.sync(&mut room.state);
        room.state.synced();
        let since = room.players[2].1;
        let strangers = room.patch(2);
        for place in [0, 1, 3] {
            if dice.once_in(15) {
                room.snapshot(place);
            }
            let is_one_sync = room.players[place].1 == since;
            let before = room.profile.patches();
            let is_sent = !dice.once_in(3) && !room.patch(place).is_empty();
            let shared = room.profile.patches().shared - before.shared;
            if is_sent && is_one_sync && !strangers.is_empty() {
                assert_eq!(shared, strangers.len() as u64);
            }
        }
    }
    room.assert_complete();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_bytes_of_all_fields_are_those_of_the_bodies(seed in any::<u64>()) {
        assert_adds_up::<World>(seed);
        assert_adds_up::<Swarm>(seed);
        assert_adds_up::<Kinds>(seed);
        assert_adds_up::<Field>(seed);
        assert_adds_up::<Odd>(seed);
        assert_adds_up::<Plaza>(seed);
    }
}

/// Fields with bytes: writes, shared and own bytes.
fn rows(
    profile: &StateProfile,
    of: fn(&FieldProfile) -> FieldCounts,
) -> Vec<(String, u64, u64, u64)> {
    let row = |field: &FieldProfile| {
        let FieldCounts { writes, shared, own } = of(field);
        (field.path.clone(), writes, shared, own)
    };
    profile.fields().iter().map(row).filter(|(_, _, shared, own)| shared + own > 0).collect()
}

fn row(path: &str, writes: u64, shared: u64, own: u64) -> (String, u64, u64, u64) {
    (path.to_owned(), writes, shared, own)
}

#[test]
fn each_byte_of_a_snapshot_counts_for_its_field() {
    let mut profile = StateProfile::new(&Table::schema()).unwrap();
    let shared = [1, 1, 1, 0xc8, 1, 1, 2, 5, 0, 3, 10, 20, 30, 1, 9];
    let own = [6, 4, 1, 2, 7, 0, 1, 1, 2, 5, 6];
    profile.snapshot(ANN, &[&shared[..], &own].concat()).unwrap();
    let expected = [
        // The mask of the own part.
        row("", 1, 0, 1),
        row("round", 1, 1, 0),
        // Slots, keys and the end; then flags, a slot and the end.
        row("seats", 2, 5, 3),
        row("seats.*", 3, 0, 1),
        row("seats.*.hp", 2, 3, 0),
        row("seats.*.secret", 1, 0, 1),
        row("hands", 1, 0, 2),
        row("hands.*.cards", 1, 0, 1),
        row("hands.*.cards.*", 2, 0, 2),
        row("log", 1, 1, 0),
        row("log.*", 3, 3, 0),
        row("last", 1, 2, 0),
    ];
    assert_eq!(rows(&profile, |field| field.snapshots), expected);
    assert_eq!(rows(&profile, |field| field.patches), []);
    assert_eq!(profile.snapshots(), FieldCounts { writes: 1, shared: 15, own: 11 });
    let types: Vec<_> =
        profile.fields().into_iter().map(|field| (field.path, field.of)).take(5).collect();
    let known = |path: &str, of: &str| (path.to_owned(), of.to_owned());
    let expected = [
        known("", "Table"),
        known("round", "u32"),
        known("seats", "map"),
        known("seats.*", "Seat"),
        known("seats.*.hp", "i32"),
    ];
    assert_eq!(types, expected);
}

#[test]
fn the_bytes_of_a_column_count_for_its_field() {
    let mut profile = StateProfile::new(&Table::schema()).unwrap();
    profile.snapshot(BOB, &[1, 1, 2, 5, 1, 10, 4, 1, 11, 4, 1, 12, 4, 0, 0, 0]).unwrap();
    profile.patch(BOB, &[2, 8, 1, 2, 0, 4, 1, 3, 0xbe, 1, 0xd4, 2]).unwrap();
    let expected = [
        row("", 1, 1, 0),
        row("seats", 1, 5, 0),
        row("seats.*", 4, 1, 0),
        row("seats.*.hp", 4, 5, 0),
    ];
    assert_eq!(rows(&profile, |field| field.patches), expected);
    // Three of four are of other players.
    let fields = profile.fields();
    let savings = &fields.iter().find(|field| field.path == "seats.*.hp").unwrap().savings;
    assert_eq!(savings.iter().find(|saving| saving.to == "owner").unwrap().patches, 4);
}

#[test]
fn a_refused_body_is_not_counted() {
    let mut profile = StateProfile::new(&Table::schema()).unwrap();
    let error = profile.patch(ANN, &[1, 9]).unwrap_err().to_string();
    assert_eq!(error, "a patch was received before the first snapshot");
    profile.snapshot(ANN, &[1, 0, 0]).unwrap_err();
    profile.snapshot(ANN, &[1, 0, 0, 0]).unwrap();
    profile.patch(ANN, &[3, 9, 4, 1]).unwrap_err();
    let error = profile.patch(ANN, &[1, 9]).unwrap_err().to_string();
    assert_eq!(error, "an earlier patch could not be applied: a snapshot is needed");
    profile.snapshot(ANN, &[2, 0, 0, 0]).unwrap();
    profile.patch(ANN, &[1, 9]).unwrap();
    profile.forget(ANN);
    profile.patch(ANN, &[1, 9]).unwrap_err();
    assert_eq!(profile.snapshots(), FieldCounts { writes: 2, shared: 8, own: 0 });
    assert_eq!(profile.patches(), FieldCounts { writes: 1, shared: 2, own: 0 });
}

/// Types as they were written first, and as savings propose.
#[derive(State, Default)]
struct Wide {
    spots: Map<u16, WideSpot>,
    wind: f64,
}

#[derive(State, Default)]
struct WideSpot {
    x: f64,
    y: f32,
    z: f64,
    gold: i32,
    level: u16,
    #[sync(quantize = 0.01)]
    heat: f32,
}

#[derive(State, Default)]
struct Narrow {
    spots: Map<u16, NarrowSpot>,
    #[sync(quantize = 0.001)]
    wind: f64,
}

#[derive(State, Default)]
struct NarrowSpot {
    #[sync(quantize = 0.01)]
    x: f64,
    #[sync(quantize = 0.1)]
    y: f32,
    z: f32,
    gold: u32,
    level: u8,
    #[sync(quantize = 0.1)]
    heat: f32,
}

const NARROWED: [(&str, &str); 7] = [
    ("spots.*.x", "quantized 0.01"),
    ("spots.*.y", "quantized 0.1"),
    ("spots.*.z", "f32"),
    ("spots.*.gold", "u32"),
    ("spots.*.level", "u8"),
    ("spots.*.heat", "quantized 0.1"),
    ("wind", "quantized 0.001"),
];

/// Changes both states in the same way, to values that both types hold.
fn change(wide: &mut Wide, narrow: &mut Narrow, dice: &mut Dice) {
    let wind = dice.pick(20_000) as f64 / 1000.0 - 10.0;
    (wide.wind, narrow.wind) = (wind, wind);
    let (is_moved, is_paid) = (!dice.once_in(4), !dice.once_in(3));
    for id in 0..dice.pick(12) as u16 {
        let (wide, narrow) = (wide.spots.get_or_default(id), narrow.spots.get_or_default(id));
        if is_moved {
            let tenths = dice.pick(4_000) as i16 - 2_000;
            wide.x = f64::from(tenths) / 100.0;
            wide.y = f32::from(tenths) / 10.0;
            wide.z = f64::from(tenths) / 8.0;
            wide.heat = f32::from(tenths.rem_euclid(300)) / 10.0;
            (narrow.x, narrow.y, narrow.z) = (wide.x, wide.y, wide.z as f32);
            narrow.heat = wide.heat;
        }
        if is_paid {
            (wide.gold, wide.level) = (dice.pick(200_000) as i32, dice.pick(256) as u16);
            (narrow.gold, narrow.level) = (wide.gold as u32, wide.level as u8);
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn another_type_saves_what_was_said(seed in any::<u64>(), syncs in 1..20) {
        let mut dice = Dice::new(seed);
        let mut wide = Counted::new(Wide::default(), &[ANN]);
        let mut narrow = Counted::new(Narrow::default(), &[ANN]);
        for _ in 0..syncs {
            change(&mut wide.state, &mut narrow.state, &mut dice);
            wide.sync(|_| {});
            narrow.sync(|_| {});
        }
        wide.snapshot(0);
        narrow.snapshot(0);
        let saved = |(snapshots, patches), (path, to)| {
            let fields = wide.profile.fields();
            let field = fields.iter().find(|field| field.path == path).unwrap();
            let saving = field.savings.iter().find(|saving| saving.to == to);
            // One that saves nothing is not named, unless it saves in the other kind of body.
            saving.map_or((snapshots, patches), |saving| {
                (snapshots + saving.snapshots, patches + saving.patches)
            })
        };
        let (snapshots, patches) = NARROWED.into_iter().fold((0, 0), saved);
        prop_assert_eq!(wide.snapshots.cast_signed() - snapshots, narrow.snapshots.cast_signed());
        prop_assert_eq!(wide.patches.cast_signed() - patches, narrow.patches.cast_signed());
    }
}

#[test]
fn only_types_that_hold_all_values_are_proposed() {
    let mut room = Counted::new(Wide::default(), &[ANN]);
    let mut set = |x: f64, gold: i32, level: u16| {
        room.sync(|wide| {
            let spot = wide.spots.get_or_default(1);
            (spot.x, spot.gold, spot.level) = (x, gold, level);
        });
    };
    set(1.5, 100, 200);
    set(2.5, 200, 201);
    assert_eq!(room.saved("spots.*.x", "f32"), Some((0, 8)));
    assert_eq!(room.saved("spots.*.x", "quantized 0.1"), Some((0, 14)));
    assert_eq!(room.saved("spots.*.gold", "u8"), Some((0, 2)));
    assert_eq!(room.saved("spots.*.gold", "u32"), Some((0, 1)));
    assert_eq!(room.saved("spots.*.level", "u8"), Some((0, 2)));
    room.sync(|wide| {
        let spot = wide.spots.get_or_default(1);
        (spot.x, spot.gold, spot.level) = (f64::INFINITY, -1, 256);
    });
    assert_eq!(room.saved("spots.*.x", "quantized 0.1"), None);
    assert_eq!(room.saved("spots.*.x", "f32"), Some((0, 12)));
    assert_eq!(room.saved("spots.*.gold", "u8"), None);
    assert_eq!(room.saved("spots.*.gold", "u32"), None);
    assert_eq!(room.saved("spots.*.level", "u8"), None);
}

#[derive(State, Default)]
struct Arena {
    tanks: Map<PlayerId, Tank>,
    crates: Map<u16, u8>,
}

#[derive(State, Default)]
struct Tank {
    ammo: u8,
    #[sync(owner)]
    plan: u8,
}

#[test]
fn the_policy_owner_saves_what_is_sent_of_other_players() {
    let mut room = Counted::new(Arena::default(), &[ANN, BOB, PlayerId(3)]);
    room.sync(|arena| {
        for player in 1..4 {
            arena.tanks.insert(PlayerId(player), Tank { ammo: 9, plan: 2 });
            arena.crates.insert(player as u16, 7);
        }
    });
    // Three players are sent three numbers each, of which two are of others.
    assert_eq!(room.field("tanks.*.ammo").patches.shared, 9);
    assert_eq!(room.saved("tanks.*.ammo", "owner"), Some((0, 6)));
    // The entries of all, without slots and keys.
    assert_eq!(room.saved("tanks", "owner"), Some((0, 6)));
    // It is the owner's already, and those have no owner.
    assert_eq!(room.saved("tanks.*.plan", "owner"), None);
    assert_eq!(room.saved("crates", "owner"), None);
    room.assert_complete();
}

#[test]
fn messages_and_events_count_by_name() {
    let message =
        |name: &'static str| MessageSchema { name: name.into(), of: Type::Text, reply: Type::U8 };
    let event = |name: &'static str| EventSchema { name: name.into(), of: Type::Text };
    let room = RoomProfile::new(&RoomSchema {
        state: Table::schema(),
        options: Type::Unit,
        messages: vec![message("say"), message("aim")],
        events: vec![event("said"), event("won")],
    })
    .unwrap();
    let mut profile = room.exchange;
    assert_eq!((profile.number("aim"), profile.number("ai")), (Some(1), None));
    profile.message(1, &[2, b'u', b'p']).unwrap();
    profile.message(1, &[0]).unwrap();
    profile.reply(1, &[7]).unwrap();
    // Both are sent one, Ann alone another, and each of them a third at another version.
    profile.event(ANN, 5, 0, &[1, b'a']).unwrap();
    profile.event(BOB, 5, 0, &[1, b'a']).unwrap();
    profile.event(ANN, 5, 0, &[1, b'b']).unwrap();
    profile.event(ANN, 6, 0, &[1, b'c']).unwrap();
    profile.event(BOB, 7, 0, &[1, b'c']).unwrap();
    let counts =
        |count, shared, own| MessageCounts { count, shared, own, ..MessageCounts::default() };
    let messages: Vec<_> = profile.messages().iter().map(|of| (&*of.name, of.counts)).collect();
    assert_eq!(messages, [("say", counts(0, 0, 0)), ("aim", counts(2, 0, 4))]);
    assert_eq!(profile.replies()[1].counts, counts(1, 0, 1));
    let events: Vec<_> = profile.events().iter().map(|of| (&*of.name, of.counts)).collect();
    assert_eq!(events, [("said", counts(5, 4, 6)), ("won", counts(0, 0, 0))]);
    let error = profile.event(ANN, 5, 2, &[]).unwrap_err().to_string();
    assert_eq!(error, "the room has no event with the number 2");
    let error = profile.message(2, &[]).unwrap_err().to_string();
    assert_eq!(error, "the room has no message with the number 2");
}
