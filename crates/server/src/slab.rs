//! A table whose keys are never mistaken for those of an earlier tenant.

/// Entries by key. A key holds a place and a generation, so that one whose entry is gone finds nothing.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    entry: Option<T>,
}

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The place in the table; other tables may be kept beside it under the same places.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    /// As one number.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// From [`to_bits`](Self::to_bits).
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, entry: T) -> Key {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.entry = Some(entry);
            return Key { index, generation: place.generation };
        }
        let index =
            u32::try_from(self.places.len()).expect("a table of four billion entries does not fit in memory");
        self.places.push(Place { generation: 0, entry: Some(entry) });
        Key { index, generation: 0 }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.places.get(key.index()).filter(|place| place.generation == key.generation)?.entry.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?.entry.as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?;
        let entry = place.entry.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            place.entry.as_ref().map(|_| Key { index: index as u32, generation: place.generation })
        })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.entry.as_ref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(index, place)| {
            let key = Key { index: index as u32, generation: place.generation };
            place.entry.as_mut().map(|entry| (key, entry))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_one_who_left_finds_nobody() {
        let mut slab = Slab::default();
        let a = slab.insert('a');
        assert_eq!(slab.remove(a), Some('a'));
        let b = slab.insert('b');
        assert_eq!(a.index(), b.index());
        assert_eq!(slab.get(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.get(Key::from_bits(b.to_bits())), Some(&'b'));
        assert_eq!(slab.len(), 1);
    }
}
