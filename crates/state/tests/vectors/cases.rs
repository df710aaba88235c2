//! One story for each construct of `docs/state.md`.

use std::collections::BTreeMap;

use playfield_state::{Bytes, Data, Key, List, Map, PlayerId, Set, State};
use serde_json::Value;

use super::story::story;

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);
const CID: PlayerId = PlayerId(300);

/// All stories by name.
pub(crate) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("numbers", numbers()),
        ("texts", texts()),
        ("steps", steps()),
        ("options", options()),
        ("arrays", arrays()),
        ("enums", enums()),
        ("maps", maps()),
        ("sets", sets()),
        ("owners", owners()),
        ("nested_owners", nested_owners()),
        ("views", views()),
        ("default_digests", default_digests()),
        ("columns", columns()),
        ("lists", lists()),
        ("refused", refused()),
    ]
}

#[derive(State, Default)]
struct Numbers {
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: i8,
    f: i16,
    g: i32,
    h: i64,
    i: f32,
    j: f64,
    k: bool,
    l: PlayerId,
    #[sync(hidden)]
    m: u8,
}

fn numbers() -> Value {
    story::<Numbers>(
        "Integers of all widths, floats, bool, a player; the hidden field does not show.",
        &[1],
        &[
            ("all at their defaults", |_| {}),
            ("the greatest", |state| {
                *state = Numbers {
                    a: u8::MAX,
                    b: u16::MAX,
                    c: u32::MAX,
                    d: u64::MAX,
                    e: i8::MAX,
                    f: i16::MAX,
                    g: i32::MAX,
                    h: i64::MAX,
                    i: f32::INFINITY,
                    j: f64::MAX,
                    k: true,
                    l: PlayerId(u64::MAX),
                    m: 1,
                };
            }),
            ("the least", |state| {
                *state = Numbers {
                    e: i8::MIN,
                    f: i16::MIN,
                    g: i32::MIN,
                    h: i64::MIN,
                    i: f32::MIN,
                    j: f64::NEG_INFINITY,
                    m: 2,
                    ..Numbers::default()
                };
            }),
            ("integers past 2^53 - 1, a NaN, minus nought, a short float", |state| {
                (state.d, state.h) = ((1 << 53) - 1, -(1 << 53));
                (state.i, state.j) = (0.1, f64::NAN);
            }),
            ("minus nought is another than nought", |state| state.j = -0.0),
        ],
        &[
            ("a bool is 0 or 1", "00 04 02"),
            ("an integer that takes more bytes than it needs", "02 00 80 00"),
        ],
    )
}

#[derive(State, Default)]
struct Texts {
    name: String,
    blob: Bytes,
}

fn texts() -> Value {
    story::<Texts>(
        "Texts and byte strings.",
        &[1],
        &[
            ("empty ones", |_| {}),
            ("a text with escapes and beyond ASCII", |state| state.name = "\"a\\\n\u{1}é😀".into()),
            ("bytes", |state| state.blob = vec![0, 255, 1].into()),
            ("a long text", |state| state.name = "x".repeat(200)),
        ],
        &[("a text is UTF-8", "01 02 c3 28"), ("a length past the end", "01 7f 61")],
    )
}

#[derive(State, Default)]
struct Steps {
    #[sync(quantize = 0.01)]
    free: f64,
    #[sync(quantize = 0.5, range = -4.0..=4.0)]
    ranged: f32,
    #[sync(angle = 0.01)]
    angle: f64,
}

fn steps() -> Value {
    story::<Steps>(
        "Floats that travel as numbers of steps.",
        &[1],
        &[
            ("all at nought", |_| {}),
            ("some way off", |state| {
                (state.free, state.ranged, state.angle) = (-12.344, 3.2, 3.0);
            }),
            ("less than half a step, which is not sent, and past the ends", |state| {
                (state.free, state.ranged, state.angle) = (-12.343, 100.0, -3.0);
            }),
        ],
        &[("more steps than the range has", "02 11"), ("more steps than a turn has", "04 f6 04")],
    )
}

#[derive(State, Default)]
struct Options {
    number: Option<u32>,
    point: Option<Point>,
}

#[derive(State, Default, Clone)]
struct Point {
    x: i32,
    y: i32,
}

fn options() -> Value {
    story::<Options>(
        "Options of a number and of a struct.",
        &[1],
        &[
            ("nothing", |_| {}),
            ("both are there", |state| {
                *state = Options { number: Some(7), point: Some(Point { x: 1, y: -1 }) };
            }),
            ("one field of what is there", |state| {
                state.point = Some(Point { x: 1, y: -2 });
            }),
            ("nothing again", |state| *state = Options::default()),
        ],
        &[
            ("an option begins with 0, 1 or 2", "01 03"),
            ("a patch of what is not there", "02 02 01 02"),
        ],
    )
}

#[derive(State, Default)]
struct Arrays {
    few: [u16; 3],
    many: [bool; 20],
    points: [Point; 2],
}

fn arrays() -> Value {
    story::<Arrays>(
        "Arrays: the mask has a bit for each element.",
        &[1],
        &[
            ("all at their defaults", |_| {}),
            ("the last of few and of many", |state| (state.few[2], state.many[19]) = (500, true)),
            ("a field of an element", |state| state.points[1].x = -3),
        ],
        &[("a bit past the last element", "01 08 01")],
    )
}

#[derive(State, Data, Default, Clone)]
enum Phase {
    #[default]
    Waiting,
    Playing {
        turn: PlayerId,
        order: Vec<PlayerId>,
    },
    Won(PlayerId),
    Drawn(u8, u8),
    Scored(Score),
}

#[derive(Data, Default, Clone)]
struct Score {
    points: BTreeMap<u8, i16>,
    best: Option<f32>,
}

#[derive(State, Default)]
struct Enums {
    phase: Phase,
}

fn enums() -> Value {
    story::<Enums>(
        "Enums travel whole.",
        &[1],
        &[
            ("without fields", |_| {}),
            ("with named fields", |state| {
                state.phase = Phase::Playing { turn: BOB, order: vec![ANN, BOB] }
            }),
            ("one of its fields is another", |state| {
                state.phase = Phase::Playing { turn: ANN, order: vec![ANN, BOB] };
            }),
            ("with one field without a name", |state| state.phase = Phase::Won(BOB)),
            ("with two", |state| state.phase = Phase::Drawn(3, 4)),
            ("with a struct, in which a map travels whole", |state| {
                state.phase =
                    Phase::Scored(Score { points: [(2, -1), (1, 300)].into(), best: Some(0.1) });
            }),
        ],
        &[("a variant that is not there", "01 05")],
    )
}

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct UnitId(u16);

#[derive(State, Default)]
struct Maps {
    words: Map<String, u32>,
    units: Map<UnitId, Unit>,
}

#[derive(State, Default, Clone)]
struct Unit {
    at: Point,
    name: String,
    marks: Map<i8, bool>,
}

fn unit(x: i32) -> Unit {
    Unit { at: Point { x, y: 0 }, name: format!("unit {x}"), marks: Map::new() }
}

fn maps() -> Value {
    story::<Maps>(
        "Maps: slots are given in the order of keys, the lowest first, and used again.",
        &[1],
        &[
            ("three entries, two entries", |state| {
                state.words = [("b", 1), ("a", 2), ("é", 3)]
                    .map(|(key, value)| (key.into(), value))
                    .into_iter()
                    .collect();
                state.units = [(7, unit(1)), (3, unit(2))]
                    .map(|(key, value)| (UnitId(key), value))
                    .into_iter()
                    .collect();
            }),
            ("a value, and a field inside an entry", |state| {
                *state.words.get_or_default("b".into()) = 10;
                state.units.get_or_default(UnitId(7)).at.y = 5;
            }),
            ("one goes, and two come, of which one takes its slot", |state| {
                state.words.remove("a");
                state.words.extend([("z".into(), 1), ("c".into(), 2)]);
            }),
            ("a map inside an entry", |state| {
                state.units.get_or_default(UnitId(3)).marks.extend([(-1, true), (1, false)]);
            }),
            ("an entry is removed and put back as it was, which sends nothing of it", |state| {
                let unit = state.units.remove(&UnitId(7)).unwrap();
                state.units.insert(UnitId(7), unit);
                *state.words.get_or_default("c".into()) = 3;
            }),
            ("all go", |state| {
                state.words.clear();
                state.units.clear();
            }),
            ("and some come again", |state| {
                state.words.insert("b".into(), 0);
                state.units.insert(UnitId(1), unit(9));
            }),
        ],
        &[
            ("a flag that there is not", "01 20"),
            ("a change in an empty slot", "01 04 05 01 00"),
            ("a key in two slots", "01 02 02 01 62 05 00"),
            ("a slot past the limit", "01 02 81 80 40 01 78 05 00"),
            ("no end of a section", "01 04 01 05"),
        ],
    )
}

#[derive(State, Default)]
struct Sets {
    tags: Set<String>,
    here: Set<PlayerId>,
}

fn sets() -> Value {
    story::<Sets>(
        "Sets: maps of which the values take no bytes.",
        &[1],
        &[
            ("some", |state| {
                state.tags.extend(["x".to_owned(), "y".to_owned()]);
                state.here.insert(BOB);
            }),
            ("one goes, one comes", |state| {
                state.tags.remove("x");
                state.here.insert(CID);
            }),
        ],
        &[],
    )
}

#[derive(State, Default)]
struct Owners {
    seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    #[sync(mask = tens)]
    score: u32,
}

#[derive(State, Default)]
struct Seat {
    hp: i32,
    #[sync(owner)]
    secret: u8,
    #[sync(owner)]
    notes: Map<u8, String>,
}

#[derive(State, Default)]
struct Hand {
    cards: List<u8>,
}

fn tens(score: &u32) -> u32 {
    score / 10 * 10
}

fn owners() -> Value {
    story::<Owners>(
        "Fields that are their owner's, one's own entry, a mask; seen by player 1, by player 2, and by player 9, who has nothing.",
        &[1, 2, 9],
        &[
            ("two seats, and a hand for each", |state| {
                for (player, secret) in [(ANN, 7), (BOB, 8)] {
                    state.seats.insert(player, Seat { hp: 10, secret, ..Seat::default() });
                    state.hands.insert(player, Hand { cards: [1, 2].into_iter().collect() });
                }
                state.score = 17;
            }),
            ("secrets", |state| {
                state.seats.get_or_default(ANN).secret = 9;
                state.seats.get_or_default(BOB).notes.insert(1, "psst".into());
                state.score = 19;
            }),
            ("a card for player 1, a point for player 2, and the score that shows", |state| {
                state.hands.get_or_default(ANN).cards.push(3);
                state.seats.get_or_default(BOB).hp = 11;
                state.score = 20;
            }),
            ("player 1 goes with all that is theirs", |state| {
                state.seats.remove(&ANN);
                state.hands.remove(&ANN);
            }),
            ("and comes again", |state| {
                state.seats.insert(ANN, Seat { hp: 1, secret: 3, ..Seat::default() });
                state.hands.insert(ANN, Hand::default());
            }),
        ],
        &[],
    )
}

#[derive(State, Default)]
struct NestedOwners {
    #[sync(owner)]
    safes: Map<PlayerId, Safe>,
}

#[derive(State, Default)]
struct Safe {
    gold: u32,
    #[sync(owner)]
    code: u16,
    silver: u32,
    #[sync(owner)]
    note: String,
    locked: bool,
}

fn nested_owners() -> Value {
    story::<NestedOwners>(
        "Owner fields inside an owner field: a whole value has the open fields, then a mask with a bit for each field of the struct, open ones included, of which only those of owner fields are set. \
         Seen by players 1 and 2.",
        &[1, 2],
        &[
            ("a safe for player 1", |state| {
                let safe = Safe { gold: 5, code: 300, silver: 7, note: "up".into(), locked: true };
                state.safes.insert(ANN, safe);
            }),
            ("a safe for player 2, without a note", |state| {
                let safe = Safe { gold: 1, code: 9, ..Safe::default() };
                state.safes.insert(BOB, safe);
            }),
            ("an open field and an owner field change", |state| {
                let safe = state.safes.get_or_default(ANN);
                (safe.silver, safe.note) = (8, "down".into());
            }),
            ("all of it is replaced", |state| {
                state.safes.remove(&ANN);
                state.safes.insert(ANN, Safe { locked: true, ..Safe::default() });
            }),
        ],
        &[],
    )
}

#[derive(State, Default)]
struct Views {
    avatars: Map<PlayerId, Avatar>,
    #[sync(view = near, viewer = avatars)]
    things: Map<u16, Thing>,
    #[sync(view = at_home, viewer = avatars)]
    chest: Chest,
}

#[derive(State, Default)]
struct Avatar {
    x: i32,
}

#[derive(State, Default)]
struct Thing {
    x: i32,
    marks: Map<u8, u8>,
}

#[derive(State, Default)]
struct Chest {
    coins: u32,
    open: bool,
}

fn near(thing: &Thing, viewer: &Avatar) -> bool {
    thing.x.abs_diff(viewer.x) <= 10
}

fn at_home(_: &Chest, viewer: &Avatar) -> bool {
    viewer.x == 0
}

fn views() -> Value {
    story::<Views>(
        "What functions say is seen: entries of a map one by one, another value as a whole. Seen by players 1 and 2; player 9 has no entry among those who look.",
        &[1, 2, 9],
        &[
            ("player 1 at 0, player 2 at 100, things at 5, 50 and 95", |state| {
                state.avatars.extend([(ANN, Avatar { x: 0 }), (BOB, Avatar { x: 100 })]);
                for (number, x) in [(1, 5), (2, 50), (3, 95)] {
                    state.things.insert(number, Thing { x, marks: Map::new() });
                }
                state.chest.coins = 3;
            }),
            ("what is in view changes, and what is not", |state| {
                state.things.get_or_default(1).x = 6;
                state.things.get_or_default(2).x = 51;
                state.chest.coins = 4;
            }),
            ("player 1 goes to 50: what is there enters, what was there leaves", |state| {
                state.avatars.get_or_default(ANN).x = 50;
            }),
            ("a map inside what is in view: it is sent whole", |state| {
                state.things.get_or_default(2).marks.extend([(4, 1), (2, 1)]);
            }),
            ("things move into view and out of it", |state| {
                state.things.get_or_default(1).x = 45;
                state.things.get_or_default(2).x = 90;
            }),
            ("player 1 comes home", |state| state.avatars.get_or_default(ANN).x = 0),
            ("player 1 goes for good", |state| {
                state.avatars.remove(&ANN);
            }),
        ],
        &[],
    )
}

#[derive(State, Default)]
struct DefaultDigests {
    posts: Map<PlayerId, Post>,
    #[sync(view = knows, viewer = posts)]
    lantern: Lamp,
}

#[derive(State, Default)]
struct Post {
    knows: bool,
    #[sync(owner)]
    lamp: Lamp,
    #[sync(owner)]
    mood: Mood,
    #[sync(owner)]
    coins: u8,
}

#[derive(State)]
struct Lamp {
    level: u8,
    name: String,
    marks: Map<u8, u8>,
}

impl Default for Lamp {
    fn default() -> Self {
        Self { level: 3, name: "lamp".to_owned(), marks: [(1, 1)].into_iter().collect() }
    }
}

#[derive(State, Data, Clone, Default)]
enum Mood {
    Calm,
    #[default]
    Keen,
}

fn knows(_: &Lamp, viewer: &Post) -> bool {
    viewer.knows
}

fn default_digests() -> Value {
    story::<DefaultDigests>(
        "Fields that not everyone sees, with defaults that do not follow from their types: the schema states the digests of those, which count as nothing. \
         Seen by players 1 and 2; player 2 never knows.",
        &[1, 2],
        &[
            ("two posts, and all at its default", |state| {
                state.posts.get_or_default(ANN);
                state.posts.get_or_default(BOB);
            }),
            ("player 1 sees the lantern", |state| state.posts.get_or_default(ANN).knows = true),
            ("without its marks the lantern is at its default", |state| {
                state.lantern.marks.clear();
            }),
            ("what is each player's own is at the defaults of its types", |state| {
                for post in state.posts.values_mut() {
                    (post.lamp.level, post.lamp.name) = (0, String::new());
                    post.lamp.marks.clear();
                    (post.mood, post.coins) = (Mood::Calm, 1);
                }
            }),
            ("and back", |state| {
                for post in state.posts.values_mut() {
                    (post.lamp, post.mood, post.coins) = (Lamp::default(), Mood::Keen, 0);
                }
                state.lantern.level = 0;
            }),
            ("player 1 no longer sees the lantern", |state| {
                state.posts.get_or_default(ANN).knows = false;
            }),
        ],
        &[],
    )
}

#[derive(State, Default)]
struct Columns {
    units: Map<u16, Mover>,
}

#[derive(State, Default)]
struct Mover {
    at: Point,
    speed: f32,
    hp: u8,
    #[sync(quantize = 0.1)]
    way: f64,
    #[sync(quantize = 0.25, range = -1.0..=1.0)]
    tilt: f32,
    #[sync(angle = 0.1)]
    heading: f64,
    phase: Phase,
    marks: [bool; 3],
    name: String,
}

fn columns() -> Value {
    story::<Columns>(
        "Entries that changed in the same fields, in columns: sets of slots in runs and as bits, frames of reference, values one by one.",
        &[1],
        &[
            ("twenty units", |state| {
                for number in 0..20 {
                    let mover =
                        Mover { hp: 100, name: format!("unit {number}"), ..Mover::default() };
                    state.units.insert(number, mover);
                }
            }),
            ("hit points of all", |state| {
                state.units.iter_mut().for_each(|(number, unit)| unit.hp -= (number % 7) as u8);
            }),
            ("positions of every other, speeds of four", |state| {
                for (number, unit) in &mut state.units {
                    if number % 2 == 0 {
                        unit.at.x += i32::from(*number) - 5;
                    }
                    if *number >= 16 {
                        unit.speed = f32::from(*number);
                    }
                }
            }),
            ("a value that lies far off", |state| {
                for (number, unit) in state.units.iter_mut().take(5) {
                    unit.at.y = if *number == 0 { i32::MAX } else { 1 };
                }
            }),
            ("steps, and names", |state| {
                for (number, unit) in state.units.iter_mut().take(4) {
                    (unit.way, unit.name) = (f64::from(*number) / 3.0, format!("number {number}"));
                }
            }),
            ("floats alone", |state| {
                state
                    .units
                    .iter_mut()
                    .skip(5)
                    .for_each(|(number, unit)| unit.speed = 0.1 * f32::from(*number));
            }),
            ("ranges and angles", |state| {
                for (number, unit) in &mut state.units {
                    (unit.tilt, unit.heading) =
                        (f32::from(*number) / 10.0 - 1.0, f64::from(*number) / 4.0);
                }
            }),
            ("enums, and arrays", |state| {
                state
                    .units
                    .iter_mut()
                    .take(6)
                    .for_each(|(number, unit)| unit.phase = Phase::Drawn(1, *number as u8));
                state
                    .units
                    .iter_mut()
                    .skip(10)
                    .for_each(|(number, unit)| unit.marks[(number % 3) as usize] = true);
            }),
            ("a flag of all", |state| {
                state.units.iter_mut().for_each(|(_, unit)| unit.marks[0] ^= true);
            }),
            ("three are too few", |state| {
                state.units.iter_mut().take(3).for_each(|(_, unit)| unit.hp = 1);
            }),
        ],
        &[
            ("no groups", "01 08 00"),
            ("nine groups", "01 08 09"),
            ("a width past 65", "01 08 01 02 00 05 04 42 00"),
            ("a slot that is empty", "01 08 01 02 14 04 04 00 01"),
        ],
    )
}

#[derive(State, Default)]
struct Lists {
    log: List<u8>,
    path: List<Point>,
}

fn lists() -> Value {
    story::<Lists>(
        "Lists: elements in place, insertions, removals, moves, an order, the whole.",
        &[1],
        &[
            ("ten numbers, three points", |state| {
                state.log = (10..20).collect();
                state.path = (0..3).map(|x| Point { x, y: 0 }).collect();
            }),
            ("one number, a field of one point", |state| {
                state.log[4] = 1;
                state.path[1].y = 9;
            }),
            ("one goes from the front, one comes at the end", |state| {
                state.log.remove(0);
                state.log.push(77);
            }),
            ("one moves", |state| state.log.move_to(7, 1)),
            ("two change places", |state| state.log.swap(0, 5)),
            ("all are sorted", |state| state.log.sort()),
            ("turned round, and one changed", |state| {
                state.log.reverse();
                state.path.push(Point { x: 5, y: 5 });
            }),
            ("another list", |state| state.log = (100..150).collect()),
            ("", |state| state.path.reverse()),
            ("", |state| state.path.push(Point { x: 7, y: 7 })),
            ("", |state| state.path.reverse()),
            ("", |state| state.path.sort_by_key(|point| point.y)),
            ("", |state| state.path.reverse()),
            ("", |state| {
                state.path.remove(0);
            }),
            ("", |state| state.path.reverse()),
            ("", |state| state.path.sort_by_key(|point| point.x)),
            ("", |state| state.path.reverse()),
            ("more happened to the path than is kept of it: it is sent whole", |state| {
                state.path[0].x = 1;
            }),
            ("nothing", |state| state.log.clear()),
        ],
        &[
            ("a list's patch begins with 0, 1 or 2", "01 03"),
            ("an index past the end", "02 01 09 01 02 00"),
            ("a removal past the end", "02 02 04 04 00 00"),
            ("an element that came and is not sent", "02 02 05 00 00 00"),
            ("an order that names an element twice", "02 02 13 00 01 01 03 00 00"),
        ],
    )
}

#[derive(State, Default)]
struct Root {
    round: u8,
    name: String,
}

fn refused() -> Value {
    story::<Root>(
        "Bodies that are no bodies at all.",
        &[1],
        &[("the beginning", |_| {}), ("another round", |state| state.round = 1)],
        &[
            ("nothing", ""),
            ("a bit for a field that there is not", "04"),
            ("a field that is not there", "01"),
            ("bytes left over", "01 05 00 00"),
            ("a length of eleven bytes", "02 ff ff ff ff ff ff ff ff ff ff 01"),
        ],
    )
}
