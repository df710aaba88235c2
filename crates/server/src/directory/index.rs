//! The index behind `list`: rooms by age and by metadata.
//!
//! Listing visits only the rooms that it returns, or, with a filter, the rooms with the rarest of
//! the filter's values. It never visits all rooms.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use crate::room_id::RoomId;

/// The metadata of a room, by name.
type Metadata = BTreeMap<String, String>;

/// The rooms of one type that are listed.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_age: BTreeMap<u64, RoomId>,
    /// For each name in the metadata and each value of it, the ages of the rooms that have it. No
    /// set is empty.
    having: HashMap<String, HashMap<String, BTreeSet<u64>>>,
}

impl Index {
    /// Adds a room. Ages are unique.
    pub(super) fn insert(&mut self, age: u64, id: RoomId, metadata: &Metadata) {
        self.by_age.insert(age, id);
        for (name, value) in metadata {
            let values = self.having.entry(name.clone()).or_default();
            values.entry(value.clone()).or_default().insert(age);
        }
    }

    /// Removes a room that was added with this metadata.
    pub(super) fn remove(&mut self, age: u64, metadata: &Metadata) {
        self.by_age.remove(&age);
        for (name, value) in metadata {
            let Some(values) = self.having.get_mut(name) else { continue };
            let Some(ages) = values.get_mut(value) else { continue };
            ages.remove(&age);
            if ages.is_empty() {
                values.remove(value);
            }
            if values.is_empty() {
                self.having.remove(name);
            }
        }
    }

    /// The rooms whose metadata has all of `filter`, oldest first, with their ages.
    fn fitting<'a>(
        &'a self,
        filter: &[(&str, &str)],
    ) -> Box<dyn Iterator<Item = (u64, RoomId)> + 'a> {
        let sets = filter.iter().map(|&(name, value)| self.having.get(name)?.get(value));
        let Some(mut sets) = sets.collect::<Option<Vec<_>>>() else {
            return Box::new(std::iter::empty());
        };
        sets.sort_unstable_by_key(|ages| ages.len());
        let mut sets = sets.into_iter();
        match sets.next() {
            None => Box::new(self.by_age.iter().map(|(&age, &id)| (age, id))),
            Some(rarest) => {
                let others: Vec<_> = sets.collect();
                let fits = move |age: &&u64| others.iter().all(|ages| ages.contains(age));
                Box::new(rarest.iter().filter(fits).map(|age| (*age, self.by_age[age])))
            }
        }
    }

    /// Returns whether the index is empty.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_age.is_empty() && self.having.is_empty()
    }
}

/// The rooms of all these types whose metadata has all of `filter`, oldest first.
pub(super) fn oldest<'a>(
    indexes: &'a [Index],
    filter: &[(&str, &str)],
) -> impl Iterator<Item = RoomId> + 'a {
    let mut types: Vec<_> = indexes.iter().map(|index| index.fitting(filter)).collect();
    let mut heads = BinaryHeap::with_capacity(types.len());
    // The types whose next room must be found. The search is lazy, since it may be long and find
    // nothing.
    let mut behind: Vec<usize> = (0..types.len()).collect();
    std::iter::from_fn(move || {
        for at in behind.drain(..) {
            heads.extend(types[at].next().map(|(age, id)| Reverse((age, id, at))));
        }
        let Reverse((_, id, at)) = heads.pop()?;
        behind.push(at);
        Some(id)
    })
}
