//! States of about 1 MB.

use playfield_state::{Data, List, Map, PlayerId, State};

use crate::harness::dice::mixed;

/// A game: many small entries of numbers, each with a short name.
#[derive(State, Default, Clone, PartialEq, Debug)]
pub(crate) struct Game {
    round: u32,
    pub(crate) units: Map<u32, Unit>,
    #[sync(hidden)]
    seeds: [u64; 4],
}

/// One of them.
#[derive(State, Default, Clone, PartialEq, Debug)]
pub(crate) struct Unit {
    name: String,
    owner: PlayerId,
    #[sync(quantize = 0.01)]
    pub(crate) x: f32,
    #[sync(quantize = 0.01)]
    y: f32,
    #[sync(angle = 0.01)]
    facing: f32,
    speed: [f32; 2],
    hp: u16,
    kind: Kind,
    #[sync(hidden)]
    target: Option<u32>,
}

/// The kind of a unit.
#[derive(State, Data, Default, Clone, PartialEq, Debug)]
enum Kind {
    #[default]
    Scout,
    Tank {
        armor: u16,
    },
}

/// A whiteboard: strokes of some dozen points.
#[derive(State, Default, Clone, PartialEq, Debug)]
pub(crate) struct Whiteboard {
    strokes: Map<u32, Stroke>,
}

/// One of them.
#[derive(State, Default, Clone, PartialEq, Debug)]
struct Stroke {
    author: PlayerId,
    color: u32,
    points: List<[f32; 2]>,
}

/// A document: paragraphs of some hundred bytes.
#[derive(State, Default, Clone, PartialEq, Debug)]
pub(crate) struct Text {
    title: String,
    paragraphs: List<String>,
}

fn float(value: u64) -> f32 {
    (mixed(value) % 1_000_000) as f32 / 1000.0
}

impl Game {
    /// With so many units, of about 40 bytes each.
    pub(crate) fn new(units: u32) -> Self {
        let unit = |number: u32| {
            let dice = mixed(number.into());
            Unit {
                name: format!("Unit {number}"),
                owner: PlayerId(dice % 100),
                x: float(dice),
                y: float(dice + 1),
                facing: float(dice + 2) / 500.0,
                speed: [float(dice + 3), float(dice + 4)],
                hp: (dice % 1000) as u16,
                kind: if dice.is_multiple_of(3) {
                    Kind::Tank { armor: (dice % 500) as u16 }
                } else {
                    Kind::Scout
                },
                target: dice.is_multiple_of(5).then_some((dice >> 40) as u32),
            }
        };
        let units = (0..units).map(|number| (number * 3, unit(number))).collect();
        Self { round: 7, units, seeds: [mixed(1), mixed(2), mixed(3), mixed(4)] }
    }
}

impl Whiteboard {
    /// With so many strokes, of about 260 bytes each.
    pub(crate) fn new(strokes: u32) -> Self {
        let stroke = |number: u32| {
            let dice = mixed(number.into());
            let point = |place| [float(dice ^ place), float(dice ^ (place << 20))];
            Stroke {
                author: PlayerId(dice % 10),
                color: dice as u32 >> 8,
                points: (0..32).map(point).collect(),
            }
        };
        Self { strokes: (0..strokes).map(|number| (number, stroke(number))).collect() }
    }
}

impl Text {
    /// With so many paragraphs, of about 400 bytes each.
    pub(crate) fn new(paragraphs: u32) -> Self {
        let paragraph = |number: u32| {
            let words = (0..57).map(|word| mixed(u64::from(number * 64 + word)) % 1_000_000);
            words.map(|word| format!("{word:06} ")).collect::<String>()
        };
        Self { title: "A document".into(), paragraphs: (0..paragraphs).map(paragraph).collect() }
    }
}
