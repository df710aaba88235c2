//! Storage with stable keys: a key names one value for ever, also after its place was given to
//! another.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Names a value in a [`Slab`]: its place, and how often that place had been vacated before.
pub(crate) struct Key<T> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
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
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    vacant: Vec<u32>,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        let index = self.vacant.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 values at once");
            self.entries.push(Entry { generation: 0, value: None });
            index
        });
        let entry = &mut self.entries[index as usize];
        entry.value = Some(value);
        Key { index, generation: entry.generation, kind: PhantomData }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        let entry = self.entries.get(key.index())?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index())?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        let entry = self.entries.get_mut(key.index())?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.vacant.push(key.index);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// All values, in the order of their places.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key<T>, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(index, entry)| {
            let key = Key { index: index as u32, generation: entry.generation, kind: PhantomData };
            entry.value.as_mut().map(|value| (key, value))
        })
    }

    /// All keys, for walks that change the slab on the way.
    pub(crate) fn keys(&self) -> Vec<Key<T>> {
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

// Derived, these would ask the same of `T`.
impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bits().cmp(&other.bits())
    }
}

impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Slab};

    #[test]
    fn a_key_does_not_name_the_next_value_in_its_place() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(Key::from_bits(second.bits())), Some(&'b'));
        assert_eq!((slab.len(), slab.keys()), (1, vec![second]));
    }
}
