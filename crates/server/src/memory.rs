//! Memory that a burst took is given back: a collection keeps its capacity only up to a bound once
//! it is empty, or nearly so.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The most bytes that a queue keeps once it is empty.
const QUEUE_KEPT_BYTES: usize = 1 << 20;
/// The number of places that slabs, tables and maps keep, however few are taken.
pub(crate) const PLACES_KEPT: usize = 1024;

/// Frees a queue that is empty and large.
pub(crate) fn release<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() * size_of::<T>() > QUEUE_KEPT_BYTES {
        *queue = VecDeque::new();
    }
}

/// Shrinks a map that is mostly empty.
pub(crate) fn shrink_map<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > PLACES_KEPT && map.len() < map.capacity() / 8 {
        map.shrink_to(2 * map.len());
    }
}

/// Takes vacant places off the end of a table, and shrinks it if little is left.
pub(crate) fn shrink_table<T>(table: &mut Vec<Option<T>>) {
    while table.len() > PLACES_KEPT && table.last().is_some_and(Option::is_none) {
        table.pop();
    }
    if table.capacity() > 4 * table.len().max(PLACES_KEPT) {
        table.shrink_to(2 * table.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use super::{PLACES_KEPT, QUEUE_KEPT_BYTES, release, shrink_map, shrink_table};

    #[test]
    fn a_queue_that_was_large_is_freed_once_it_is_empty() {
        let mut queue: VecDeque<u64> = (0..QUEUE_KEPT_BYTES as u64).collect();
        queue.truncate(1);
        release(&mut queue);
        assert!(queue.capacity() * 8 > QUEUE_KEPT_BYTES, "it is not empty");
        queue.clear();
        release(&mut queue);
        assert_eq!(queue.capacity(), 0);
        queue.reserve(100);
        release(&mut queue);
        assert!(queue.capacity() >= 100, "a small one is kept");
    }

    #[test]
    fn maps_and_tables_shrink_with_what_is_in_them() {
        let mut map: HashMap<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
        for key in 10..100_000 {
            map.remove(&key);
            shrink_map(&mut map);
        }
        assert!(map.len() == 10 && map.capacity() <= 2 * PLACES_KEPT, "{}", map.capacity());

        let mut table: Vec<Option<u32>> = (0..100_000).map(Some).collect();
        for place in (0..100_000).filter(|place| *place != 5000) {
            table[place] = None;
        }
        shrink_table(&mut table);
        assert_eq!((table.len(), table[5000]), (5001, Some(5000)));
        assert!(table.capacity() <= 4 * 5001, "{}", table.capacity());
    }
}
