//! The rooms that the directory knows of: where a player or a new room goes, and what changes.

use std::mem;
use std::sync::Arc;

use playfield_room::{Error, RoomSummary, room_full};
use playfield_wire::{ErrorCode, excerpt};

use super::{Choice, Inner, Listed, Plan};
use crate::room_id::RoomId;

impl Inner {
    /// Reserves a seat in the room with this key; `None` if there is none.
    pub(super) fn reserve_by_key(
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

    pub(super) fn plan(&mut self, plan: &Plan, rooms_max: usize) -> Result<Choice, Error> {
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
            suspended: false,
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
    pub(super) fn insert(&mut self, id: RoomId, room: Listed) {
        if let Some(key) = &room.key {
            self.keys[usize::from(room.room_type)].insert(key, id);
        }
        self.created += 1;
        self.loads[usize::from(room.shard)] += room.load();
        self.rooms.insert(id, room);
    }

    /// The shard with the least load of those that are neither late nor too busy; `preferred` if no
    /// other has less.
    pub(super) fn least_loaded(&self, preferred: u16) -> Option<u16> {
        let takes = |&shard: &u16| self.lateness.takes_rooms(shard) && self.busy.takes_rooms(shard);
        let shards = (0..self.loads.len() as u16).filter(takes);
        shards.min_by_key(|&shard| (self.loads[usize::from(shard)], shard != preferred))
    }

    /// The error for a room that no shard takes.
    pub(super) fn refusal(&self) -> Error {
        let is_on_time = |shard| self.lateness.takes_rooms(shard);
        match (0..self.loads.len() as u16).any(is_on_time) {
            true => self.busy.refusal(),
            false => self.lateness.refusal(),
        }
    }

    /// Changes a room, and updates what depends on it. `summary` is its new summary, if known.
    pub(super) fn change(
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
        let has_key = room.key.is_some() || room.summary.key.is_some();
        if room.is_full() || locked || private || closing || has_key {
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
    pub(super) fn is_full(&self) -> bool {
        let RoomSummary { players, capacity, .. } = self.summary;
        players.saturating_add(self.kept()) >= capacity
    }

    /// The number of seats that are kept for others.
    pub(super) fn kept(&self) -> u32 {
        self.summary.reserved.saturating_add(self.reserved)
    }

    pub(super) fn full(&self) -> Error {
        room_full(self.summary.players, self.kept())
    }

    pub(super) fn is_listed(&self) -> bool {
        !self.awaited && !self.summary.private && !self.summary.closing
    }

    pub(super) fn load(&self) -> usize {
        1 + self.summary.players as usize + self.reserved as usize
    }
}
