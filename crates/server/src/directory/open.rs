//! The index behind `join_or_create`: the rooms that it may choose, by the values of their criteria
//! and by age.

use std::collections::{BTreeMap, HashMap};

use crate::room_id::RoomId;

/// The open rooms of one type.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// No map is empty.
    by_criteria: HashMap<Box<[u8]>, BTreeMap<u64, RoomId>>,
}

impl Open {
    /// Rooms with these criteria that are not among `except`, the oldest first.
    pub(super) fn oldest(
        &self,
        criteria: &[u8],
        except: &[RoomId],
    ) -> impl Iterator<Item = RoomId> {
        let rooms = self.by_criteria.get(criteria).into_iter().flat_map(BTreeMap::values);
        rooms.filter(|id| !except.contains(id)).copied()
    }

    pub(super) fn insert(&mut self, criteria: &[u8], age: u64, id: RoomId) {
        match self.by_criteria.get_mut(criteria) {
            Some(rooms) => drop(rooms.insert(age, id)),
            None => drop(self.by_criteria.insert(criteria.into(), BTreeMap::from([(age, id)]))),
        }
    }

    pub(super) fn remove(&mut self, criteria: &[u8], age: u64) {
        if let Some(rooms) = self.by_criteria.get_mut(criteria) {
            rooms.remove(&age);
            if rooms.is_empty() {
                self.by_criteria.remove(criteria);
            }
        }
    }

    /// Returns whether the index is empty.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_criteria.is_empty()
    }
}
