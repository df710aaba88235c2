//! The rooms of a shard: made, called, followed up, and dropped when they end.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use playfield_room::{AnyRoom, Birth, Creator, Error, Mail, RoomSummary};
use playfield_wire::ErrorCode;

use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::admission::Wanted;
use crate::shard::delivery::HostedRoomOutput;
use crate::shard::member::{MemberKey, Members};
use crate::shard::schedule::Beat;
use crate::shard::slab::{Key, Slab};
use crate::shard::sync::Cause;

/// Names a room within its shard.
pub(crate) type RoomKey = Key<Hosted>;

/// A room, and what its host keeps beside it.
pub(crate) struct Hosted {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) room: Box<dyn AnyRoom>,
    pub(crate) members: Members,
    /// When it was made. The room's own time counts from here.
    pub(crate) created: Duration,
    pub(crate) epoch: u64,
    ticks: Option<Beat>,
    syncs: Option<Beat>,
    /// How many syncs were made because the clock asked for them.
    pub(crate) regular_syncs: u64,
    /// When the schedule has it.
    due: Option<Duration>,
    /// What the directory knows.
    published: RoomSummary,
    /// It is in the list of rooms to follow up.
    touched: bool,
    /// Someone joined, and there is no regular sync to make that known.
    pub(crate) sync_awaited: bool,
    /// The turn of the last sync that it asked for.
    synced_on_demand: u64,
    /// Who gets the snapshot that they asked for, or come in with, later, and when: at most once
    /// for each member.
    pub(crate) resyncs: BTreeSet<(Duration, MemberKey)>,
}

impl Hosted {
    fn next_due(&self) -> Option<Duration> {
        let beats =
            [self.ticks.as_ref().map(Beat::deadline), self.syncs.as_ref().map(Beat::deadline)];
        let wake = self.room.wake_at().map(|at| self.created.saturating_add(at));
        let resync = self.resyncs.first().map(|&(at, _)| at);
        beats.into_iter().chain([wake, resync]).flatten().min()
    }
}

impl Shard {
    /// Makes a room that the directory knows of already.
    pub(super) fn create_room(
        &mut self,
        id: RoomId,
        wanted: &Wanted,
        creator: Option<Creator>,
    ) -> Result<RoomKey, Error> {
        let room_type = &self.delivery.node.room_types[usize::from(wanted.room_type)];
        let birth = Birth {
            id: id.to_string(),
            seed: self.entropy.number(),
            settings: room_type.settings,
            private: wanted.private,
            options: &wanted.options,
            format: wanted.format,
            creator,
        };
        self.watch.enters(wanted.room_type);
        let made = catch_unwind(AssertUnwindSafe(|| (room_type.create)(birth)));
        let room = made.unwrap_or_else(|_| {
            log::error!("a room of the type {:?} panicked while it was made", room_type.name);
            Err(Error::new(ErrorCode::RoomFailed, "the room failed while it was made"))
        })?;

        let phase = self.schedule.phase();
        let published = room.summary().clone();
        self.delivery.node.directory.publish(id, &published);
        let key = self.rooms.insert(Hosted {
            id,
            room_type: wanted.room_type,
            members: Slab::new(),
            created: self.now,
            // It tells this room from all others that had its id, which is none; clients treat it
            // as opaque.
            epoch: (self.entropy.number() >> 32) + 1,
            ticks: Beat::new(room.tick_hz(), phase, self.now),
            syncs: Beat::new(room.sync_hz(), phase, self.now),
            regular_syncs: 0,
            due: None,
            published,
            touched: false,
            sync_awaited: false,
            synced_on_demand: 0,
            resyncs: BTreeSet::new(),
            room,
        });
        self.by_id.insert(id, key);
        self.touch(key);
        Ok(key)
    }

    /// Calls a room, and notes that it has to be followed up. `None` if it is gone.
    #[inline]
    pub(super) fn call<R>(
        &mut self,
        key: RoomKey,
        call: impl FnOnce(&mut dyn AnyRoom, Duration, &mut HostedRoomOutput<'_>) -> R,
    ) -> Option<R> {
        let hosted = self.rooms.get_mut(key)?;
        self.watch.enters(hosted.room_type);
        let at = self.now.saturating_sub(hosted.created);
        let Hosted { room, members, id, .. } = hosted;
        let mut output =
            HostedRoomOutput { delivery: &mut self.delivery, members, room: key, id: *id };
        let result = call(&mut **room, at, &mut output);
        if !hosted.touched {
            hosted.touched = true;
            self.touched.push(key);
        }
        Some(result)
    }

    pub(super) fn touch(&mut self, key: RoomKey) {
        if let Some(hosted) = self.rooms.get_mut(key)
            && !hosted.touched
        {
            hosted.touched = true;
            self.touched.push(key);
        }
    }

    /// Runs every room that is due: ticks, then what it has timers for, then its sync, then
    /// snapshots that had to wait.
    pub(super) fn run_due_rooms(&mut self) {
        while let Some((deadline, key)) = self.schedule.pop(self.now) {
            let Some(hosted) = self.rooms.get_mut(key) else { continue };
            hosted.due = None;
            let late = self.now - deadline;
            self.delivery.counters.lateness_us_max =
                self.delivery.counters.lateness_us_max.max(late.as_micros() as u64);

            let count_max = self.delivery.node.config.catch_up_ticks_max;
            let first = hosted.ticks.as_ref().map_or(0, Beat::number);
            let ticks = hosted.ticks.as_mut().map_or(0..0, |beat| beat.take(self.now, count_max));
            let is_sync_due =
                hosted.syncs.as_mut().is_some_and(|beat| !beat.take(self.now, 1).is_empty());
            self.delivery.counters.ticks += ticks.end - ticks.start;
            self.delivery.counters.ticks_skipped += ticks.start - first;
            for number in ticks {
                self.call(key, |room, at, out| {
                    if !room.is_closed() {
                        room.tick(at, number, out);
                    }
                });
            }
            self.call(key, |room, at, out| {
                if !room.is_closed() && room.wake_at().is_some_and(|due| due <= at) {
                    room.wake(at, out);
                }
            });
            if is_sync_due {
                self.sync_room(key, Cause::Clock);
            }
            self.resync_due(key);
        }
    }

    /// Gives a room what came for it from elsewhere than its players.
    pub(super) fn mail_to_room(&mut self, id: RoomId, mail: Mail) {
        let Some(&key) = self.by_id.get(&id) else {
            let text = || Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"));
            return self.delivery.undeliverable(mail, text);
        };
        self.call(key, |room, at, out| room.mail(at, mail, out));
    }

    /// Delivers what rooms of this shard sent to each other. What they send in turn waits for the
    /// next turn.
    pub(super) fn deliver_local_mail(&mut self) {
        for _ in 0..self.delivery.local_mail.len() {
            if let Some((to, mail)) = self.delivery.local_mail.pop_front() {
                self.mail_to_room(to, mail);
            }
        }
    }

    /// Follows up every room that was called: the directory learns what changed, a wanted sync is
    /// made, and a room that ended is dropped. Connections that can't be kept are closed on the
    /// way, which calls rooms again.
    pub(super) fn settle(&mut self) {
        loop {
            while let Some((connection, code, text)) = self.delivery.doomed.pop() {
                self.fail(connection, code, &text);
            }
            self.close_leaving();
            let Some(key) = self.touched.pop() else { break };
            self.settle_room(key);
        }
    }

    fn settle_room(&mut self, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        hosted.touched = false;
        if hosted.room.is_closed() {
            return self.drop_room(key);
        }
        if *hosted.room.summary() != hosted.published {
            hosted.published.clone_from(hosted.room.summary());
            self.delivery.node.directory.publish(hosted.id, &hosted.published);
        }
        // Once a turn, or a room that always wants one would never let go.
        let wants_sync = hosted.sync_awaited || hosted.room.wants_sync();
        let sync_now = wants_sync && hosted.synced_on_demand != self.turn;
        let due = if wants_sync && !sync_now { Some(self.now) } else { hosted.next_due() };
        self.schedule.change(key, hosted.due, due);
        hosted.due = due;
        if sync_now {
            hosted.synced_on_demand = self.turn;
            hosted.sync_awaited = false;
            self.sync_room(key, Cause::Demand);
        }
    }

    fn drop_room(&mut self, key: RoomKey) {
        // A room that ended took its players out. Should it have left one, they must not wait for
        // ever.
        let why = Error::new(ErrorCode::RoomClosed, "the room ended");
        let left: Vec<_> =
            self.rooms.get(key).map(|hosted| hosted.members.keys()).unwrap_or_default();
        for member in left {
            self.call(key, |_, _, out| {
                playfield_room::RoomOutput::removed(out, crate::shard::member::link(member), &why);
            });
        }
        if let Some(hosted) = self.rooms.remove(key) {
            self.schedule.change(key, hosted.due, None);
            self.by_id.remove(&hosted.id);
            self.delivery.node.directory.remove(hosted.id);
        }
    }
}
