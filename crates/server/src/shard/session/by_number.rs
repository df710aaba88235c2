//! The connection of each session, by its number, at about ten bytes for each: the number is not
//! repeated, since the session has it.

use hashbrown::HashTable;

use crate::memory::PLACES_KEPT;
use crate::shard::keys::ConnectionKey;

/// The sessions that can be resumed. Callers say which number the session in a place has.
#[derive(Default)]
pub(crate) struct ByNumber {
    /// The places of their connections in the slab.
    places: HashTable<u32>,
}

impl ByNumber {
    /// Notes a session, which its connection has already.
    pub(crate) fn insert(
        &mut self,
        number: u64,
        key: ConnectionKey,
        number_at: impl Fn(u32) -> Option<u64>,
    ) {
        let hash_at = |&place: &u32| number_at(place).map_or(0, hash);
        self.places.insert_unique(hash(number), key.index() as u32, hash_at);
    }

    /// The place of a session's connection.
    pub(crate) fn get(&self, number: u64, number_at: impl Fn(u32) -> Option<u64>) -> Option<u32> {
        let is_it = |&place: &u32| number_at(place) == Some(number);
        self.places.find(hash(number), is_it).copied()
    }

    /// Forgets a session; its connection may have lost it already.
    pub(crate) fn remove(
        &mut self,
        number: u64,
        key: ConnectionKey,
        number_at: impl Fn(u32) -> Option<u64>,
    ) {
        let is_it = |&place: &u32| place as usize == key.index();
        if let Ok(entry) = self.places.find_entry(hash(number), is_it) {
            entry.remove();
        }
        let Self { places } = self;
        if places.capacity() > PLACES_KEPT && places.len() < places.capacity() / 8 {
            let kept = 2 * places.len();
            places.shrink_to(kept, |&place| number_at(place).map_or(0, hash));
        }
    }
}

/// The numbers are random: all bits of a product depend on them.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
