//! Which connection a session has, by its number, at about ten bytes for each: the number is not
//! repeated, since the session has it.

use hashbrown::HashTable;

use crate::memory::PLACES_KEPT;
use crate::shard::connection::Connections;
use crate::shard::keys::ConnectionKey;

/// The sessions that can be resumed.
#[derive(Default)]
pub(crate) struct ByNumber {
    /// The places of their connections in the slab.
    places: HashTable<u32>,
}

impl ByNumber {
    /// Notes a session, which its connection has already.
    pub(crate) fn insert(&mut self, number: u64, key: ConnectionKey, connections: &Connections) {
        self.places.insert_unique(hash(number), key.index() as u32, |&place| {
            number_at(place, connections).map_or(0, hash)
        });
    }

    pub(crate) fn get(&self, number: u64, connections: &Connections) -> Option<ConnectionKey> {
        let is_it = |&place: &u32| number_at(place, connections) == Some(number);
        let place = self.places.find(hash(number), is_it)?;
        connections.key_at(*place as usize)
    }

    /// Forgets a session; its connection may have lost it already.
    pub(crate) fn remove(&mut self, number: u64, key: ConnectionKey, connections: &Connections) {
        let is_it = |&place: &u32| place as usize == key.index();
        if let Ok(entry) = self.places.find_entry(hash(number), is_it) {
            entry.remove();
        }
        let Self { places } = self;
        if places.capacity() > PLACES_KEPT && places.len() < places.capacity() / 8 {
            let kept = 2 * places.len();
            places.shrink_to(kept, |&place| number_at(place, connections).map_or(0, hash));
        }
    }
}

/// The numbers are random: all bits of a product depend on them.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn number_at(place: u32, connections: &Connections) -> Option<u64> {
    let key = connections.key_at(place as usize)?;
    Some(connections.get(key)?.session.as_deref()?.number)
}
