//! Iterators over maps.

use std::collections::btree_map::{IntoKeys, IntoValues, Keys, Values};
use std::iter::Flatten;

use super::{Entry, Map};
use crate::Key;

/// The entries of a [`Map`], in the order of their keys.
pub struct Iter<'a, K, V> {
    places: Values<'a, K, u32>,
    entries: &'a [Option<Entry<K, V>>],
}

impl<'a, K, V> Iter<'a, K, V> {
    fn at(&self, place: u32) -> (&'a K, &'a V) {
        let entry =
            self.entries[place as usize].as_ref().expect("the index names an entry that is there");
        (&entry.key, &entry.value)
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = *self.places.next()?;
        Some(self.at(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let place = *self.places.next_back()?;
        Some(self.at(place))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// The entries of a [`Map`], in the order of their keys, with the values borrowed mutably.
pub struct IterMut<'a, K, V> {
    entries: Flatten<std::slice::IterMut<'a, Option<Entry<K, V>>>>,
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| (&entry.key, &mut entry.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

/// The entries of a [`Map`] with their keys, in the order of these.
pub struct IntoIter<K, V> {
    places: IntoValues<K, u32>,
    entries: Vec<Option<Entry<K, V>>>,
}

impl<K, V> IntoIter<K, V> {
    fn take(&mut self, place: u32) -> Option<(K, V)> {
        let entry = self.entries[place as usize].take();
        entry.map(|entry| (entry.key, entry.value))
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let place = self.places.next()?;
        self.take(place)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for IntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        let place = self.places.next_back()?;
        self.take(place)
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}

impl<K: Key, V> Map<K, V> {
    /// All entries, in the order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { places: self.index.values(), entries: &self.entries }
    }

    pub(crate) fn index_keys(&self) -> Keys<'_, K, u32> {
        self.index.keys()
    }

    pub(crate) fn into_index_keys(self) -> IntoKeys<K, u32> {
        self.index.into_keys()
    }

    /// All entries, in the order of their keys, with the values borrowed mutably. Every entry counts
    /// as touched.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.track.all |= self.track.token != 0;
        self.put_in_order();
        IterMut { entries: self.entries.iter_mut().flatten() }
    }
}

/// Iterates in the order of the keys.
impl<K: Key, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter { places: self.index.into_values(), entries: self.entries }
    }
}

/// Iterates like [`Map::iter`].
impl<'a, K: Key, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// Iterates like [`Map::iter_mut`]: every entry counts as touched.
impl<'a, K: Key, V> IntoIterator for &'a mut Map<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
