//! A map that tracks its changes.

mod groups;
mod iter;
mod placed;
mod read;
mod shadow;
mod state;
mod touches;
mod viewed;
pub(crate) mod wire;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

pub use placed::{NEAREST_DEFAULT, Near, Placing, Reach, Spot};
pub use placed::{coordinate, same_axes, same_type, spot};
pub(crate) use read::TWO_SLOTS;
pub use touches::{Touches, Viewers, Watch};
pub use viewed::ByEntry;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use crate::Key;

/// The maximum number of entries of a synced map. With more, the sync fails, which closes the room.
pub const MAP_SLOTS_MAX: usize = 1 << 20;

/// A map from players, texts or integers to state, iterated in the order of its keys on every
/// machine.
///
/// It tracks which entries were borrowed mutably, and a sync compares only those. A borrow that
/// changes nothing sends nothing.
///
/// ```
/// use playfield_state::Map;
///
/// let mut scores = Map::<String, u32>::new();
/// *scores.get_or_default("Ann".to_owned()) += 3;
/// scores.get_or_insert_with("Bob".to_owned(), || 10);
/// assert_eq!(scores.values().copied().collect::<Vec<_>>(), [3, 10]);
/// for (_, score) in &mut scores {
///     *score += 1;
/// }
/// for (name, score) in &scores {
///     println!("{name}: {score}");
/// }
/// assert_eq!(scores.into_iter().collect::<Vec<_>>(), [("Ann".into(), 4), ("Bob".into(), 11)]);
/// ```
pub struct Map<K, V> {
    index: BTreeMap<K, u32>,
    entries: Vec<Option<Entry<K, V>>>,
    free: Vec<u32>,
    /// The entries are in the order of their keys.
    in_order: bool,
    /// In a client's copy, the places of slots that are not at the place of their number.
    far: BTreeMap<u32, u32>,
    track: Track<K>,
    /// A number of its own, if it was read from a save; 0 of any other.
    origin: u64,
}

struct Entry<K, V> {
    key: K,
    value: V,
    /// Its slot in the shadow, [`FRESH`] until the first sync that sees it; in a client's copy, its
    /// slot there.
    slot: u32,
    touched: bool,
    /// Whether it came after the map was read.
    inserted: bool,
}

/// If more than one in this many places was touched, all places are visited in order: to sort the
/// touched ones, or to visit them out of order, would cost more.
const SCAN_SHARE: usize = 4;

/// Not in the shadow yet.
const FRESH: u32 = u32::MAX;

/// Changes since the last sync with the shadow of the same token. A map that was never synced, such
/// as a hidden one, records nothing.
struct Track<K> {
    /// The shadow that this map is in sync with; 0 = none.
    token: u64,
    touched: Vec<u32>,
    /// There are too many touches to record them one by one.
    all: bool,
    /// The slots of removed entries.
    removed: BTreeMap<K, u32>,
}

/// A number that is unique in this process to a map or list and its shadow. It is never part of any
/// output.
pub(crate) fn new_token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<K: Key, V> Map<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns whether the key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.index.contains_key(key)
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = *self.index.get(key)?;
        self.entries[place as usize].as_ref().map(|entry| &entry.value)
    }

    /// The value of a key, borrowed mutably.
    #[inline]
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = *self.index.get(key)?;
        self.touch(place)
    }

    /// Inserts a value, and returns the previous value of the key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(old) = self.get_mut(&key) {
            return Some(std::mem::replace(old, value));
        }
        self.add(key, value);
        None
    }

    /// The value of a key. If there is none, inserts the one that `make` returns.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.index.get(&key) {
            Some(&place) => place,
            None => self.add(key, make()),
        };
        self.touch(place).expect("the index names an entry that is there")
    }

    /// The value of a key. If there is none, inserts the default.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.get_or_insert_with(key, V::default)
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.index.remove(key)?;
        let entry = self.entries[place as usize].take()?;
        self.free.push(place);
        if entry.slot != FRESH && self.track.token != 0 {
            self.track.removed.insert(entry.key, entry.slot);
        }
        Some(entry.value)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Keeps the entries for which `keep` returns true. Every entry counts as touched.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let going: Vec<K> = self
            .iter_mut()
            .filter_map(|(key, value)| (!keep(key, value)).then(|| key.clone()))
            .collect();
        for key in going {
            self.remove(&key);
        }
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.index.keys()
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in the order of their keys, borrowed mutably. Every entry counts as touched.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    #[inline]
    fn touch(&mut self, place: u32) -> Option<&mut V> {
        let entry = self.entries[place as usize].as_mut()?;
        if !entry.touched && self.track.token != 0 {
            entry.touched = true;
            self.track.touched.push(place);
        }
        Some(&mut entry.value)
    }

    /// Sorts the entries by their keys.
    fn put_in_order(&mut self) {
        if std::mem::replace(&mut self.in_order, true) {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        for (place, at) in self.index.values_mut().enumerate() {
            self.entries.push(entries[*at as usize].take());
            *at = place as u32;
        }
        self.free.clear();
        self.far.clear();
        // The recorded places are no longer valid, so all entries count as touched. A client's copy
        // is never compared, and uses its slots.
        self.track.touched.clear();
        if self.track.token == 0 {
            let places = self.entries.iter().flatten().zip(0..);
            let far = places.filter(|(entry, place)| entry.slot != FRESH && entry.slot != *place);
            self.far.extend(far.map(|(entry, place)| (entry.slot, place)));
        }
    }

    fn add(&mut self, key: K, value: V) -> u32 {
        // A key that was removed and inserted again since the last sync is the same entry: only its
        // changes are sent.
        let slot = self.track.removed.remove(&key).unwrap_or(FRESH);
        let synced = self.track.token != 0;
        let entry = Entry { key: key.clone(), value, slot, touched: synced, inserted: true };
        let is_last = self.index.last_key_value().is_none_or(|(last, _)| *last < key);
        self.in_order &= is_last && self.free.is_empty();
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                u32::try_from(self.entries.len() - 1)
                    .expect("a map of four billion entries does not fit in memory")
            }
        };
        self.index.insert(key, place);
        if synced {
            self.track.touched.push(place);
            if self.track.touched.len() > 2 * self.entries.len() + 64 {
                self.track.touched.clear();
                self.track.all = true;
            }
        }
        place
    }
}

impl<K: Key, V> Map<K, V> {
    /// Reads `count` entries. They usually come in the order of their keys, which is the fastest.
    pub(crate) fn read_from(
        reader: &mut Reader<'_>,
        count: usize,
        value: impl Fn(&mut Reader<'_>) -> Result<V, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let mut keys: Vec<(K, u32)> = Vec::with_capacity(count.min(READ_ROOM));
        let mut entries = Vec::with_capacity(count.min(READ_ROOM));
        let mut out_of_order = None;
        for place in 0..count {
            let at = reader.offset();
            let key = K::decode(reader)?;
            if out_of_order.is_none() && keys.last().is_some_and(|(last, _)| *last >= key) {
                out_of_order = Some(at);
            }
            let own = key.clone();
            entries.push(Some(Entry {
                key: own,
                value: value(reader)?,
                slot: FRESH,
                touched: false,
                inserted: false,
            }));
            let place = u32::try_from(place)
                .map_err(|_| DecodeError::new(at, "a map has more than four billion entries"))?;
            keys.push((key, place));
        }
        let index: BTreeMap<K, u32> = keys.into_iter().collect();
        if index.len() < entries.len() {
            let at = out_of_order.unwrap_or_default();
            return Err(DecodeError::new(at, "a key occurs twice in one map"));
        }
        Ok(Self { index, entries, in_order: out_of_order.is_none(), ..Self::default() })
    }

    /// Reads a map like [`read_from`](Self::read_from), from a save: the map differs from one that
    /// replaces it.
    pub(crate) fn loaded(
        reader: &mut Reader<'_>,
        count: usize,
        value: impl Fn(&mut Reader<'_>) -> Result<V, DecodeError>,
    ) -> Result<Self, DecodeError> {
        Ok(Self { origin: new_token(), ..Self::read_from(reader, count, value)? })
    }

    /// Differs in each map that was read from a save; 0 in any other.
    pub(crate) fn origin(&self) -> u64 {
        self.origin
    }

    /// The value of a key, and whether it was inserted after the map was read.
    pub(crate) fn get_with_origin(&self, key: &K) -> Option<(&V, bool)> {
        let entry = self.entries[*self.index.get(key)? as usize].as_ref()?;
        Some((&entry.value, entry.inserted))
    }
}

/// For how many entries there is room before any is read. An announced count is not trusted.
const READ_ROOM: usize = 1 << 16;

impl<K> Default for Track<K> {
    fn default() -> Self {
        Self { token: 0, touched: Vec::new(), all: false, removed: BTreeMap::new() }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self {
            index: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            in_order: true,
            far: BTreeMap::new(),
            track: Track::default(),
            origin: 0,
        }
    }
}

/// A clone is a separate map: it has no shadow yet.
impl<K: Key, V: Clone> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        self.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl<K: Key, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Key, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Key, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Key, V: fmt::Debug> fmt::Debug for Map<K, V>
where
    K: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
