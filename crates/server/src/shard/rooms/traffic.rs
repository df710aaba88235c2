//! The bytes of messages in and out of rooms, for operators.

use std::time::Duration;

use crate::memory::PLACES_KEPT;
use crate::shard::keys::RoomKey;

/// The least time over which a rate is measured.
const RATE_OVER: Duration = Duration::from_secs(1);

/// Bytes of messages since a room began, before framing and compression: the payloads of what its
/// players sent, and the messages written for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// The bytes of all rooms of a shard. Beside the rooms, because what is written for a member
/// does not pass its room.
#[derive(Default)]
pub(crate) struct Traffic {
    /// By the place of the room.
    rooms: Vec<Bytes>,
}

impl Traffic {
    pub(crate) fn begin(&mut self, room: RoomKey) {
        if room.index() >= self.rooms.len() {
            self.rooms.resize(room.index() + 1, Bytes::default());
        }
        self.rooms[room.index()] = Bytes::default();
    }

    /// A room has ended, and there are this many places for rooms.
    pub(crate) fn end(&mut self, places: usize) {
        self.rooms.truncate(places);
        if self.rooms.capacity() > 4 * places.max(PLACES_KEPT) {
            self.rooms.shrink_to(2 * places);
        }
    }

    #[inline]
    pub(crate) fn received(&mut self, room: RoomKey, bytes: usize) {
        if let Some(of) = self.rooms.get_mut(room.index()) {
            of.received += bytes as u64;
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, room: RoomKey, bytes: usize) {
        if let Some(of) = self.rooms.get_mut(room.index()) {
            of.sent += bytes as u64;
        }
    }

    pub(crate) fn of(&self, room: RoomKey) -> Bytes {
        self.rooms.get(room.index()).copied().unwrap_or_default()
    }
}

/// The counts when an operator last looked, and the rates until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    at: Duration,
    bytes: Bytes,
    per_s: Bytes,
}

impl Sample {
    /// The first look: the rates are those since the room began.
    pub(crate) fn first(began: Duration) -> Self {
        Self { at: began, bytes: Bytes::default(), per_s: Bytes::default() }
    }

    /// The bytes per second between the last two looks that were a second apart or more.
    pub(crate) fn look(&mut self, now: Duration, bytes: Bytes) -> Bytes {
        let past = now.saturating_sub(self.at);
        if past >= RATE_OVER {
            let rate = |before: u64, after: u64| {
                (after.saturating_sub(before) as f64 / past.as_secs_f64()) as u64
            };
            self.per_s = Bytes {
                received: rate(self.bytes.received, bytes.received),
                sent: rate(self.bytes.sent, bytes.sent),
            };
            (self.at, self.bytes) = (now, bytes);
        }
        self.per_s
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Bytes, PLACES_KEPT, Sample, Traffic};
    use crate::shard::slab::Slab;

    #[test]
    fn a_room_in_the_place_of_another_begins_at_nothing() {
        let (mut traffic, mut rooms) = (Traffic::default(), Slab::new());
        let first = rooms.insert(());
        traffic.begin(first);
        traffic.received(first, 3);
        traffic.sent(first, 5);
        traffic.sent(first, 2);
        assert_eq!(traffic.of(first), Bytes { received: 3, sent: 7 });
        rooms.remove(first);
        traffic.end(rooms.places());
        let second = rooms.insert(());
        assert_eq!(second.index(), first.index());
        traffic.begin(second);
        assert_eq!(traffic.of(second), Bytes::default());
    }

    #[test]
    fn what_many_rooms_took_is_given_back() {
        let (mut traffic, mut rooms) = (Traffic::default(), Slab::new());
        let keys: Vec<_> = (0..10_000).map(|_| rooms.insert(())).collect();
        keys.iter().for_each(|key| traffic.begin(*key));
        for key in keys {
            rooms.remove(key);
            traffic.end(rooms.places());
        }
        assert!(traffic.rooms.capacity() <= 4 * PLACES_KEPT, "{}", traffic.rooms.capacity());
    }

    #[test]
    fn a_rate_is_that_between_two_looks_at_least_a_second_apart() {
        let ms = Duration::from_millis;
        let mut sample = Sample::first(ms(1000));
        let mut look = |at, sent| sample.look(ms(at), Bytes { received: 0, sent }).sent;
        assert_eq!(look(1999, 500), 0);
        assert_eq!(look(3000, 500), 250, "since it began");
        assert_eq!(look(3999, 9000), 250);
        assert_eq!(look(5000, 4500), 2000);
    }
}
