//! The directory of the node's rooms, and of their shards. It is used when rooms are created,
//! joined, listed and ended, never for messages.

mod busy;
mod index;
pub(crate) mod keys;
mod lateness;
mod open;
#[cfg(test)]
mod properties;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, slice};

use playfield_room::{Error, METADATA_BYTES_MAX, METADATA_MAX, RoomSummary, room_full};
use playfield_wire::{ErrorCode, excerpt};

use crate::memory::shrink_map;
use crate::node::Node;
use crate::room_id::RoomId;
use crate::shard::mail::join::RoomSpec;
use crate::sought::Sought;
use busy::BusyShards;
use index::Index;
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
    key: Option<Key>,
    /// The values of its criteria.
    criteria: Box<[u8]>,
    waiting_max: u32,
    summary: RoomSummary,
    /// Seats reserved for players who are about to join.
    reserved: u32,
}

/// The location and type of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) room_type: u16,
    pub(crate) shard: u16,
}

/// A room that comes from another process.
pub(crate) struct Kept {
    pub(crate) room_type: u16,
    pub(crate) shard: u16,
    pub(crate) key: Option<Key>,
    /// The values of its criteria.
    pub(crate) criteria: Box<[u8]>,
    pub(crate) waiting_max: u32,
    pub(crate) summary: RoomSummary,
}

/// A room chosen for a player, with a reserved seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) id: RoomId,
    pub(crate) shard: u16,
    /// Whether it was just registered, and must be created.
    pub(crate) new: bool,
}

/// A room to be created.
pub(crate) struct Plan {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) key: Option<Key>,
    /// The values of its criteria.
    pub(crate) criteria: Vec<u8>,
    /// The number of seats that are reserved in it from the beginning.
    pub(crate) seats: u32,
    /// The number of joins that may wait for its end, when it ends, to get the next room with its
    /// key.
    pub(crate) waiting_max: u32,
    pub(crate) capacity: u32,
    pub(crate) private: bool,
    /// The shard that gets it, unless another one has less load.
    pub(crate) shard: u16,
}

/// A room as listed to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) summary: RoomSummary,
}

/// A room as operators see it in a list.
pub(crate) struct Overview {
    pub(crate) listing: Listing,
    pub(crate) shard: u16,
}

/// In which order an operator's list has rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomOrder {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
    /// Rooms with the most players first.
    MostPlayers,
    /// Rooms with the longest sync in the last five to ten seconds first, ticks, timers and patches
    /// included.
    Slowest,
    /// Rooms that were the latest first.
    Latest,
    /// Rooms with the most bytes per second first, in and out.
    MostBytes,
}

impl Listed {
    /// Returns whether a text is in its id, its key or its metadata.
    fn contains(&self, id: RoomId, text: &Sought) -> bool {
        let summary = &self.summary;
        text.is_in("")
            || text.is_in(&id.to_string())
            || summary.key.as_deref().is_some_and(|key| text.is_in(key))
            || summary.metadata.iter().any(|(key, value)| text.is(key) || text.is_in(value))
    }
}

impl Plan {
    /// The room of this specification, with a seat for its first player.
    pub(crate) fn new(node: &Node, id: RoomId, spec: &RoomSpec, shard: u16) -> Self {
        let settings = &node.room_types[usize::from(spec.room_type)].settings;
        let (capacity, waiting_max) = (settings.capacity, settings.joins_waiting_max);
        let RoomSpec { room_type, ref key, ref criteria, private, .. } = *spec;
        let (key, criteria) = (key.clone(), criteria.clone());
        Self { id, room_type, key, criteria, seats: 1, waiting_max, capacity, private, shard }
    }
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

    /// The number of rooms plus their taken and reserved seats.
    #[cfg(test)]
    pub(crate) fn load(&self) -> usize {
        self.lock().loads.iter().sum()
    }

    /// A reserved seat is no longer needed.
    pub(crate) fn release(&self, id: RoomId) {
        self.lock().change(id, None, |room| room.reserved = room.reserved.saturating_sub(1));
    }

    pub(crate) fn remove(&self, id: RoomId) {
        let mut inner = self.lock();
        if let Some(room) = inner.rooms.remove(&id) {
            inner.loads[usize::from(room.shard)] -= room.load();
            inner.open[usize::from(room.room_type)].remove(&room.criteria, room.age);
            if let Some(key) = &room.key {
                inner.keys[usize::from(room.room_type)].remove(key);
            }
            if room.is_listed() {
                inner.listed[usize::from(room.room_type)].remove(room.age, &room.summary.metadata);
            }
            shrink_map(&mut inner.rooms);
        }
    }

    /// Up to `limit` public rooms whose metadata has all of `filter`, oldest first.
    pub(crate) fn list(
        &self,
        room_type: Option<u16>,
        filter: &[(impl AsRef<str>, impl AsRef<str>)],
        limit: usize,
    ) -> Vec<Listing> {
        let Some(filter) = possible(filter) else { return Vec::new() };
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

/// The pairs of a filter, ordered and each once; `None` if no room has so many, or so long ones. A
/// client may ask for thousands: that takes no memory and little time.
fn possible(filter: &[(impl AsRef<str>, impl AsRef<str>)]) -> Option<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for (name, value) in filter {
        let pair = (name.as_ref(), value.as_ref());
        if pair.0.len().max(pair.1.len()) > METADATA_BYTES_MAX {
            return None;
        }
        if !pairs.contains(&pair) {
            if pairs.len() == METADATA_MAX {
                return None;
            }
            pairs.push(pair);
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

fn no_room_with(key: &str) -> Error {
    let text = format!("no room of this type has the key {:?}", excerpt(key, 64));
    Error::new(ErrorCode::RoomNotFound, text)
}

impl Inner {
    /// Reserves a seat in the room with this key; `None` if there is none.
    fn reserve_by_key(
        &mut self,
        room_type: u16,
        key: &str,
        except: &[RoomId],
        even_full: bool,
    ) -> Result<Option<Choice>, Error> {
        let keys = self.keys.get(usize::from(room_type));
        let Some(id) = keys.and_then(|keys| keys.find(key)) else { return Ok(None) };
        if except.contains(&id) {
            return Err(Error::new(ErrorCode::AlreadyJoined, "this session is in that room"));
        }
        let room = &self.rooms[&id];
        // A join that finds it about to end waits for that, and needs no seat in it.
        if room.summary.closing {
            if room.reserved >= room.waiting_max {
                let waiting_max = room.waiting_max;
                let text =
                    format!("joins_waiting_max: {waiting_max} wait for the room's end already");
                return Err(Error::new(ErrorCode::Busy, text));
            }
        } else if room.is_full() && !even_full {
            return Err(room.full());
        } else if !self.lateness.takes_players(room.shard) && !even_full {
            return Err(self.lateness.refusal());
        }
        let shard = room.shard;
        self.change(id, None, |room| room.reserved += 1);
        Ok(Some(Choice { id, shard, new: false }))
    }

    fn plan(&mut self, plan: &Plan, rooms_max: usize) -> Result<Choice, Error> {
        let keys = &self.keys[usize::from(plan.room_type)];
        if self.rooms.contains_key(&plan.id) {
            let text = format!("a room has the id {} already", plan.id);
            return Err(Error::new(ErrorCode::RoomExists, text));
        }
        if let Some(key) = &plan.key
            && keys.find(&key.text).is_some()
        {
            let key = excerpt(&key.text, 64);
            let text = format!("a room of this type has the key {key:?} already");
            return Err(Error::new(ErrorCode::RoomExists, text));
        }
        if self.rooms.len() >= rooms_max {
            let text = format!("limits.rooms: the node already has {rooms_max} rooms");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        let shard = self.least_loaded(plan.shard).ok_or_else(|| self.refusal())?;
        self.busy.plan(shard, plan.room_type);
        let summary = RoomSummary {
            capacity: plan.capacity,
            private: plan.private,
            key: plan.key.as_ref().map(|key| Arc::clone(&key.text)),
            is_code: plan.key.as_ref().is_some_and(|key| key.is_code),
            ..RoomSummary::default()
        };
        let (room_type, key) = (plan.room_type, plan.key.clone());
        let criteria = plan.criteria.as_slice().into();
        let room = Listed {
            room_type,
            shard,
            age: self.created,
            awaited: true,
            key,
            criteria,
            waiting_max: plan.waiting_max,
            summary,
            reserved: 0,
        };
        self.insert(plan.id, room);
        self.change(plan.id, None, |room| room.reserved = plan.seats);
        Ok(Choice { id: plan.id, shard, new: true })
    }

    /// Adds a room, as the newest.
    fn insert(&mut self, id: RoomId, room: Listed) {
        if let Some(key) = &room.key {
            self.keys[usize::from(room.room_type)].insert(key, id);
        }
        self.created += 1;
        self.loads[usize::from(room.shard)] += room.load();
        self.rooms.insert(id, room);
    }

    /// The shard with the least load of those that are neither late nor too busy; `preferred` if no
    /// other has less.
    fn least_loaded(&self, preferred: u16) -> Option<u16> {
        let takes = |&shard: &u16| self.lateness.takes_rooms(shard) && self.busy.takes_rooms(shard);
        let shards = (0..self.loads.len() as u16).filter(takes);
        shards.min_by_key(|&shard| (self.loads[usize::from(shard)], shard != preferred))
    }

    /// The error for a room that no shard takes.
    fn refusal(&self) -> Error {
        let is_on_time = |shard| self.lateness.takes_rooms(shard);
        match (0..self.loads.len() as u16).any(is_on_time) {
            true => self.busy.refusal(),
            false => self.lateness.refusal(),
        }
    }

    /// Changes a room, and updates what depends on it. `summary` is its new summary, if known.
    fn change(
        &mut self,
        id: RoomId,
        summary: Option<&RoomSummary>,
        change: impl FnOnce(&mut Listed),
    ) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let (load, was_listed) = (room.load(), room.is_listed());
        change(room);
        let before = summary.map(|summary| mem::replace(&mut room.summary, summary.clone()));
        if room.summary.is_code
            && let Some(key) = room.key.as_mut().filter(|key| !key.is_code)
        {
            // Its save says so.
            key.is_code = true;
            self.keys[usize::from(room.room_type)].insert(key, id);
        }
        let total = &mut self.loads[usize::from(room.shard)];
        *total = *total - load + room.load();

        let open = &mut self.open[usize::from(room.room_type)];
        let RoomSummary { locked, private, closing, .. } = room.summary;
        if room.is_full() || locked || private || closing || room.key.is_some() {
            open.remove(&room.criteria, room.age);
        } else {
            open.insert(&room.criteria, room.age, id);
        }

        let known = before.as_ref().map_or(&room.summary.metadata, |summary| &summary.metadata);
        let metadata = &room.summary.metadata;
        if was_listed != room.is_listed() || known != metadata {
            let listed = &mut self.listed[usize::from(room.room_type)];
            if was_listed {
                listed.remove(room.age, known);
            }
            if room.is_listed() {
                listed.insert(room.age, id, metadata);
            }
        }
    }
}

impl Listed {
    fn is_full(&self) -> bool {
        let RoomSummary { players, capacity, .. } = self.summary;
        players.saturating_add(self.kept()) >= capacity
    }

    /// The number of seats that are kept for others.
    fn kept(&self) -> u32 {
        self.summary.reserved.saturating_add(self.reserved)
    }

    fn full(&self) -> Error {
        room_full(self.summary.players, self.kept())
    }

    fn is_listed(&self) -> bool {
        !self.awaited && !self.summary.private && !self.summary.closing
    }

    fn load(&self) -> usize {
        1 + self.summary.players as usize + self.reserved as usize
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_room::{Error, METADATA_BYTES_MAX, RoomSummary};
    use playfield_wire::ErrorCode;

    use super::keys::Key;
    use super::{Choice, Directory, Plan};
    use crate::room_id::RoomId;

    fn id(number: u8) -> RoomId {
        RoomId::from_random([number; 10])
    }

    fn plan(number: u8) -> Plan {
        Plan {
            id: id(number),
            room_type: 0,
            key: None,
            criteria: Vec::new(),
            seats: 1,
            waiting_max: 2,
            capacity: 2,
            private: false,
            shard: 0,
        }
    }

    fn choose(directory: &Directory, number: u8) -> Choice {
        directory.choose(&plan(number), &[], Ok(()), false).unwrap()
    }

    #[test]
    fn seats_are_reserved_before_anyone_arrives() {
        let directory = Directory::new(1, 1, 10);
        assert!(choose(&directory, 1).new);
        assert_eq!(choose(&directory, 2), Choice { id: id(1), shard: 0, new: false });
        assert_eq!(choose(&directory, 3), Choice { id: id(3), shard: 0, new: true });
        assert_eq!(directory.reserve(id(1), false).unwrap_err().code(), ErrorCode::RoomFull);
        let summary = RoomSummary { players: 1, capacity: 2, ..RoomSummary::default() };
        directory.seated(id(1), &summary);
        let text = "the room is full: it has 1 player, and keeps 1 seat for others";
        assert_eq!(directory.reserve(id(1), false).unwrap_err().text(), text);
        directory.seated(id(1), &RoomSummary { players: 2, ..summary });
        let text = "the room is full: it has 2 players";
        assert_eq!(directory.reserve(id(1), false).unwrap_err().text(), text);
        directory.publish(id(1), &RoomSummary { capacity: 1, ..RoomSummary::default() });
        assert!(directory.reserve(id(1), false).is_ok());
        assert_eq!(directory.reserve(id(9), false).unwrap_err().code(), ErrorCode::RoomNotFound);
    }

    #[test]
    fn the_oldest_room_that_fits_is_chosen() {
        let directory = Directory::new(1, 1, 10);
        let open = |players, locked, private| RoomSummary {
            players,
            capacity: 2,
            locked,
            private,
            ..RoomSummary::default()
        };
        for (number, summary) in [
            (1, open(2, false, false)),
            (2, open(0, true, false)),
            (3, open(0, false, true)),
            (4, open(0, false, false)),
            (5, open(1, false, false)),
        ] {
            directory.plan(&plan(number)).unwrap();
            directory.seated(id(number), &summary);
        }
        assert_eq!(choose(&directory, 6).id, id(4));
        assert_eq!(directory.choose(&plan(6), &[id(4)], Ok(()), false).unwrap().id, id(5));
        directory.remove(id(4));
        assert!(choose(&directory, 6).new, "the other is full");
    }

    #[test]
    fn new_rooms_go_to_the_least_loaded_shard() {
        let directory = Directory::new(1, 3, 10);
        let shards: Vec<u16> =
            (1..=4).map(|number| directory.plan(&plan(number)).unwrap().shard).collect();
        assert_eq!(shards, [0, 1, 2, 0]);
        directory.remove(id(2));
        assert_eq!(directory.plan(&plan(5)).unwrap().shard, 1);
    }

    #[test]
    fn rooms_and_players_go_to_shards_that_are_on_time() {
        let ms = Duration::from_millis;
        let directory = Directory::new(1, 2, 10).with_lateness_max(ms(5));
        assert_eq!(choose(&directory, 1).shard, 0);
        let summary = RoomSummary { players: 1, capacity: 9, ..RoomSummary::default() };
        directory.seated(id(1), &summary);

        directory.set_lateness(0, ms(6));
        assert_eq!(directory.plan(&plan(2)).unwrap().shard, 1);
        assert_eq!(directory.plan(&plan(3)).unwrap().shard, 1, "though it has more already");
        assert_eq!(choose(&directory, 4).id, id(1), "players still come");

        directory.set_lateness(0, ms(21));
        assert!(directory.reserve(id(1), true).is_ok(), "a reserved seat was promised");
        let busy = |error: Error| assert_eq!(error.code(), ErrorCode::Busy, "{error:?}");
        busy(directory.reserve(id(1), false).unwrap_err());
        assert_eq!(choose(&directory, 5), Choice { id: id(2), shard: 1, new: false });

        let summary = RoomSummary { capacity: 9, ..RoomSummary::default() };
        directory.seated(id(3), &summary);
        let none = || Err(Error::new(ErrorCode::Forbidden, "no rooms of this type"));
        let choice = directory.choose(&plan(6), &[], none(), false).unwrap();
        assert_eq!(choice.shard, 1, "not the oldest, but on time");
        let all: Vec<_> = (2..=5).map(id).collect();
        let full = directory.choose(&plan(6), &all, none(), false).unwrap_err();
        assert_eq!(full.code(), ErrorCode::Busy, "there would be a seat in room 1: {full:?}");

        directory.set_lateness(1, ms(21));
        let key = Some(Key { text: "k".into(), is_code: false });
        busy(directory.plan(&Plan { key, ..plan(6) }).unwrap_err());
        assert!(!directory.has_key(0, "k"), "what was refused leaves no key");
        busy(directory.choose(&plan(6), &[id(5)], Ok(()), false).unwrap_err());
        directory.set_lateness(0, ms(0));
        assert_eq!(directory.plan(&plan(6)).unwrap().shard, 0);
    }

    #[test]
    fn there_are_at_most_rooms_max() {
        let directory = Directory::new(1, 1, 2);
        directory.plan(&plan(1)).unwrap();
        directory.plan(&plan(2)).unwrap();
        let error = directory.plan(&plan(3)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
        assert!(error.text().starts_with("limits.rooms: "));
        directory.remove(id(1));
        directory.plan(&plan(3)).unwrap();
    }

    #[test]
    fn lists_omit_private_and_unborn_rooms() {
        let directory = Directory::new(2, 1, 10);
        for number in 1..=4 {
            directory.plan(&plan(number)).unwrap();
        }
        let summary = |private, mode: &str| RoomSummary {
            capacity: 2,
            private,
            metadata: [("mode".to_owned(), mode.to_owned())].into(),
            ..RoomSummary::default()
        };
        directory.publish(id(2), &summary(false, "duel"));
        directory.publish(id(1), &summary(false, "race"));
        directory.publish(id(3), &summary(true, "duel"));
        let list = |room_type, filter: &[(&str, &str)], limit| {
            directory
                .list(room_type, filter, limit)
                .iter()
                .map(|listing| listing.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(list(None, &[], 10), [id(1), id(2)]);
        assert_eq!(list(None, &[], 1), [id(1)]);
        assert_eq!(list(Some(1), &[], 10), []);
        assert_eq!(list(None, &[("mode", "duel")], 10), [id(2)]);
        assert_eq!(list(None, &[("mode", "duel"), ("map", "x")], 10), []);
        assert_eq!(list(None, &[("mode", "duel"); 1000], 10), [id(2)]);
        assert_eq!(list(None, &[("mode", "duel"), ("mode", "race")], 10), []);
    }

    #[test]
    fn filters_are_as_long_as_metadata_may_be() {
        let directory = Directory::new(1, 1, 1);
        directory.plan(&plan(1)).unwrap();
        let longest = "x".repeat(METADATA_BYTES_MAX);
        let metadata = [(longest.clone(), longest.clone())].into();
        let summary = RoomSummary { capacity: 2, metadata, ..RoomSummary::default() };
        directory.publish(id(1), &summary);
        let count = |name: &str, value: &str| directory.list(None, &[(name, value)], 9).len();
        let longer = longest.clone() + "x";
        assert_eq!(count(&longest, &longest), 1);
        assert_eq!(count(&longer, &longest), 0);
        assert_eq!(count(&longest, &longer), 0);
    }

    #[test]
    fn a_player_who_may_not_create_rooms_gets_an_existing_one_or_an_error() {
        let directory = Directory::new(1, 1, 1);
        let may_not = || Err(Error::new(ErrorCode::Limit, "too fast"));
        assert_eq!(
            directory.choose(&plan(1), &[], may_not(), false).unwrap_err().text(),
            "too fast"
        );
        assert_eq!(directory.find(id(1)), None);
        assert!(choose(&directory, 2).new, "there is space for it");
        assert_eq!(directory.choose(&plan(3), &[], may_not(), false).unwrap().id, id(2));
        assert!(directory.choose(&plan(3), &[], may_not(), false).is_err());
        directory.release(id(2));
        assert!(directory.reserve(id(2), false).is_ok(), "every reserved seat was released");
    }
}
