//! A state with the kinds of values that `World` lacks: arrays, byte strings, sets, custom keys,
//! masks and quantized numbers.

use playfield_state::{Bytes, Key, List, Map, PlayerId, Set, State};

use super::map::AnyKey;
use super::swarm::Spot;
use super::world::{Card, Item, Root, Slot};
use super::{Dice, Eye, Masked, Model, OwnModel};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Kinds {
    pub(crate) scores: [u32; 3],
    pub(crate) spots: [Spot; 2],
    pub(crate) blob: Bytes,
    pub(crate) tags: Set<String>,
    pub(crate) here: Set<PlayerId>,
    #[sync(owner)]
    pub(crate) ready: Set<PlayerId>,
    pub(crate) units: Map<UnitId, Unit>,
    pub(crate) captains: Map<Captain, Mate>,
    pub(crate) leader: UnitId,
    #[sync(mask = Masked::masked)]
    pub(crate) level: u8,
    #[sync(mask = Masked::masked)]
    pub(crate) cards: Map<u8, Card>,
    #[sync(mask = Masked::masked)]
    pub(crate) pile: List<Card>,
}

model!(Kinds {
    open scores,
    open spots,
    open blob,
    open tags,
    open here,
    own ready,
    open units,
    open captains,
    open leader,
    mask level,
    mask cards,
    mask pile,
});

impl Root for Kinds {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(4) {
            0 => self.units.mutate(dice),
            1 => {
                let seed = dice.roll();
                self.units.values_mut().for_each(|unit| unit.mutate(&mut Dice::new(seed)));
            }
            _ => self.mutate(dice),
        }
    }
}

#[derive(Key, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitId(pub(crate) u16);

#[derive(Key, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Captain(pub(crate) PlayerId);

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Unit {
    #[sync(quantize = 0.01)]
    pub(crate) x: f64,
    #[sync(quantize = 0.5, range = -4.0..=4.0)]
    pub(crate) y: f32,
    #[sync(angle = 0.01)]
    pub(crate) facing: f32,
    pub(crate) way: [f32; 2],
    pub(crate) flags: [bool; 20],
    pub(crate) kind: u8,
    #[sync(mask = Masked::masked)]
    pub(crate) level: u8,
    #[sync(mask = Masked::masked)]
    pub(crate) held: Option<Card>,
    pub(crate) owner: Captain,
}

model!(Unit {
    hundredth x,
    half y,
    turn facing,
    open way,
    open flags,
    open kind,
    mask level,
    mask held,
    open owner,
});

/// A captain's own values, in a map whose key is a newtype of a player.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Mate {
    pub(crate) items: [Item; 2],
    pub(crate) slots: [Slot; 9],
    #[sync(owner, quantize = 0.01)]
    pub(crate) worth: f64,
    #[sync(owner)]
    pub(crate) code: Bytes,
    #[sync(owner)]
    pub(crate) friends: Set<Captain>,
    #[sync(owner)]
    pub(crate) keys: Set<u8>,
    #[sync(mask = Masked::masked)]
    pub(crate) rank: u8,
    #[sync(hidden)]
    pub(crate) trust: [i64; 4],
}

model!(Mate { open items, open slots, ownhundredth worth, owner code, own friends, owner keys, mask rank, hidden trust, });

impl AnyKey for UnitId {
    fn any(dice: &mut Dice) -> Self {
        Self(dice.pick(12) as u16)
    }
}

impl AnyKey for Captain {
    fn any(dice: &mut Dice) -> Self {
        Self(PlayerId::any(dice))
    }
}

/// Keys are values too.
macro_rules! keys {
    ($($key:ty)*) => {$(
        impl Model for $key {
            fn mutate(&mut self, dice: &mut Dice) {
                *self = Self::any(dice);
            }
            fn scramble(&mut self, _: &mut Dice, _: Eye) {}
            fn redact(&self, _: Eye) -> Self {
                *self
            }
            fn equals(&self, other: &Self) -> bool {
                self == other
            }
        }
    )*};
}

keys! { UnitId Captain }

impl<T: Model, const N: usize> Model for [T; N]
where
    Self: Default,
{
    fn mutate(&mut self, dice: &mut Dice) {
        self[dice.pick(N)].mutate(dice);
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        self[dice.pick(N)].scramble(dice, eye);
    }
    fn redact(&self, eye: Eye) -> Self {
        self.each_ref().map(|item| item.redact(eye))
    }
    fn emptied(self) -> Self {
        self.map(T::emptied)
    }
    fn equals(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(one, two)| one.equals(two))
    }
}

impl Model for Bytes {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(3) {
            0 => self.clear(),
            _ => self.push(dice.roll() as u8),
        }
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {}
    fn redact(&self, _: Eye) -> Self {
        self.clone()
    }
    fn equals(&self, other: &Self) -> bool {
        self == other
    }
}

impl<K: AnyKey> Model for Set<K> {
    fn mutate(&mut self, dice: &mut Dice) {
        let element = K::any(dice);
        match dice.pick(8) {
            0..=3 => drop(self.insert(element)),
            4 | 5 => drop(self.remove(&element)),
            6 => self.retain(|candidate| *candidate < element),
            _ => *self = self.iter().filter(|candidate| **candidate != element).cloned().collect(),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, _: Eye) {
        let element = K::any(dice);
        if dice.once_in(3) {
            *self = self.clone();
        }
        if self.contains(&element) {
            self.remove(&element);
            self.insert(element);
        } else {
            self.insert(element.clone());
            self.remove(&element);
        }
    }
    fn redact(&self, _: Eye) -> Self {
        self.clone()
    }
    fn emptied(self) -> Self {
        Self::new()
    }
    fn equals(&self, other: &Self) -> bool {
        self == other
    }
}

impl<K: AnyKey> OwnModel for Set<K> {
    fn scramble_own(&mut self, dice: &mut Dice, eye: Eye) {
        let element = K::any(dice);
        if element.player() == Some(eye.viewer) {
            self.scramble(dice, eye);
        } else if dice.once_in(2) {
            self.insert(element);
        } else {
            self.remove(&element);
        }
    }
    fn redact_own(&self, eye: Eye) -> Self {
        self.iter().filter(|element| element.player() == Some(eye.viewer)).cloned().collect()
    }
}

impl Masked for u8 {
    fn masked(&self) -> Self {
        self & !3
    }
    fn scramble_masked(&mut self, dice: &mut Dice) {
        *self = self.masked() | dice.pick(4) as Self;
    }
}

impl Masked for Option<Card> {
    fn masked(&self) -> Self {
        self.as_ref().map(|card| Card { suit: card.suit, rank: 0 })
    }
    fn scramble_masked(&mut self, dice: &mut Dice) {
        if let Some(card) = self {
            card.rank = dice.roll() as i16;
        }
    }
}

/// Only cards at even places are visible, without their rank.
impl Masked for Map<u8, Card> {
    fn masked(&self) -> Self {
        let even = self.iter().filter(|(key, _)| **key % 2 == 0);
        even.map(|(key, card)| (*key, Card { suit: card.suit, rank: 0 })).collect()
    }
    fn scramble_masked(&mut self, dice: &mut Dice) {
        let key = u8::any(dice);
        if key % 2 == 1 {
            self.get_or_default(key).mutate(dice);
        } else if let Some(card) = self.get_mut(&key) {
            card.rank = dice.roll() as i16;
        }
    }
}

/// Everyone sees the number of cards and the top one.
impl Masked for List<Card> {
    fn masked(&self) -> Self {
        let last = self.len().saturating_sub(1);
        self.iter()
            .enumerate()
            .map(|(at, card)| if at == last { card.clone() } else { Card::default() })
            .collect()
    }
    fn scramble_masked(&mut self, dice: &mut Dice) {
        if self.len() > 1 {
            let at = dice.pick(self.len() - 1);
            self[at].mutate(dice);
        }
    }
}
