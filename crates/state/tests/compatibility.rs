//! The copy of an older build, updated by transcoded bodies, is the state as its player sees it,
//! reduced to what that build knows.

use crate::common;

use common::Dice;
use playfield_state::{
    Data, Format, Key, List, Map, Mirror, PlayerId, Set, State, StateTranscoder, Tracker, Tracking,
    Transcoder, view,
};
use playfield_wire::schema::{Policy, RoomSchema, Type};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;

/// The types that the client was built with.
mod old {
    use super::{Data, List, Map, PlayerId, Set, State, UnitId, lit, near};

    #[derive(State, Default, Debug)]
    pub(crate) struct World {
        pub(crate) round: u32,
        pub(crate) seats: Map<PlayerId, Seat>,
        #[sync(owner)]
        pub(crate) hands: Map<PlayerId, Hand>,
        #[sync(owner)]
        pub(crate) keys: Set<PlayerId>,
        pub(crate) log: List<Line>,
        #[sync(view = near, viewer = seats)]
        pub(crate) units: Map<UnitId, Unit>,
        #[sync(view = lit, viewer = seats)]
        pub(crate) lamp: Lamp,
        pub(crate) weather: Weather,
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Seat {
        pub(crate) hp: i32,
        pub(crate) target: UnitId,
        #[sync(owner)]
        pub(crate) secret: u8,
        #[sync(owner)]
        pub(crate) notes: List<Line>,
        pub(crate) spot: [Spot; 2],
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Hand {
        pub(crate) cards: List<u8>,
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Line {
        pub(crate) text: String,
        pub(crate) by: Option<Spot>,
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Spot {
        pub(crate) x: i16,
        #[sync(angle = 0.1)]
        pub(crate) turn: f32,
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Unit {
        pub(crate) at: i32,
        pub(crate) name: String,
    }

    #[derive(State, Default, Debug)]
    pub(crate) struct Lamp {
        pub(crate) oil: u8,
    }

    #[derive(State, Data, Clone, Default, Debug)]
    pub(crate) enum Weather {
        #[default]
        Calm,
        Storm {
            force: u8,
        },
    }

    pub(crate) fn at(unit: &Unit) -> i32 {
        unit.at
    }
}

#[derive(Key, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct UnitId(u32);

/// The value that a view needs, in either build.
trait Sees {
    fn hp(&self) -> i32;
}

impl Sees for old::Seat {
    fn hp(&self) -> i32 {
        self.hp
    }
}

impl Sees for Seat {
    fn hp(&self) -> i32 {
        self.hp
    }
}

trait Seen {
    fn height(&self) -> i32;
}

impl Seen for old::Unit {
    fn height(&self) -> i32 {
        old::at(self)
    }
}

impl Seen for Unit {
    fn height(&self) -> i32 {
        self.at
    }
}

impl Seen for old::Lamp {
    fn height(&self) -> i32 {
        self.oil.into()
    }
}

impl Seen for Lamp {
    fn height(&self) -> i32 {
        self.oil.into()
    }
}

fn near<U: Seen, S: Sees>(unit: &U, seat: &S) -> bool {
    unit.height() < seat.hp()
}

/// Nobody sees a lamp with its default value, which is what the copies of others have.
fn lit<U: Seen, S: Sees>(lamp: &U, seat: &S) -> bool {
    lamp.height() > 0 && (lamp.height() + seat.hp()) % 2 == 0
}

#[derive(State, Default)]
struct World {
    fog: Map<u8, Spot>,
    #[sync(view = near, viewer = seats)]
    ghosts: Map<UnitId, Unit>,
    weather: Weather,
    #[sync(view = near, viewer = seats)]
    units: Map<UnitId, Unit>,
    log: List<Line>,
    #[sync(owner)]
    keys: Set<PlayerId>,
    #[sync(view = lit, viewer = seats)]
    lamp: Lamp,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    round: u32,
    #[sync(hidden)]
    deck: List<u8>,
    #[sync(owner)]
    purses: Map<PlayerId, u64>,
    seats: Map<PlayerId, Seat>,
}

#[derive(State, Default)]
struct Seat {
    #[sync(owner)]
    purse: u32,
    #[sync(owner)]
    notes: List<Line>,
    armour: u8,
    spot: [Spot; 2],
    #[sync(owner)]
    secret: u8,
    target: UnitId,
    hp: i32,
}

#[derive(State, Default)]
struct Hand {
    open: bool,
    #[sync(owner)]
    seen: List<u8>,
    cards: List<u8>,
}

#[derive(State, Default)]
struct Line {
    at: u64,
    by: Option<Spot>,
    text: String,
}

#[derive(State, Default)]
struct Spot {
    y: f64,
    #[sync(angle = 0.1)]
    turn: f32,
    x: i16,
}

#[derive(State, Default)]
struct Unit {
    kind: Weather,
    name: String,
    path: List<Spot>,
    at: i32,
}

#[derive(State, Default)]
struct Lamp {
    wicks: List<u8>,
    oil: u8,
}

#[derive(State, Data, Clone, Default)]
enum Weather {
    Storm {
        from: Option<String>,
        force: u8,
    },
    #[default]
    Calm,
}

fn spot(dice: &mut Dice) -> Spot {
    Spot { x: dice.pick(5) as i16, y: dice.pick(3) as f64, turn: dice.pick(6) as f32 }
}

fn line(dice: &mut Dice) -> Line {
    let by = dice.once_in(2).then(|| spot(dice));
    Line { at: dice.roll(), text: dice.pick(9).to_string(), by }
}

fn stir_lines(lines: &mut List<Line>, dice: &mut Dice) {
    let place = dice.pick(lines.len() + 1);
    match dice.pick(6) {
        0 | 1 => lines.insert(place, line(dice)),
        2 => drop(lines.remove(place)),
        3 if lines.len() > 1 => lines.swap(0, place % lines.len()),
        4 => lines.sort_by(|one, two| one.text.cmp(&two.text)),
        _ => {
            if let Some(line) = lines.get_mut(place) {
                match (&mut line.by, dice.pick(3)) {
                    (Some(by), 0) => by.x += 1,
                    (Some(by), 1) => by.y += 1.0,
                    (by, _) => *by = dice.once_in(2).then(|| spot(dice)),
                }
                line.at += 1;
            }
        }
    }
}

fn stir_units(units: &mut Map<UnitId, Unit>, dice: &mut Dice) {
    let id = UnitId(dice.pick(20) as u32);
    match dice.pick(5) {
        0 | 1 => {
            let unit = Unit { at: dice.pick(9) as i32, name: id.0.to_string(), ..Unit::default() };
            units.insert(id, unit);
        }
        2 => drop(units.remove(&id)),
        3 => units.values_mut().for_each(|unit| unit.at += dice.pick(3) as i32 - 1),
        _ => {
            if let Some(unit) = units.get_mut(&id) {
                unit.path.push(spot(dice));
                unit.kind = Weather::Calm;
                unit.name.push('x');
            }
        }
    }
}

impl World {
    fn change(&mut self, dice: &mut Dice) {
        let player = PlayerId(1 + dice.pick(8) as u64);
        match dice.pick(16) {
            0 => self.round += 1,
            1 => drop(self.fog.insert(dice.pick(9) as u8, spot(dice))),
            2 => {
                let from = dice.once_in(2).then(|| "sea".to_owned());
                self.weather = Weather::Storm { from, force: dice.pick(9) as u8 };
            }
            3 => self.weather = Weather::Calm,
            4 => stir_units(&mut self.units, dice),
            5 => stir_units(&mut self.ghosts, dice),
            6 | 7 => stir_lines(&mut self.log, dice),
            8 => {
                self.lamp.oil = dice.pick(4) as u8;
                self.lamp.wicks.push(1);
            }
            9 => {
                let hand = self.hands.get_or_default(player);
                hand.open = !hand.open;
                hand.seen.push(1);
                hand.cards.insert(0, dice.pick(9) as u8);
            }
            10 => {
                drop(self.hands.remove(&player));
                if !self.keys.insert(player) {
                    self.keys.remove(&player);
                }
                *self.purses.get_or_default(player) += 1;
                self.deck.push(0);
            }
            // Many entries that change in the same fields use columns.
            11 => self.seats.values_mut().for_each(|seat| {
                seat.hp += dice.pick(5) as i32 - 2;
                seat.armour = seat.armour.wrapping_add(1);
                seat.target = UnitId(seat.target.0 + 1);
            }),
            12 => self.seats.values_mut().for_each(|seat| {
                seat.spot[dice.pick(2)] = spot(dice);
            }),
            13 => drop(self.seats.remove(&player)),
            14 => {
                let seat = self.seats.get_or_default(player);
                seat.secret = seat.secret.wrapping_add(1);
                seat.purse += 1;
                stir_lines(&mut seat.notes, dice);
            }
            _ => self.seats.get_or_default(player).hp = dice.pick(9) as i32,
        }
    }
}

fn schema<T: State>() -> RoomSchema {
    RoomSchema { state: T::schema(), options: Type::Unit, messages: vec![], events: vec![] }
}

/// The part of a value that a type has.
fn cut(value: &Value, of: &Type) -> Value {
    match (value, of) {
        (Value::Null, _) => Value::Null,
        (value, Type::Option(of)) => cut(value, of),
        (Value::Array(values), Type::List(of) | Type::Array(of, _)) => {
            values.iter().map(|value| cut(value, of)).collect()
        }
        (Value::Object(members), Type::Map(_, of)) => {
            members.iter().map(|(key, value)| (key.clone(), cut(value, of))).collect()
        }
        (Value::Object(members), Type::Struct(of)) => {
            let known = of.fields.iter().filter(|field| field.policy != Policy::Hidden);
            let members = known.filter_map(|field| {
                Some((field.name.to_string(), cut(members.get(&*field.name)?, &field.of)))
            });
            members.collect()
        }
        (Value::Object(members), Type::Enum(of)) => {
            let (name, fields) = members.iter().next().unwrap();
            let variant = of.variants.iter().find(|variant| *variant.name == **name).unwrap();
            let fields = cut(fields, &Type::Struct(variant.clone()));
            Value::Object([(name.clone(), fields)].into_iter().collect())
        }
        (value, _) => value.clone(),
    }
}

/// A client that reads now and then.
struct Client {
    player: PlayerId,
    mirror: Mirror<old::World>,
    transcoder: StateTranscoder,
    version: u64,
    patience: usize,
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_copy_of_an_older_build_is_the_state_cut_down(seed in any::<u64>()) {
        let (node, client) = (schema::<World>(), schema::<old::World>());
        let transcoder = Transcoder::new(&node, &client).unwrap();
        let dice = &mut Dice::new(seed);
        let mut world = World::default();
        (0..dice.pick(60)).for_each(|_| world.change(dice));
        let mut tracker = Tracker::new(&mut world, Tracking::On);
        let mut clients: Vec<Client> = (1..=4)
            .map(|player| Client {
                player: PlayerId(player),
                mirror: Mirror::new(),
                transcoder: transcoder.state(PlayerId(player)),
                version: 0,
                patience: 1 + player as usize,
            })
            .collect();
        for round in 0..24 {
            (0..1 + dice.pick(12)).for_each(|_| world.change(dice));
            tracker.sync(&mut world);
            for client_at in clients.iter_mut().filter(|client| round % client.patience == 0) {
                let Client { player, mirror, transcoder, version, .. } = client_at;
                let (mut body, mut own) = (Vec::new(), Vec::new());
                if *version == 0 {
                    tracker.snapshot(*player, Format::Packed, &mut body);
                    transcoder.snapshot(&body, &mut own).unwrap();
                    mirror.snapshot(&own).unwrap();
                } else if tracker.patch(*player, *version, Format::Packed, &mut body) {
                    transcoder.patch(&body, &mut own).unwrap();
                    mirror.patch(&own).unwrap();
                }
                *version = tracker.version();
                let digest = tracker.digest(*player, Format::Packed);
                prop_assert_eq!(transcoder.digest(), Some(digest));
                // A copy has what was sent: quantized numbers, and the view of that time.
                let expected = cut(&view(&world, Some(*player)), &client.state);
                prop_assert_eq!(view(mirror.state(), Some(*player)), expected);
            }
        }
    }
}
