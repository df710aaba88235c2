//! Which rooms there are, and where.
//!
//! One lock for the whole node, held for a look-up, and only when someone creates, joins or lists: never for a message, a
//! tick or a sync.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use playfield_room::{Error, Facts, Result};
use playfield_wire::ErrorCode;

/// The rooms of a node by id.
pub(crate) struct Directory {
    inside: Mutex<Inside>,
    rooms_max: usize,
}

#[derive(Default)]
struct Inside {
    rooms: BTreeMap<String, Entry>,
    /// Of each type, the rooms in the order in which they were created.
    by_type: BTreeMap<String, BTreeMap<u64, String>>,
    next: u64,
    /// Rooms on each shard.
    load: Vec<usize>,
}

struct Entry {
    shard: usize,
    room_type: String,
    number: u64,
    facts: Facts,
    /// Seats promised to those on their way.
    promised: u32,
    /// Created by `create`, and not there yet: not to be matched.
    unborn: bool,
}

/// Where a join is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) shard: usize,
}

/// A room as `list` tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) id: String,
    pub(crate) room_type: String,
    pub(crate) facts: Facts,
}

impl Directory {
    pub(crate) fn new(shards: usize, rooms_max: usize) -> Self {
        Self { inside: Mutex::new(Inside { load: vec![0; shards], ..Inside::default() }), rooms_max }
    }

    /// Where a room is.
    ///
    /// # Errors
    /// `room_not_found`.
    pub(crate) fn find(&self, id: &str) -> Result<Place> {
        let inside = self.lock();
        let entry = inside.rooms.get(id).ok_or_else(|| {
            let shown: String = id.chars().take(64).collect();
            Error::new(ErrorCode::RoomNotFound, format!("there is no room {shown:?}"))
        })?;
        Ok(Place { id: id.to_owned(), shard: entry.shard })
    }

    /// Promises a seat in the oldest room of a type that has one, or a place for a new one.
    ///
    /// # Errors
    /// `limit` when a new room would be one too many.
    pub(crate) fn match_or_place(
        &self,
        room_type: &str,
        capacity: u32,
        id: impl FnOnce() -> String,
    ) -> Result<Place> {
        let mut inside = self.lock();
        let Inside { rooms, by_type, .. } = &mut *inside;
        for id in by_type.get(room_type).into_iter().flat_map(BTreeMap::values) {
            if let Some(entry) = rooms.get_mut(id)
                && entry.is_open()
            {
                entry.promised += 1;
                return Ok(Place { id: id.clone(), shard: entry.shard });
            }
        }
        let facts = Facts { capacity, ..Facts::default() };
        inside.place(id(), room_type, facts, false, self.rooms_max)
    }

    /// A place for a new room, with a seat promised to its creator.
    ///
    /// # Errors
    /// `limit` when it would be one too many.
    pub(crate) fn place(&self, room_type: &str, capacity: u32, private: bool, id: String) -> Result<Place> {
        let facts = Facts { capacity, private, ..Facts::default() };
        self.lock().place(id, room_type, facts, true, self.rooms_max)
    }

    /// One who was promised a seat has come, or stayed away.
    pub(crate) fn arrived(&self, id: &str) {
        if let Some(entry) = self.lock().rooms.get_mut(id) {
            entry.promised = entry.promised.saturating_sub(1);
        }
    }

    /// What others may know of a room has changed.
    pub(crate) fn publish(&self, id: &str, facts: &Facts) {
        if let Some(entry) = self.lock().rooms.get_mut(id) {
            entry.unborn = false;
            entry.facts.clone_from(facts);
        }
    }

    /// A room is gone, or did not come to be.
    pub(crate) fn remove(&self, id: &str) {
        let mut inside = self.lock();
        if let Some(entry) = inside.rooms.remove(id) {
            inside.load[entry.shard] -= 1;
            if let Some(rooms) = inside.by_type.get_mut(&entry.room_type) {
                rooms.remove(&entry.number);
            }
        }
    }

    /// Rooms that may be listed, oldest first.
    pub(crate) fn list(
        &self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: usize,
    ) -> Vec<Listing> {
        let inside = self.lock();
        let types =
            inside.by_type.iter().filter(|(name, _)| room_type.is_none_or(|wanted| wanted == name.as_str()));
        let rooms =
            types.flat_map(|(_, rooms)| rooms.values()).filter_map(|id| Some((id, inside.rooms.get(id)?)));
        let fits = |facts: &Facts| {
            filter.iter().all(|(key, value)| facts.metadata.get(*key).is_some_and(|found| found == value))
        };
        rooms
            .filter(|(_, entry)| !entry.facts.private && !entry.unborn && fits(&entry.facts))
            .take(limit)
            .map(|(id, entry)| Listing {
                id: id.clone(),
                room_type: entry.room_type.clone(),
                facts: entry.facts.clone(),
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_open(&self) -> bool {
        let Facts { players, capacity, locked, private, .. } = self.facts;
        !self.unborn && !locked && !private && players.saturating_add(self.promised) < capacity
    }
}

impl Inside {
    fn place(
        &mut self,
        id: String,
        room_type: &str,
        facts: Facts,
        unborn: bool,
        rooms_max: usize,
    ) -> Result<Place> {
        if self.rooms.len() >= rooms_max {
            return Err(Error::new(
                ErrorCode::Limit,
                format!("the node holds rooms_max = {rooms_max} rooms"),
            ));
        }
        let shard = (0..self.load.len()).min_by_key(|&shard| self.load[shard]).unwrap_or(0);
        self.load[shard] += 1;
        self.next += 1;
        let number = self.next;
        self.by_type.entry(room_type.to_owned()).or_default().insert(number, id.clone());
        let entry = Entry { shard, room_type: room_type.to_owned(), number, facts, promised: 1, unborn };
        self.rooms.insert(id.clone(), entry);
        Ok(Place { id, shard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(players: u32, capacity: u32) -> Facts {
        Facts { players, capacity, ..Facts::default() }
    }

    #[test]
    fn a_seat_that_was_promised_is_not_promised_again() {
        let directory = Directory::new(2, 10);
        let place = |id: &str| directory.match_or_place("table", 2, || id.to_owned()).unwrap().id;
        assert_eq!(place("a"), "a");
        assert_eq!(place("b"), "a");
        assert_eq!(place("c"), "c");
        directory.arrived("a");
        directory.publish("a", &facts(0, 2));
        assert_eq!(place("d"), "a");
    }

    #[test]
    fn rooms_go_where_there_are_fewest() {
        let directory = Directory::new(2, 3);
        let shard = |id: &str| directory.place("table", 1, false, id.to_owned()).map(|place| place.shard);
        assert_eq!((shard("a"), shard("b"), shard("c")), (Ok(0), Ok(1), Ok(0)));
        assert_eq!(shard("d").unwrap_err().code(), ErrorCode::Limit);
        directory.remove("b");
        assert_eq!(shard("d"), Ok(1));
    }

    #[test]
    fn private_locked_and_unborn_rooms_are_neither_matched_nor_listed() {
        let directory = Directory::new(1, 10);
        directory.place("table", 2, true, "private".into()).unwrap();
        directory.publish("private", &Facts { private: true, ..facts(1, 2) });
        directory.place("table", 2, false, "locked".into()).unwrap();
        directory.publish("locked", &Facts { locked: true, ..facts(1, 2) });
        directory.place("table", 2, false, "unborn".into()).unwrap();
        assert_eq!(directory.match_or_place("table", 2, || "new".into()).unwrap().id, "new");
        let listed: Vec<String> =
            directory.list(Some("table"), &[], 10).into_iter().map(|room| room.id).collect();
        assert_eq!(listed, ["locked", "new"]);
        assert!(directory.find("private").is_ok());
        assert_eq!(directory.find("gone").unwrap_err().code(), ErrorCode::RoomNotFound);
    }

    #[test]
    fn a_list_is_filtered_by_metadata() {
        let directory = Directory::new(1, 10);
        for (id, map) in [("a", "desert"), ("b", "city")] {
            directory.place("table", 2, false, id.into()).unwrap();
            let metadata = [("map".to_owned(), map.to_owned())].into();
            directory.publish(id, &Facts { metadata, ..facts(0, 2) });
        }
        assert_eq!(directory.list(None, &[("map", "city")], 10)[0].id, "b");
        assert!(directory.list(None, &[("map", "moon")], 10).is_empty());
        assert_eq!(directory.list(None, &[], 1).len(), 1);
    }
}
