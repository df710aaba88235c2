//! The constructs, each with a typical change.

use playfield_state::{Data, Format, List, Map, PlayerId, Set, State};

use super::Options;
use super::measure::{Measured, VIEWER, measure, measure_digest};

/// One construct.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Measures it.
    pub(super) measure: fn(&Options) -> Measured,
}

/// The number of values that change per sync, in cases with many changes.
const MANY: u32 = 100;

#[derive(State, Default)]
struct Root {
    number: i32,
    float: f64,
    #[sync(quantize = 0.01)]
    steps: f64,
    text: String,
    option: Option<u32>,
    phase: Phase,
    array: [u16; 8],
    units: Map<u32, Unit>,
    names: Map<String, u8>,
    tags: Set<u32>,
    log: List<u8>,
    path: List<Spot>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    seats: Map<PlayerId, Seat>,
    #[sync(view = seen, viewer = seats)]
    things: Map<u32, Unit>,
}

#[derive(State, Data, Default, Clone)]
enum Phase {
    #[default]
    Waiting,
    Playing {
        turn: u8,
    },
}

#[derive(State, Default, Clone)]
struct Unit {
    x: i32,
    y: i32,
    speed: f32,
    name: String,
    held: Option<Spot>,
}

#[derive(State, Default, Clone, PartialEq)]
struct Spot {
    x: i32,
    y: i32,
}

#[derive(State, Default)]
struct Hand {
    cards: List<u8>,
}

#[derive(State, Default)]
struct Seat {
    x: i32,
    #[sync(owner)]
    secret: u32,
}

fn seen(thing: &Unit, viewer: &Seat) -> bool {
    thing.y == viewer.x
}

/// A digest covers the entries that changed since the previous one.
fn digests(case: &mut impl FnMut(&'static str, fn(&Options) -> Measured)) {
    fn step(state: &mut Root, step: u32) {
        hundred(step).for_each(|number| state.units.get_or_default(number).x += 1);
    }
    case("digest in packed, a changed entry", |options| {
        measure_digest(options, Format::Packed, MANY, units, step)
    });
    case("digest in json, a changed entry", |options| {
        measure_digest(options, Format::Json, MANY, units, step)
    });
}

/// A thousand units. Each sync changes a hundred of them, in turn.
fn units(state: &mut Root) {
    state.units = (0..1_000).map(|number| (number, Unit::default())).collect();
}

fn hundred(step: u32) -> impl Iterator<Item = u32> {
    (0..MANY).map(move |place| (step * MANY + place) % 1_000)
}

fn one(options: &Options, step: impl FnMut(&mut Root, u32)) -> Measured {
    measure(options, 1, |_| {}, step)
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |name, measure| cases.push(Case { name, measure });
    fields(&mut case);
    maps(&mut case);
    lists(&mut case);
    own(&mut case);
    digests(&mut case);
    cases
}

fn fields(case: &mut impl FnMut(&'static str, fn(&Options) -> Measured)) {
    case("i32 of the root", |options| one(options, |state, step| state.number = step as i32 + 1));
    case("f64 of the root", |options| one(options, |state, _| state.float += 0.37));
    case("f64 quantized to 0.01", |options| one(options, |state, _| state.steps += 0.37));
    case("text of 16 bytes", |options| {
        one(options, |state, step| state.text = format!("{step:016}"))
    });
    case("option set and cleared", |options| {
        one(options, |state, step| state.option = (step % 2 == 0).then_some(step))
    });
    case("enum", |options| {
        one(options, |state, step| {
            state.phase =
                if step % 2 == 1 { Phase::Waiting } else { Phase::Playing { turn: step as u8 } };
        })
    });
    case("element of an array", |options| {
        one(options, |state, step| state.array[(step % 8) as usize] += 1)
    });
}

fn maps(case: &mut impl FnMut(&'static str, fn(&Options) -> Measured)) {
    case("entry's i32, in a column", |options| {
        measure(options, MANY, units, |state, step| {
            hundred(step).for_each(|number| state.units.get_or_default(number).x += 1);
        })
    });
    case("entry's two i32 and f32, in columns", |options| {
        measure(options, MANY, units, |state, step| {
            for number in hundred(step) {
                let unit = state.units.get_or_default(number);
                (unit.x, unit.y, unit.speed) = (unit.x + 1, unit.y - 1, unit.speed + 0.5);
            }
        })
    });
    case("entry's option, one at a time", |options| {
        measure(options, MANY, units, |state, step| {
            for number in hundred(step) {
                state.units.get_or_default(number).held.get_or_insert_default().x += 1;
            }
        })
    });
    case("entry touched, not changed", |options| {
        measure(options, MANY, units, |state, step| {
            for number in hundred(step) {
                let _touched = state.units.get_mut(&number);
            }
            state.number = step as i32 + 1; // guarantees a patch
        })
    });
    case("entry added or removed", |options| {
        measure(options, MANY, units, |state, step| {
            for number in (step / 2 * MANY..).take(MANY as usize) {
                if step % 2 == 0 {
                    state.units.insert(10_000 + number, Unit::default());
                } else {
                    state.units.remove(&(10_000 + number));
                }
            }
        })
    });
    case("entry with a text key, its u8", |options| {
        measure(
            options,
            MANY,
            |state: &mut Root| {
                state.names = (0..1_000).map(|number| (format!("name {number}"), 0)).collect();
            },
            |state, step| {
                for number in hundred(step) {
                    let value = state.names.get_or_default(format!("name {number}"));
                    *value = value.wrapping_add(1);
                }
            },
        )
    });
    case("set element added or removed", |options| {
        measure(
            options,
            MANY,
            |_| {},
            |state: &mut Root, step| {
                for number in 0..MANY {
                    if step % 2 == 0 {
                        state.tags.insert(number);
                    } else {
                        state.tags.remove(&number);
                    }
                }
            },
        )
    });
}

fn lists(case: &mut impl FnMut(&'static str, fn(&Options) -> Measured)) {
    fn path(state: &mut Root) {
        state.path = (0..50).map(|x| Spot { x, y: 0 }).collect();
        state.log = (0..50).collect();
    }
    case("list of 50: an element's field", |options| {
        measure(options, 1, path, |state, step| state.path[(step % 50) as usize].y += 1)
    });
    case("list of 50: one removed, one added", |options| {
        measure(options, 1, path, |state, step| {
            state.log.remove(0);
            state.log.push(step as u8);
        })
    });
    case("list of 50: one moved", |options| {
        measure(options, 1, path, |state, step| state.path.move_to((step % 40) as usize, 45))
    });
    case("list of 50: reversed", |options| {
        measure(options, 50, path, |state, _| state.path.reverse())
    });
}

fn own(case: &mut impl FnMut(&'static str, fn(&Options) -> Measured)) {
    fn mine(state: &mut Root) {
        state.hands.insert(VIEWER, Hand { cards: (0..10).collect() });
        state.seats.insert(VIEWER, Seat::default());
    }
    fn sights(state: &mut Root) {
        mine(state);
        state.things =
            (0..1_000).map(|number| (number, Unit { y: 1, ..Unit::default() })).collect();
        (0..MANY).for_each(|number| state.things.get_or_default(number).y = 0);
    }
    case("owner's entry: a card", |options| {
        measure(options, 1, mine, |state, step| {
            let card = &mut state.hands.get_or_default(VIEWER).cards[(step % 10) as usize];
            *card = card.wrapping_add(1);
        })
    });
    case("an owner field", |options| {
        measure(options, 1, mine, |state, _| state.seats.get_or_default(VIEWER).secret += 1)
    });
    case("in view: an entry's i32", |options| {
        measure(options, MANY, sights, |state, _| {
            (0..MANY).for_each(|number| state.things.get_or_default(number).x += 1);
        })
    });
    case("in view: entries enter or leave", |options| {
        measure(options, MANY, sights, |state, step| {
            for number in 0..MANY {
                state.things.get_or_default(number).y = i32::from(step % 2 == 0);
            }
        })
    });
    case("in view: all enter or leave", |options| {
        measure(options, 1_000, sights, |state, step| {
            state.seats.get_or_default(VIEWER).x = i32::from(step % 2 == 0);
        })
    });
}
