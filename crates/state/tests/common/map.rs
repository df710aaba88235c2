//! Maps, changed in every possible way.

use playfield_state::{Key, Map, PlayerId};

use super::{Dice, Eye, Model, OwnModel};

/// One of a few keys.
pub(crate) trait AnyKey: Key {
    fn any(dice: &mut Dice) -> Self;
}

impl AnyKey for PlayerId {
    fn any(dice: &mut Dice) -> Self {
        Self(1 + dice.pick(4) as u64)
    }
}

impl AnyKey for String {
    fn any(dice: &mut Dice) -> Self {
        ["", "a", "b", "c", "é\"", "0"][dice.pick(6)].to_owned()
    }
}

impl AnyKey for u8 {
    fn any(dice: &mut Dice) -> Self {
        dice.pick(24) as Self
    }
}

macro_rules! integer_keys {
    ($($int:ident)*) => {$(
        impl AnyKey for $int {
            fn any(dice: &mut Dice) -> Self {
                [0, 1, 2, 3, $int::MIN, $int::MAX][dice.pick(6)]
            }
        }
    )*};
}

integer_keys! { u16 u32 i32 i64 }

impl<K: AnyKey, V: Model> Model for Map<K, V> {
    fn mutate(&mut self, dice: &mut Dice) {
        let key = K::any(dice);
        let other = K::any(dice);
        match dice.pick(32) {
            0..=2 => drop(self.insert(key, V::random(dice))),
            3..=5 => self.get_or_default(key).mutate(dice),
            6 => self.get_or_insert_with(key, V::default).mutate(dice),
            7..=9 => drop(self.remove(&key)),
            10 => {
                if let Some(value) = self.remove(&key) {
                    self.insert(key, value);
                }
            }
            11 => {
                self.remove(&key);
                self.insert(key, V::random(dice));
            }
            12 if dice.once_in(3) => self.clear(),
            13 => self.retain(|candidate, _| *candidate < key),
            14 => self.retain(|candidate, value| {
                value.mutate(&mut Dice::new(1));
                *candidate != other
            }),
            15 => self.iter_mut().for_each(|(_, value)| value.mutate(&mut Dice::new(2))),
            16 => self.values_mut().for_each(|value| value.mutate(&mut Dice::new(3))),
            17 => {
                let held = std::mem::take(self);
                self.extend(
                    held.iter()
                        .filter(|(k, _)| **k != key)
                        .map(|(key, value)| (key.clone(), value.clone())),
                );
            }
            18 if dice.once_in(2) => {
                let keys: Vec<K> = (0..3).map(|_| K::any(dice)).collect();
                drop(std::mem::replace(
                    self,
                    keys.into_iter().map(|key| (key, V::random(dice))).collect(),
                ));
            }
            // Values swap places, in every way that the API allows.
            19 => {
                let (a, b) = (self.remove(&key), self.remove(&other));
                if let Some(a) = a {
                    self.insert(other, a);
                }
                if let Some(b) = b {
                    self.insert(key, b);
                }
            }
            20 => {
                if let Some(mut a) = self.get_mut(&key).map(std::mem::take)
                    && let Some(b) = self.get_mut(&other)
                {
                    std::mem::swap(&mut a, b);
                    self.insert(key, a);
                }
            }
            21 => {
                if let Some(value) = self.remove(&key) {
                    self.insert(other, value);
                }
            }
            22 => {
                let copy = self.get(&key).cloned();
                if let Some(copy) = copy {
                    self.insert(other, copy);
                }
            }
            23 => {
                let mut held: Self = [(key, V::random(dice))].into_iter().collect();
                std::mem::swap(self, &mut held);
                if let Some(value) = held.remove(&other) {
                    self.insert(other, value);
                }
            }
            _ => {
                if let Some(value) = self.get_mut(&key) {
                    value.mutate(dice);
                }
            }
        }
    }

    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        let key = K::any(dice);
        match dice.pick(10) {
            0 => *self = self.clone(),
            1 => {
                let held = std::mem::take(self);
                *self = held;
            }
            2 if !self.contains_key(&key) => {
                self.insert(key.clone(), V::random(dice));
                self.remove(&key);
            }
            3 => {
                if let Some(value) = self.remove(&key) {
                    self.insert(key, value);
                }
            }
            4 => {
                let entries: Vec<(K, V)> =
                    self.iter().rev().map(|(k, v)| (k.clone(), v.clone())).collect();
                self.clear();
                self.extend(entries);
            }
            5 => drop(self.iter_mut().count()),
            6 => self.retain(|_, _| true),
            7 => {
                if let Some(value) = self.get_mut(&key) {
                    let held = std::mem::take(value);
                    *value = held;
                }
            }
            _ => {}
        }
        for _ in 0..2 {
            let key = K::any(dice);
            if let Some(value) = self.get_mut(&key) {
                value.scramble(dice, eye.under(key.player()));
            }
        }
    }

    fn redact(&self, eye: Eye) -> Self {
        self.iter()
            .map(|(key, value)| (key.clone(), value.redact(eye.under(key.player()))))
            .collect()
    }

    fn emptied(self) -> Self {
        Self::new()
    }

    fn equals(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|((a, x), (b, y))| a == b && x.equals(y))
    }
}

impl<V: Model> OwnModel for Map<PlayerId, V> {
    fn scramble_own(&mut self, dice: &mut Dice, eye: Eye) {
        let own = self.get(&eye.viewer).map(|own| own.redact(eye.under(Some(eye.viewer))));
        match dice.pick(3) {
            0 => *self = self.clone(),
            1 => {
                let held = self.remove(&eye.viewer);
                self.mutate(dice);
                self.remove(&eye.viewer);
                if let Some(held) = held {
                    self.insert(eye.viewer, held);
                }
            }
            _ => {
                for _ in 0..2 {
                    let key = PlayerId::any(dice);
                    if key == eye.viewer {
                        if let Some(value) = self.get_mut(&key) {
                            value.scramble(dice, eye.under(Some(key)));
                        }
                    } else if dice.once_in(3) {
                        self.remove(&key);
                    } else {
                        self.get_or_default(key).mutate(dice);
                    }
                }
            }
        }
        let after = self.get(&eye.viewer).map(|own| own.redact(eye.under(Some(eye.viewer))));
        assert!(own.equals(&after), "the model scrambles only what the viewer can't see");
    }

    fn redact_own(&self, eye: Eye) -> Self {
        let own = self.iter().filter(|(key, _)| **key == eye.viewer);
        own.map(|(key, value)| (*key, value.redact(eye.under(Some(*key))))).collect()
    }
}
