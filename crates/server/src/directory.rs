//! The directory of the node's rooms, and of their shards. It is used when rooms are created,
//! joined, listed and ended, never for messages.

mod busy;
mod index;
pub(crate) mod keys;
mod lateness;
mod listing;
mod moving;
mod open;
mod plan;
#[cfg(test)]
mod properties;
mod rooms;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::slice;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_room::{Error, RoomSummary};
use playfield_wire::{ErrorCode, excerpt};

use crate::cluster::KeyOf;
use crate::memory::shrink_map;
use crate::room_id::RoomId;
use crate::sought::Sought;
use busy::BusyShards;
use index::Index;
pub use listing::RoomOrder;
pub(crate) use listing::{Listing, Overview};
pub(crate) use plan::{Choice, Kept, Place, Plan};

use keys::{Key, Keys};
use lateness::Latenesses;
use open::Open;

/// The rooms of a node, of all its shards.
pub(crate) struct Directory {
    inner: Mutex<Inner>,
    rooms_max: usize,
}

struct Inner {
    rooms: HashMap<RoomId, Listed>,
    /// Rooms with a key, for each type. A room that is about to be created has its key already, and
    /// one that is about to end has it still.
    keys: Vec<Keys>,
    /// Rooms that `join_or_create` may choose, for each type: those with a key are not among them.
    open: Vec<Open>,
    /// Existing public rooms, for each type.
    listed: Vec<Index>,
    /// For each shard, the number of its rooms plus their taken and reserved seats.
    loads: Vec<usize>,
    lateness: Latenesses,
    busy: BusyShards,
    created: u64,
}

struct Listed {
    room_type: u16,
    shard: u16,
    /// The number of rooms created before it.
    age: u64,
    /// Whether it does not exist yet: its shard creates it when its first player arrives.
    awaited: bool,
    /// While it is awaited: it has been here, and is about to move to another node.
    suspended: bool,
    key: Option<Key>,
    /// The values of its criteria.
    criteria: Box<[u8]>,
    waiting_max: u32,
    summary: RoomSummary,
    /// Seats reserved for players who are about to join.
    reserved: u32,
}

impl Directory {
    pub(crate) fn new(room_types: usize, shards: usize, rooms_max: usize) -> Self {
        let inner = Inner {
            rooms: HashMap::new(),
            keys: (0..room_types).map(|_| Keys::default()).collect(),
            open: (0..room_types).map(|_| Open::default()).collect(),
            listed: (0..room_types).map(|_| Index::default()).collect(),
            loads: vec![0; shards],
            lateness: Latenesses::new(shards),
            busy: BusyShards::new(shards),
            created: 0,
        };
        Self { inner: Mutex::new(inner), rooms_max }
    }

    /// Limits the lateness of shards that get new rooms; zero does not.
    pub(crate) fn with_lateness_max(self, max: Duration) -> Self {
        self.lock().lateness.limit(max);
        self
    }

    /// Limits the busy share of shards that get new rooms, as a time per second; zero does not.
    pub(crate) fn with_busy_max(self, max: Duration) -> Self {
        self.lock().busy.limit(max);
        self
    }

    pub(crate) fn find(&self, id: RoomId) -> Option<Place> {
        self.lock()
            .rooms
            .get(&id)
            .map(|room| Place { room_type: room.room_type, shard: room.shard })
    }

    /// The room with this key, unless it is about to end.
    pub(crate) fn find_by_key(&self, room_type: u16, key: &str) -> Option<RoomId> {
        let inner = self.lock();
        let id = inner.keys.get(usize::from(room_type))?.find(key)?;
        (!inner.rooms[&id].summary.closing).then_some(id)
    }

    /// The room that has this key, even one that is about to begin or to end, and its place.
    pub(crate) fn place_of(&self, key: &KeyOf) -> Option<(RoomId, Place)> {
        let inner = self.lock();
        let id = inner.keys.get(usize::from(key.room_type))?.find(&key.key)?;
        let room = &inner.rooms[&id];
        Some((id, Place { room_type: room.room_type, shard: room.shard }))
    }

    /// Returns whether a room has this key, even one that is about to begin or to end.
    pub(crate) fn has_key(&self, room_type: u16, key: &str) -> bool {
        let inner = self.lock();
        inner.keys.get(usize::from(room_type)).is_some_and(|keys| keys.find(key).is_some())
    }

    /// The room with the plan's key, even if it is about to end; without one, registers it.
    pub(crate) fn find_or_plan(&self, plan: &Plan) -> Result<Choice, Error> {
        let mut inner = self.lock();
        let keys = &inner.keys[usize::from(plan.room_type)];
        match plan.key.as_ref().and_then(|key| keys.find(&key.text)) {
            Some(id) => Ok(Choice { id, shard: inner.rooms[&id].shard, new: false }),
            None => inner.plan(plan, self.rooms_max),
        }
    }

    /// Reserves a seat in this room, even in a full one if the room may have a seat for this
    /// player: a reserved one, or that of the same user.
    pub(crate) fn reserve(&self, id: RoomId, even_full: bool) -> Result<(), Error> {
        let mut inner = self.lock();
        match inner.rooms.get(&id) {
            None => Err(Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"))),
            Some(room) if room.is_full() && !even_full => Err(room.full()),
            Some(room) if !inner.lateness.takes_players(room.shard) && !even_full => {
                Err(inner.lateness.refusal())
            }
            Some(_) => {
                inner.change(id, None, |room| room.reserved += 1);
                Ok(())
            }
        }
    }

    /// Reserves a seat in the room with this key, even in a full one if the player may take over
    /// that of the same user.
    pub(crate) fn reserve_by_key(
        &self,
        room_type: u16,
        key: &str,
        except: &[RoomId],
        even_full: bool,
    ) -> Result<Choice, Error> {
        self.lock()
            .reserve_by_key(room_type, key, except, even_full)?
            .ok_or_else(|| no_room_with(key))
    }

    /// Reserves a seat in the room with the plan's key (even in a full one, as
    /// [`reserve_by_key`](Self::reserve_by_key)) or, without a key, in the oldest matching room. If
    /// there is none, reserves one in the new room of `plan`, if the player may create it.
    pub(crate) fn choose(
        &self,
        plan: &Plan,
        except: &[RoomId],
        may_create: Result<(), Error>,
        even_full: bool,
    ) -> Result<Choice, Error> {
        let mut inner = self.lock();
        if let Some(key) = &plan.key {
            if let Some(choice) =
                inner.reserve_by_key(plan.room_type, &key.text, except, even_full)?
            {
                return Ok(choice);
            }
            may_create?;
            return inner.plan(plan, self.rooms_max);
        }
        let fitting = inner.open[usize::from(plan.room_type)].oldest(&plan.criteria, except);
        let mut fitting = fitting.map(|id| (id, inner.rooms[&id].shard)).peekable();
        let may_create = match may_create {
            // There would be a room for it at another time.
            Err(_) if fitting.peek().is_some() => Err(inner.lateness.refusal()),
            may_create => may_create,
        };
        let found = fitting.find(|(_, shard)| inner.lateness.takes_players(*shard));
        drop(fitting);
        if let Some((id, shard)) = found {
            inner.change(id, None, |room| room.reserved += 1);
            return Ok(Choice { id, shard, new: false });
        }
        may_create?;
        inner.plan(plan, self.rooms_max)
    }

    /// Registers a new room, and reserves a seat in it.
    pub(crate) fn plan(&self, plan: &Plan) -> Result<Choice, Error> {
        self.lock().plan(plan, self.rooms_max)
    }

    /// Returns whether there are rooms of this type.
    pub(crate) fn has_rooms(&self, room_type: u16) -> bool {
        self.lock().rooms.values().any(|room| room.room_type == room_type)
    }

    /// The number of rooms created before this one, and the values of its criteria.
    pub(crate) fn facts(&self, id: RoomId) -> Option<(u64, Vec<u8>)> {
        self.lock().rooms.get(&id).map(|room| (room.age, room.criteria.to_vec()))
    }

    /// Registers a room that comes from another process, as the newest. Returns whether its id and
    /// its key are free.
    pub(crate) fn keep(&self, id: RoomId, kept: Kept) -> bool {
        let Kept { room_type, shard, key, criteria, waiting_max, summary } = kept;
        let mut inner = self.lock();
        let keys = &inner.keys[usize::from(room_type)];
        let is_taken = key.as_ref().is_some_and(|key| keys.find(&key.text).is_some());
        if is_taken || inner.rooms.contains_key(&id) {
            return false;
        }
        let room = Listed {
            room_type,
            shard,
            age: inner.created,
            awaited: true,
            suspended: false,
            key,
            criteria,
            waiting_max,
            summary: summary.clone(),
            reserved: 0,
        };
        inner.insert(id, room);
        inner.change(id, Some(&summary), |room| room.awaited = false);
        true
    }

    /// A shard's rooms were run up to this late.
    pub(crate) fn set_lateness(&self, shard: u16, late: Duration) {
        self.lock().lateness.set(shard, late);
    }

    /// The lateness of the latest shard's rooms.
    pub(crate) fn lateness(&self) -> Duration {
        self.lock().lateness.most()
    }

    /// A shard was busy for this share of its time, and a room of each type takes so much of it, in
    /// time per second.
    pub(crate) fn set_busy(&self, shard: u16, share: Duration, costs: Vec<Duration>) {
        self.lock().busy.set(shard, share, costs);
    }

    /// The share of its time for which the busiest shard was busy, in percent.
    pub(crate) fn busy_percent(&self) -> u64 {
        self.lock().busy.most_percent()
    }

    /// Returns whether the room is registered but not created yet.
    pub(crate) fn is_awaited(&self, id: RoomId) -> bool {
        self.lock().rooms.get(&id).is_some_and(|room| room.awaited)
    }

    /// The room was created or changed.
    pub(crate) fn publish(&self, id: RoomId, summary: &RoomSummary) {
        self.lock().change(id, Some(summary), |room| room.awaited = false);
    }

    /// A reserved seat was taken or rejected. The summary has the present number of players.
    pub(crate) fn seated(&self, id: RoomId, summary: &RoomSummary) {
        self.lock()
            .change(id, Some(summary), |room| room.reserved = room.reserved.saturating_sub(1));
    }

    /// The number of rooms that exist.
    pub(crate) fn count(&self) -> usize {
        self.lock().rooms.values().filter(|room| !room.awaited).count()
    }

    /// The number of rooms plus their taken and reserved seats.
    #[cfg(test)]
    pub(crate) fn load(&self) -> usize {
        self.lock().loads.iter().sum()
    }

    /// A reserved seat is no longer needed.
    pub(crate) fn release(&self, id: RoomId) {
        self.lock().change(id, None, |room| room.reserved = room.reserved.saturating_sub(1));
    }

    /// Removes a room. Returns its type and its key, if it had one.
    pub(crate) fn remove(&self, id: RoomId) -> Option<(u16, Arc<str>)> {
        let mut inner = self.lock();
        let room = inner.rooms.remove(&id)?;
        inner.loads[usize::from(room.shard)] -= room.load();
        inner.open[usize::from(room.room_type)].remove(&room.criteria, room.age);
        if let Some(key) = &room.key {
            inner.keys[usize::from(room.room_type)].remove(key);
        }
        if room.is_listed() {
            inner.listed[usize::from(room.room_type)].remove(room.age, &room.summary.metadata);
        }
        shrink_map(&mut inner.rooms);
        room.key.map(|key| (room.room_type, key.text))
    }

    /// Another node has the key of a room that goes on here: it is not found by it any more.
    pub(crate) fn forget_key(&self, id: RoomId) {
        let inner = &mut *self.lock();
        if let Some(room) = inner.rooms.get_mut(&id)
            && let Some(key) = room.key.take()
        {
            inner.keys[usize::from(room.room_type)].remove(&key);
        }
    }

    /// Up to `limit` public rooms whose metadata has all of `filter`, oldest first.
    pub(crate) fn list(
        &self,
        room_type: Option<u16>,
        filter: &[(impl AsRef<str>, impl AsRef<str>)],
        limit: usize,
    ) -> Vec<Listing> {
        let Some(filter) = listing::possible(filter) else { return Vec::new() };
        let inner = self.lock();
        let types = match room_type {
            None => inner.listed.as_slice(),
            Some(room_type) => {
                inner.listed.get(usize::from(room_type)).map(slice::from_ref).unwrap_or_default()
            }
        };
        let listing = |id| {
            let room = &inner.rooms[&id];
            Listing { id, room_type: room.room_type, summary: room.summary.clone() }
        };
        index::oldest(types, &filter).take(limit).map(listing).collect()
    }

    /// For operators: see [`Operator::rooms`](crate::Operator::rooms).
    pub(crate) fn overview(
        &self,
        room_type: Option<u16>,
        containing: &str,
        order: RoomOrder,
        skip: usize,
        limit: usize,
    ) -> (usize, Vec<Overview>) {
        let containing = &Sought::new(containing);
        let inner = self.lock();
        let matches = |(id, room): &(&RoomId, &Listed)| {
            !room.awaited
                && room_type.is_none_or(|wanted| wanted == room.room_type)
                && room.contains(**id, containing)
        };
        let mut found: Vec<_> = inner.rooms.iter().filter(matches).collect();
        found.sort_unstable_by_key(|(_, room)| match order {
            RoomOrder::Oldest => (0, room.age),
            RoomOrder::Newest => (0, u64::MAX - room.age),
            // Loads are not known here.
            RoomOrder::MostPlayers
            | RoomOrder::Slowest
            | RoomOrder::Latest
            | RoomOrder::MostBytes => (u32::MAX - room.summary.players, room.age),
        });
        let overview = |(id, room): &(&RoomId, &Listed)| Overview {
            listing: Listing { id: **id, room_type: room.room_type, summary: room.summary.clone() },
            shard: room.shard,
        };
        (found.len(), found.iter().skip(skip).take(limit).map(overview).collect())
    }

    /// For operators: the rooms that have players, by shard, in groups of about this many players.
    pub(crate) fn peopled(&self, players: usize) -> BTreeMap<u16, Vec<Vec<RoomId>>> {
        let mut shards: BTreeMap<u16, (usize, Vec<Vec<RoomId>>)> = BTreeMap::new();
        for (id, room) in self.lock().rooms.iter().filter(|(_, room)| room.summary.players > 0) {
            let (left, groups) = shards.entry(room.shard).or_default();
            if *left == 0 {
                *left = players;
                groups.push(Vec::new());
            }
            *left = left.saturating_sub(room.summary.players as usize);
            groups.last_mut().expect("the first room began one").push(*id);
        }
        shards.into_iter().map(|(shard, (_, groups))| (shard, groups)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No user code runs under the lock, and every change is complete before anything here could
        // panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room_with(key: &str) -> Error {
    let text = format!("no room of this type has the key {:?}", excerpt(key, 64));
    Error::new(ErrorCode::RoomNotFound, text)
}
