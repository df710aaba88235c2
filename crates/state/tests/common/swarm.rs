//! A state with many small entries that change together, so patches use columns.

use playfield_state::{List, Map, PlayerId, Set, State};

use super::kinds::{Unit, UnitId};
use super::map::AnyKey;
use super::world::{Card, Root, Weather};
use super::{Dice, Model};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Swarm {
    pub(crate) motes: Map<u8, Mote>,
    pub(crate) dots: Map<u8, i16>,
    pub(crate) names: Map<u8, String>,
    pub(crate) guards: Map<PlayerId, Guard>,
    #[sync(owner)]
    pub(crate) scouts: Map<PlayerId, Scout>,
}

model!(Swarm { open motes, open dots, open names, open guards, own scouts, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Mote {
    pub(crate) at: Spot,
    pub(crate) hp: i32,
    pub(crate) kind: u8,
    pub(crate) awake: bool,
    pub(crate) follows: PlayerId,
    pub(crate) name: String,
    pub(crate) weather: Weather,
    pub(crate) held: Option<u8>,
    #[sync(hidden)]
    pub(crate) aim: i64,
    pub(crate) speed: f32,
    pub(crate) card: Card,
    pub(crate) weight: u64,
}

model!(Mote {
    open at,
    open hp,
    open kind,
    open awake,
    open follows,
    open name,
    open weather,
    open held,
    hidden aim,
    open speed,
    open card,
    open weight,
});

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) layer: i8,
}

model!(Spot { open x, open y, open layer, });

/// Some fields are owner fields.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) hp: i32,
    pub(crate) at: Spot,
    #[sync(owner)]
    pub(crate) orders: u16,
}

model!(Guard { open hp, open at, owner orders, });

/// All fields are owner fields: columns occur inside what only one player sees.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Scout {
    pub(crate) seen: Map<u8, Mote>,
    pub(crate) marks: Map<u8, u32>,
}

model!(Scout { open seen, open marks, });

impl Root for Swarm {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(8) {
            0 => fill(&mut self.motes, dice),
            1 => fill(&mut self.dots, dice),
            2 => fill(&mut self.scouts.get_or_default(PlayerId::any(dice)).seen, dice),
            3 | 4 => change_some(&mut self.motes, dice),
            5 => change_some(&mut self.dots, dice),
            6 => change_some(&mut self.scouts.get_or_default(PlayerId::any(dice)).seen, dice),
            _ => self.mutate(dice),
        }
    }
}

/// A state of which a typed copy can report the changes: only entries of maps keyed by player are
/// not for everyone.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Fair {
    pub(crate) motes: Map<u8, Mote>,
    pub(crate) dots: Map<u8, i16>,
    pub(crate) names: Map<u8, String>,
    pub(crate) units: Map<UnitId, Unit>,
    pub(crate) squads: List<Unit>,
    pub(crate) pair: [Mote; 2],
    pub(crate) grid: Map<u32, Map<i64, Card>>,
    pub(crate) rows: Map<String, List<f64>>,
    pub(crate) log: List<String>,
    pub(crate) nested: List<List<u8>>,
    pub(crate) weather: Weather,
    pub(crate) last: Option<Card>,
    pub(crate) lead: Option<Mote>,
    pub(crate) lit: Set<u8>,
    pub(crate) stalls: Map<u8, Stall>,
    pub(crate) rows_of_stalls: List<Stall>,
    #[sync(hidden)]
    pub(crate) seed: u64,
    #[sync(owner)]
    pub(crate) scouts: Map<PlayerId, Scout>,
}

model!(Fair {
    open motes,
    open dots,
    open names,
    open units,
    open squads,
    open pair,
    open grid,
    open rows,
    open log,
    open nested,
    open weather,
    open last,
    open lead,
    open lit,
    open stalls,
    open rows_of_stalls,
    hidden seed,
    own scouts,
});

impl Root for Fair {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(8) {
            0 => fill(&mut self.motes, dice),
            1 | 2 => change_some(&mut self.motes, dice),
            3 => change_some(&mut self.dots, dice),
            4 => change_some(&mut self.scouts.get_or_default(PlayerId::any(dice)).seen, dice),
            _ => self.mutate(dice),
        }
    }
}

/// A player sees their own order.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Stall {
    pub(crate) wares: u8,
    #[sync(owner)]
    pub(crate) orders: Map<PlayerId, Spot>,
}

model!(Stall { open wares, own orders, });

/// Inserts many entries.
fn fill<V: Model>(map: &mut Map<u8, V>, dice: &mut Dice) {
    let first = u8::any(dice);
    (first..first + 12).for_each(|key| drop(map.insert(key, V::random(dice))));
}

/// Changes many entries, most of them in the same fields.
fn change_some<V: Model>(map: &mut Map<u8, V>, dice: &mut Dice) {
    let (seed, odd) = (dice.roll(), dice.pick(5));
    for (_, value) in map.iter_mut() {
        match dice.pick(5) {
            0 => {}
            at if at == odd => value.mutate(dice),
            _ => value.mutate(&mut Dice::new(seed)),
        }
    }
}
