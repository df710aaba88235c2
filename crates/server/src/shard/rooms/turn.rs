//! The turn of a shard's rooms: they are created, called, followed up, and dropped when they end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{
    AnyRoom, Birth, Creator, EndReason, Error, Mail, Pause, ReservedSeat, RoomOutput, RoomSummary,
    SeatFor, Stage,
};
use playfield_state::Data;
use playfield_wire::ErrorCode;

use crate::room_id::RoomId;
use crate::shard::keys::{RoomKey, link};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::RoomSpec;
use crate::shard::rooms::delivery::HostedRoomOutput;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::schedule::Beat;
use crate::shard::rooms::sync::Cause;
use crate::shard::rooms::{Hosted, Made};
use crate::shard::work::Founder;

/// The number of rooms that are written whole in a turn, when a file of the journal was begun.
const WHOLE_PER_TURN: usize = 8;

impl RoomHost {
    /// Makes a room that the directory knows of already.
    pub(in crate::shard) fn create_room(
        &mut self,
        below: &mut Below<'_>,
        id: RoomId,
        spec: &RoomSpec,
        (creator, founder): (Creator, Founder),
        seats: Vec<ReservedSeat>,
    ) -> Result<RoomKey, Error> {
        let room_type = &below.env.node.room_types[usize::from(spec.room_type)];
        let birth = Birth {
            id: id.to_string(),
            room_type: room_type.name.clone(),
            key: spec.key.as_ref().map(|key| Arc::clone(&key.text)),
            key_origin: spec.key_origin(),
            seed: below.env.entropy.number(),
            settings: room_type.settings,
            private: spec.private,
            options: &spec.options,
            format: spec.format,
            creator,
            store: below.env.node.store.lend(),
            seats,
        };
        if let Some(journaled) = &below.outbound.journaled
            && journaled.is_stalled()
            && journaled.takes(room_type, birth.key.as_deref())
        {
            return Err(Pause::Journal.error());
        }
        if let (Some(journaled), Some(key)) = (&below.outbound.journaled, &birth.key)
            && journaled.is_unsaved(room_type, key)
        {
            let text = format!(
                "the room {:?} {key:?} has ended, and its last state is not saved yet. Try again \
                 later",
                room_type.name
            );
            return Err(Error::new(ErrorCode::Busy, text));
        }
        self.check_claim(below, spec.room_type, birth.key.as_ref())?;
        below.env.watch.enters(spec.room_type);
        let made = catch_unwind(AssertUnwindSafe(|| (room_type.create)(birth)));
        let room = made.unwrap_or_else(|_| {
            log::error!("a room of the type {:?} panicked while it was created", room_type.name);
            Err(Error::new(ErrorCode::RoomFailed, "the room failed while it was created"))
        })?;
        Ok(self.take_in(below, (id, spec.room_type), room, founder, (Duration::ZERO, 0)))
    }

    /// Takes in a room that the directory expects. It has existed for this time, and had so many
    /// ticks.
    pub(super) fn take_in(
        &mut self,
        below: &mut Below<'_>,
        (id, room_type): (RoomId, u16),
        room: Box<dyn AnyRoom>,
        founder: Founder,
        (age, ticks): (Duration, u64),
    ) -> RoomKey {
        let room = below.env.node.record(room, id, room_type);
        let of = &below.env.node.room_types[usize::from(room_type)];
        let directory = &below.env.node.directory;
        let criteria = || directory.facts(id).unwrap_or_default().1;
        let room = below.outbound.journal(room, id, of, criteria);
        let (phase, now) = (self.schedule.phase(), below.env.now);
        below.env.node.directory.publish(id, room.summary());
        let hosted = Hosted::new(Made {
            id,
            room_type,
            created: now.saturating_sub(age),
            // It would tell this room from an earlier one with its id; clients treat it
            // as opaque.
            epoch: (below.env.entropy.number() >> 32) + 1,
            ticks: Beat::new(room.tick_hz(), phase, now).map(|beat| beat.after(ticks)),
            syncs: Beat::new(room.sync_hz(), phase, now),
            founder,
            room,
        });
        self.host(hosted)
    }

    /// Takes in a room that the directory knows of.
    pub(in crate::shard) fn host(&mut self, hosted: Hosted) -> RoomKey {
        let (id, room_type) = (hosted.id, hosted.room_type);
        let key = self.rooms.insert(hosted);
        self.queues.traffic.begin(key);
        self.busy.created(room_type);
        self.by_id.insert(id, key);
        self.touch(key);
        key
    }

    /// Calls a room, and notes that it has to be followed up. `None` if it is gone.
    pub(in crate::shard) fn call<R>(
        &mut self,
        below: &mut Below<'_>,
        key: RoomKey,
        call: impl FnOnce(&mut dyn AnyRoom, Duration, &mut HostedRoomOutput<'_>) -> R,
    ) -> Option<R> {
        let (room, at, mut output) = self.begin_call(below, key)?;
        Some(call(room, at, &mut output))
    }

    /// Begins a call of a room: the room, its time, and the way of what it sends.
    ///
    /// Always inlined: each message of a player takes this way.
    #[inline(always)]
    pub(super) fn begin_call<'a>(
        &'a mut self,
        below: &'a mut Below<'_>,
        key: RoomKey,
    ) -> Option<(&'a mut dyn AnyRoom, Duration, HostedRoomOutput<'a>)> {
        let hosted = self.rooms.get_mut(key)?;
        below.env.watch.enters(hosted.room_type);
        let at = below.env.now.saturating_sub(hosted.created);
        if hosted.rests {
            below.env.counters.syncs += hosted.rouse(key, &mut self.schedule);
        }
        hosted.make_up_for_syncs();
        hosted.is_quiet = false;
        if !hosted.touched {
            hosted.touched = true;
            self.touched.push(key);
        }
        let Hosted { room, members, id, founder, admitted, record, capture, .. } = hosted;
        let output = HostedRoomOutput {
            delivery: delivery!(below, self),
            members,
            admitted,
            room: key,
            id: *id,
            founder,
            record: record.as_deref_mut(),
            capture: capture.as_deref_mut(),
        };
        Some((&mut **room, at, output))
    }

    /// Does what the syncs of a room would have done that were only counted, or not even that.
    pub(in crate::shard) fn make_up_for_syncs(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        if hosted.rests {
            below.env.counters.syncs += hosted.rouse(key, &mut self.schedule);
        }
        hosted.make_up_for_syncs();
    }

    pub(in crate::shard) fn touch(&mut self, key: RoomKey) {
        if let Some(hosted) = self.rooms.get_mut(key)
            && !hosted.touched
        {
            hosted.touched = true;
            self.touched.push(key);
        }
    }

    /// Reserves a seat in a room for someone outside.
    pub(in crate::shard) fn reserve_from_outside(
        &mut self,
        below: &mut Below<'_>,
        id: RoomId,
        who: SeatFor,
        wait: Duration,
        answers: u64,
    ) {
        let key = self.by_id.get(&id).copied();
        let reserved = key.and_then(|key| {
            self.call(below, key, |room, at, out| room.reserve(at, who, wait, out))
        });
        let not_found = || Err(below.env.node.directory.missing(id));
        let answer = reserved.unwrap_or_else(not_found).map(|reservation| {
            let mut encoded = Vec::new();
            reservation.encode(&mut encoded);
            encoded
        });
        self.answer_outside(below, key, answers, answer);
    }

    /// Answers a request from outside: of a journaled room, once the journal has it.
    pub(super) fn answer_outside(
        &mut self,
        below: &mut Below<'_>,
        room: Option<RoomKey>,
        answers: u64,
        answer: Result<Vec<u8>, Error>,
    ) {
        let hosted = room.and_then(|room| self.rooms.get_mut(room));
        if hosted.is_some_and(|hosted| hosted.room.journaled().is_some()) {
            let lane = below.outbound.lanes.held(below.env.shard);
            return below.outbound.post(lane, ShardMail::Answer { answers, answer });
        }
        below.env.node.asks.answer(answers, answer);
    }

    /// Writes rooms whole that are to be, a few in each turn, and notes the inputs of this turn.
    pub(in crate::shard) fn end_block(&mut self, below: &mut Below<'_>) {
        let Some(journaled) = &mut below.outbound.journaled else { return };
        journaled.is_write_due = false;
        if let Some(to_write) = &mut journaled.to_write {
            for _ in 0..to_write.len().min(WHOLE_PER_TURN) {
                let Some(id) = to_write.pop_front() else { break };
                let hosted = self.by_id.get(&id).and_then(|key| self.rooms.get_mut(*key));
                if hosted.is_some_and(|hosted| !hosted.write_whole(below.env.now)) {
                    to_write.push_back(id);
                } else {
                    journaled.is_write_due = true;
                }
            }
        }
        for id in journaled.take_open() {
            let hosted = self.by_id.get(&id).and_then(|key| self.rooms.get_mut(*key));
            if let Some(recorder) = hosted.and_then(|hosted| hosted.room.journaled()) {
                recorder.close_block();
            }
        }
        if below.outbound.hold_for_block(below.env.now) {
            let mut all = std::collections::VecDeque::new();
            for key in self.rooms.keys() {
                if let Some(hosted) = self.rooms.get_mut(key)
                    && hosted.room.journaled().is_some()
                {
                    all.push_back(hosted.id);
                }
            }
            if let Some(journaled) = &mut below.outbound.journaled {
                (journaled.to_write, journaled.is_write_due) = (Some(all), true);
            }
        }
    }

    /// Wakes the journaled rooms, which were not called for a while.
    pub(in crate::shard) fn wake_journaled(&mut self, below: &mut Below<'_>) {
        for key in self.rooms.keys() {
            let hosted = self.rooms.get_mut(key);
            if hosted.is_some_and(|hosted| hosted.room.journaled().is_some()) {
                self.call(below, key, |room, at, out| room.wake(at, out));
            }
        }
    }

    /// Gives a room what came for it from elsewhere than its players.
    pub(in crate::shard) fn mail_to_room(&mut self, below: &mut Below<'_>, id: RoomId, mail: Mail) {
        let Some(&key) = self.by_id.get(&id) else {
            let text = || Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"));
            return delivery!(below, self).undeliverable(mail, text);
        };
        self.call(below, key, |room, at, out| room.mail(at, mail, out));
    }

    /// Ends a room that someone outside wants to end; it may have ended meanwhile.
    pub(in crate::shard) fn close_room(&mut self, below: &mut Below<'_>, id: RoomId, text: &str) {
        let Some(&key) = self.by_id.get(&id) else { return };
        self.call(below, key, |room, at, out| room.close(at, EndReason::Drained, text, out));
    }

    /// Creates the rooms that rooms of this shard want here, and delivers what they sent to each
    /// other. What is wanted and sent in turn waits for the next turn.
    pub(in crate::shard) fn deliver_local_mail(&mut self, below: &mut Below<'_>) {
        for founding in std::mem::take(&mut below.outbound.local_foundings) {
            self.found(below, founding);
        }
        for _ in 0..below.outbound.local_mail.len() {
            if let Some((to, mail)) = below.outbound.local_mail.pop_front() {
                self.mail_to_room(below, to, mail);
            }
        }
    }

    pub(in crate::shard) fn settle_room(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        hosted.touched = false;
        if hosted.admitted > 0 {
            hosted.sync_awaited |= hosted.room.sync_hz() == 0;
            hosted.founding = false;
            for _ in 0..std::mem::take(&mut hosted.admitted) {
                below.env.node.directory.seated(hosted.id, hosted.room.summary());
            }
        }
        if *hosted.room.summary() != hosted.published {
            hosted.published.clone_from(hosted.room.summary());
            below.env.node.directory.publish(hosted.id, &hosted.published);
        }
        // Last: those who are told that the room is open may look for it at once.
        self.answer_if_open(below, key);
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        // Such a room is called, and so followed up again, when it goes on.
        let is_paused = hosted.room.is_paused();
        match hosted.room.stage() {
            Stage::Ended => return self.drop_room(below, key),
            _ if is_paused && self.queues.standing.contains_key(&key) => {
                return hosted.set_due(key, &mut self.schedule, None);
            }
            Stage::Open | Stage::Closing if is_paused => {}
            Stage::Open if hosted.is_unfounded() => return self.end_unless_founded(below, key),
            Stage::Open => {}
            Stage::Closing => {
                self.sync_room(below, key, Cause::Last);
                self.call(below, key, |room, at, out| room.part(at, out));
                return;
            }
            Stage::Finishing => (hosted.ticks, hosted.syncs) = (None, None),
        }
        hosted.wake_at = hosted.room.wake_at();
        if hosted.rests && !hosted.is_at_rest() {
            below.env.counters.syncs += hosted.rouse(key, &mut self.schedule);
        }
        let every = below.env.node.config.rooms.check_every_syncs;
        // Once a turn, or a room that always asks for one would block the shard.
        let wants_sync = hosted.sync_awaited || hosted.room.wants_sync();
        let sync_now = wants_sync && hosted.synced_on_demand != below.env.turn;
        let due =
            if wants_sync && !sync_now { Some(below.env.now) } else { hosted.next_due(every) };
        hosted.set_due(key, &mut self.schedule, due);
        if sync_now {
            hosted.synced_on_demand = below.env.turn;
            hosted.sync_awaited = false;
            self.sync_room(below, key, Cause::Demand);
        }
    }

    /// Ends a room that refused the player it was created for. Nothing else would end it.
    pub(super) fn end_unless_founded(&mut self, below: &mut Below<'_>, key: RoomKey) {
        if self.rooms.get(key).is_some_and(Hosted::is_unfounded) {
            let text = "the player it was created for did not join";
            self.call(below, key, |room, at, out| room.close(at, EndReason::Empty, text, out));
        }
    }

    fn drop_room(&mut self, below: &mut Below<'_>, key: RoomKey) {
        // A room that ended took its players out. Should it have left one, they must not wait for
        // ever.
        let why = Error::new(ErrorCode::RoomClosed, "the room ended");
        let left: Vec<_> =
            self.rooms.get(key).map(|hosted| hosted.members.keys()).unwrap_or_default();
        for member in left {
            self.call(below, key, |_, _, out| {
                RoomOutput::refused(out, link(member), &why);
                RoomOutput::removed(out, link(member), &why);
            });
        }
        if let Some(mut hosted) = self.take_room(key) {
            let directory = &below.env.node.directory;
            if hosted.room.journaled().is_some() {
                // Without this, files could have two rooms with its key, and the end of neither.
                let summary = RoomSummary { closing: true, ..hosted.room.summary().clone() };
                directory.publish(hosted.id, &summary);
                let own = below.outbound.lanes.held(below.env.shard);
                below.outbound.post(own, ShardMail::Ended(hosted.id));
            } else {
                below.env.node.remove_room(hosted.id);
            }
            if let Some(undone) = hosted.room.undone().filter(|_| below.env.is_shutting_down) {
                below.env.watch.leaves(undone);
            }
            if let Some(opened) = hosted.room.opened() {
                self.answer_founders(below, hosted.id, hosted.awaited_by, &opened);
            }
        }
    }
}
