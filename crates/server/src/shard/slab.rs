//! Storage with stable keys: a key names one value for ever, also after its place was given to
//! another.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::memory::PLACES_KEPT;

/// Names a value in a [`Slab`]: its place, and how often that place had been vacated before. `K`
/// marks what kind of value it is.
pub(crate) struct Key<K> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Key<K> {
    /// The place, for tables that run beside the slab.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    /// The key as one number.
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The key that [`bits`](Self::bits) was taken of.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32, kind: PhantomData }
    }
}

/// Values by key. The values lie side by side, in places that are used again.
pub(crate) struct Slab<K, T> {
    entries: Vec<Entry<T>>,
    kind: PhantomData<fn() -> K>,
    vacant: Vec<u32>,
    /// The first generation of entries that are added: past all that were given up.
    generation: u32,
    /// With fewer values than this, vacant entries at the end are given up.
    shrinks_below: usize,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<K, T> Slab<K, T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            kind: PhantomData,
            vacant: Vec::new(),
            generation: 0,
            shrinks_below: 0,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<K> {
        let index = self.vacant.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 values at once");
            self.entries.push(Entry { generation: self.generation, value: None });
            // There is none vacant, so most have to go before this is looked at again.
            self.shrinks_below = self.entries.len() / 4;
            index
        });
        let entry = &mut self.entries[index as usize];
        entry.value = Some(value);
        Key { index, generation: entry.generation, kind: PhantomData }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key<K>) -> Option<&T> {
        let entry = self.entries.get(key.index())?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index())?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key<K>) -> Option<T> {
        let entry = self.entries.get_mut(key.index())?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.vacant.push(key.index);
        if self.entries.len() > PLACES_KEPT && self.len() < self.shrinks_below {
            self.shrink();
        }
        Some(value)
    }

    /// Gives up the vacant entries at the end. Keys to them stay void.
    #[cold]
    fn shrink(&mut self) {
        let used = self.entries.iter().rposition(|entry| entry.value.is_some());
        let used = used.map_or(0, |last| last + 1);
        let given_up = self.entries.drain(used..).map(|entry| entry.generation);
        self.generation = given_up.fold(self.generation, u32::max);
        self.entries.shrink_to_fit();
        // The lowest first, so that the end becomes vacant again.
        let is_vacant = |index: &u32| self.entries[*index as usize].value.is_none();
        self.vacant = (0..used as u32).rev().filter(is_vacant).collect();
        self.shrinks_below = self.len() / 2;
    }

    /// The key of the value in a place.
    pub(crate) fn key_at(&self, index: usize) -> Option<Key<K>> {
        let Entry { generation, value } = self.entries.get(index)?;
        let key = Key { index: index as u32, generation: *generation, kind: PhantomData };
        value.is_some().then_some(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Returns the number of places, with those that are vacant.
    pub(crate) fn places(&self) -> usize {
        self.entries.len()
    }

    /// All values, in the order of their places.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key<K>, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(index, entry)| {
            let key = Key { index: index as u32, generation: entry.generation, kind: PhantomData };
            entry.value.as_mut().map(|value| (key, value))
        })
    }

    /// All keys, for walks that change the slab on the way.
    pub(crate) fn keys(&self) -> Vec<Key<K>> {
        let occupied = self.entries.iter().enumerate().filter(|(_, entry)| entry.value.is_some());
        occupied
            .map(|(index, entry)| Key {
                index: index as u32,
                generation: entry.generation,
                kind: PhantomData,
            })
            .collect()
    }
}

// Derived, these would ask the same of `K`.
impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl<K> Eq for Key<K> {}

impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bits().cmp(&other.bits())
    }
}

impl<K> Hash for Key<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Slab};

    #[test]
    fn a_key_does_not_name_the_next_value_in_its_place() {
        let mut slab = Slab::<(), _>::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(Key::from_bits(second.bits())), Some(&'b'));
        assert_eq!((slab.len(), slab.keys()), (1, vec![second]));
    }

    #[test]
    fn a_slab_that_was_large_shrinks_and_old_keys_stay_void() {
        let mut slab = Slab::<(), _>::new();
        let keys: Vec<_> = (0..100_000).map(|value| slab.insert(value)).collect();
        for &key in keys.iter().filter(|key| key.index() != 300) {
            slab.remove(key);
        }
        assert_eq!((slab.len(), slab.get(keys[300])), (1, Some(&300)));
        assert!(slab.entries.capacity() + slab.vacant.capacity() < 5000);
        for value in 0..5000 {
            slab.insert(value);
        }
        let known = keys.iter().filter(|&&key| slab.get(key).is_some());
        assert_eq!(known.count(), 1, "a key names one value for ever");
    }
}
