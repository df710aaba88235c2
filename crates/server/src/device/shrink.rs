//! Memory follows what is in a table down again.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;

/// The number of places that a table keeps in any case.
const PLACES_KEPT: usize = 64;

/// Gives back most of a map's memory once most of what was in it is gone.
pub(crate) fn shrink_map<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() > PLACES_KEPT && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}

/// The same for a table, whose values have these hashes.
pub(crate) fn shrink_table<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.capacity() > PLACES_KEPT && table.len() < table.capacity() / 8 {
        table.shrink_to(table.len() * 2, hash);
    }
}

/// Places for values, which stay where they are.
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(place) = self.vacant.pop() {
            self.places[place as usize] = Some(value);
            return place;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    /// Puts a value in the place of another.
    pub(crate) fn replace(&mut self, place: u32, value: T) -> Option<T> {
        self.places[place as usize].replace(value)
    }

    pub(crate) fn remove(&mut self, place: u32) {
        self.places[place as usize] = None;
        self.vacant.push(place);
        if self.len() == 0 {
            self.places.clear();
            self.places.shrink_to(PLACES_KEPT);
            self.vacant.clear();
            self.vacant.shrink_to(PLACES_KEPT);
        } else if self.places.len() > PLACES_KEPT && self.len() < self.places.len() / 8 {
            self.trim();
        }
    }

    /// Gives up vacant places at the end, at a cost that the removals before have paid for.
    #[cold]
    fn trim(&mut self) {
        let used = self.places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if used > self.places.len() / 2 {
            return;
        }
        self.places.truncate(used);
        self.places.shrink_to_fit();
        self.vacant.retain(|&place| (place as usize) < used);
        self.vacant.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// The values from this place on, with their places.
    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = (usize, &T)> {
        let places = self.places.get(place..).unwrap_or_default();
        places.iter().enumerate().filter_map(move |(at, value)| Some((place + at, value.as_ref()?)))
    }
}
