//! Values beside those of a slab, under the same keys.

use crate::memory::{PLACES_KEPT, shrink_table};
use crate::shard::slab::Key;

/// Values for some of the keys of a [`Slab`](crate::shard::slab::Slab). A key of a value that has
/// left the slab finds nothing, also after its place was given to another.
pub(crate) struct Beside<K, T> {
    places: Vec<Option<(Key<K>, T)>>,
    len: usize,
}

impl<K, T> Default for Beside<K, T> {
    fn default() -> Self {
        Self { places: Vec::new(), len: 0 }
    }
}

impl<K, T> Beside<K, T> {
    /// Adds a value, in place of the one that the key or an earlier key of the place has.
    pub(crate) fn insert(&mut self, key: Key<K>, value: T) {
        if self.places.len() <= key.index() {
            self.places.resize_with(key.index() + 1, || None);
        }
        let before = self.places[key.index()].replace((key, value));
        self.len += usize::from(before.is_none());
    }

    #[inline]
    pub(crate) fn get(&self, key: Key<K>) -> Option<&T> {
        match self.places.get(key.index())? {
            Some((of, value)) if *of == key => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        match self.places.get_mut(key.index())? {
            Some((of, value)) if *of == key => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: Key<K>) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        let (_, value) = place.take_if(|(of, _)| *of == key)?;
        self.len -= 1;
        if self.places.len() > PLACES_KEPT && self.len < self.places.len() / 8 {
            shrink_table(&mut self.places);
        }
        Some(value)
    }

    /// The value in a place, and its key.
    pub(crate) fn at(&self, index: usize) -> Option<(Key<K>, &T)> {
        let (key, value) = self.places.get(index)?.as_ref()?;
        Some((*key, value))
    }

    /// The keys of all values.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key<K>> {
        self.places.iter().flatten().map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::Beside;
    use crate::memory::PLACES_KEPT;
    use crate::shard::slab::Slab;

    #[test]
    fn a_key_whose_place_was_given_to_another_finds_nothing() {
        let (mut slab, mut beside) = (Slab::<(), _>::new(), Beside::default());
        let first = slab.insert(());
        beside.insert(first, "first");
        slab.remove(first);
        let second = slab.insert(());
        assert_eq!(second.index(), first.index());
        assert_eq!(beside.get(second), None);
        beside.insert(second, "second");
        assert_eq!((beside.get(first), beside.get(second)), (None, Some(&"second")));
        assert_eq!(beside.remove(first), None);
        assert_eq!(beside.remove(second), Some("second"));
    }

    #[test]
    fn places_that_many_values_took_are_given_back() {
        let (mut slab, mut beside) = (Slab::<(), _>::new(), Beside::default());
        let keys: Vec<_> = (0..10_000).map(|_| slab.insert(())).collect();
        keys.iter().for_each(|key| beside.insert(*key, ()));
        for key in keys.iter().rev() {
            beside.remove(*key);
        }
        assert!(beside.places.capacity() <= 8 * PLACES_KEPT, "{}", beside.places.capacity());
    }
}
