//! Lists, changed in every possible way.

use playfield_state::List;

use super::{Dice, Eye, Model};

const LENGTH_MAX: usize = 7;

impl<T: Model> Model for List<T> {
    fn mutate(&mut self, dice: &mut Dice) {
        if self.len() > LENGTH_MAX {
            self.truncate(LENGTH_MAX / 2);
        }
        let index = dice.pick(LENGTH_MAX);
        let other = dice.pick(LENGTH_MAX);
        match dice.pick(34) {
            0..=3 => self.push(T::random(dice)),
            4 => drop(self.pop()),
            5 if index <= self.len() => self.insert(index, T::random(dice)),
            6 | 7 => drop(self.remove(index)),
            8 => drop(self.swap_remove(index)),
            9 | 10 if index < self.len() && other < self.len() => self.swap(index, other),
            11 if dice.once_in(3) => self.clear(),
            12 => self.truncate(index),
            13 => {
                let mut place = 0;
                self.retain(|_| {
                    place += 1;
                    place % 2 == index % 2
                });
            }
            14 => self.sort_by(|a, b| a.weight().cmp(&b.weight())),
            15 => self.iter_mut().for_each(|value| value.mutate(&mut Dice::new(index as u64))),
            16 => self.iter_mut().rev().take(2).for_each(|value| value.mutate(dice)),
            17 if index < self.len() => self[index].mutate(dice),
            18 => *self = self.iter().rev().cloned().collect(),
            19 => {
                let held = std::mem::take(self);
                self.extend(held.iter().skip(1).cloned());
            }
            20 => drop(std::mem::replace(self, (0..other).map(|_| T::random(dice)).collect())),
            21 => {
                if let Some(value) = self.remove(index) {
                    self.push(value);
                }
            }
            22 => {
                if let Some(value) = self.remove(index) {
                    self.insert(other.min(self.len()), value);
                }
            }
            23 => {
                self.pop();
                self.insert(0, T::random(dice));
            }
            30 | 31 if index < self.len() && other < self.len() => self.move_to(index, other),
            32 => self.reverse(),
            33 => drop(self.drain(index.min(self.len())..)),
            24 => {
                let mut other: List<T> = (0..other).map(|_| T::random(dice)).collect();
                std::mem::swap(self, &mut other);
            }
            _ => {
                if let Some(value) = self.get_mut(index) {
                    value.mutate(dice);
                }
            }
        }
    }

    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        match dice.pick(10) {
            0 => *self = self.clone(),
            1 => {
                let mut held = std::mem::take(self);
                held.iter_mut().for_each(|value| value.scramble(dice, eye));
                *self = held;
            }
            2 => {
                self.push(T::random(dice));
                self.pop();
            }
            3 if !self.is_empty() => {
                let index = dice.pick(self.len());
                let value = self.remove(index).unwrap();
                self.insert(index, value);
            }
            4 if !self.is_empty() => {
                let index = dice.pick(self.len());
                self[index] = self[index].clone();
            }
            5 => self.sort_by(|_, _| std::cmp::Ordering::Equal),
            6 => {
                let values: Vec<T> = self.iter().cloned().collect();
                self.clear();
                self.extend(values);
            }
            // Elements that look the same may swap places unnoticed.
            7..=8 if self.len() > 1 => {
                let (a, b) = (dice.pick(self.len()), dice.pick(self.len()));
                if self[a].looks_like(&self[b], eye) {
                    self.swap(a, b);
                }
            }
            _ => {}
        }
        for index in 0..self.len() {
            if dice.once_in(3) {
                self[index].scramble(dice, eye);
            }
        }
    }

    fn redact(&self, eye: Eye) -> Self {
        self.iter().map(|value| value.redact(eye)).collect()
    }

    fn equals(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a.equals(b))
    }
}
