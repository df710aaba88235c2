//! On which shards the rooms are that rooms of this shard send to. The directory knows, too, but all
//! shards share its lock.

use crate::directory::Directory;
use crate::room_id::RoomId;

/// The number of rooms that a shard remembers. The table takes memory once a room has sent
/// anything.
const PLACES: usize = 4_096;

/// The shards of rooms, each in the place that follows from its id. A room never moves, and an id is
/// never given twice, so nothing here becomes wrong; mail to a room that has ended arrives nowhere.
#[derive(Default)]
pub(crate) struct RoomPlaces {
    places: Vec<Option<(RoomId, u16)>>,
}

impl RoomPlaces {
    /// The shard of a room; `None` if there is no such room.
    #[inline]
    pub(crate) fn find(&mut self, id: RoomId, directory: &Directory) -> Option<u16> {
        let place = id.fraction(PLACES);
        match self.places.get(place) {
            Some(&Some((known, shard))) if known == id => Some(shard),
            _ => self.remember(place, id, directory),
        }
    }

    #[cold]
    fn remember(&mut self, place: usize, id: RoomId, directory: &Directory) -> Option<u16> {
        let shard = directory.find(id)?.shard;
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        self.places[place] = Some((id, shard));
        Some(shard)
    }
}
