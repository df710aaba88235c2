//! The rooms of a shard: what runs them, and who is in them.

use std::time::Duration;

use playfield_room::{AnyRoom, Facts, Mail, PlayerId, RoomType};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format};

use super::outlet::RoomOutlet;
use super::schedule::Beat;
use super::{Shard, ShardMail, entropy};
use crate::slab::{Key, Slab};

/// A room at home on this shard.
pub(super) struct RoomSlot {
    pub(super) id: String,
    pub(super) of: RoomType,
    pub(super) room: Box<dyn AnyRoom>,
    pub(super) members: Slab<Member>,
    pub(super) epoch: u64,
    /// When it was created; the room's own time counts from here.
    pub(super) born: Duration,
    pub(super) ticks: Option<Beat>,
    pub(super) syncs: Option<Beat>,
    /// It is to be synced at the end of the turn.
    pub(super) sync_now: bool,
    /// Which entry of the schedule counts.
    scheduled: Option<Duration>,
    published: Facts,
    touched: bool,
}

/// A session in a room.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) home: Home,
    pub(super) player: PlayerId,
    /// The number that the session has for the room.
    pub(super) number: u32,
    pub(super) format: Format,
    pub(super) stage: Stage,
    /// The version last sent, which the client's copy bears.
    pub(super) sent: u64,
    /// The version that the client's copy equals: later than `sent` when nothing changed for this player since.
    pub(super) equals: u64,
    /// Events so far.
    pub(super) sequence: u64,
    /// It was too slow for a patch, and gets one to now when it has drained.
    pub(super) late: bool,
    /// A patch is on its way through another shard, which will say when the next may come.
    pub(super) in_flight: bool,
}

/// Where a member's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Here(Key),
    Elsewhere { shard: usize, connection: Key },
}

/// How far a member has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Seated; `joined` and a snapshot go out at the room's next sync, and the events that were raised meanwhile after them.
    Joining { request: u32, events: Vec<Vec<u8>> },
    /// In step.
    Live,
}

impl Member {
    pub(super) fn new(home: Home, number: u32, format: Format, stage: Stage) -> Self {
        Self {
            home,
            player: PlayerId(0),
            number,
            format,
            stage,
            sent: 0,
            equals: 0,
            sequence: 0,
            late: false,
            in_flight: false,
        }
    }
}

impl RoomSlot {
    /// The room's own time.
    fn at(&self, now: Duration) -> Duration {
        now.saturating_sub(self.born)
    }

    /// When something is next to be done.
    fn next_due(&self) -> Option<Duration> {
        let wake = self.room.wake_at().map(|at| self.born + at);
        let ticks = self.ticks.as_ref().map(Beat::next);
        let syncs = self.syncs.as_ref().map(Beat::next);
        wake.into_iter().chain(ticks).chain(syncs).min()
    }
}

impl Shard {
    /// Gives a new room its place and its beat.
    pub(super) fn house(&mut self, id: String, of: RoomType, room: Box<dyn AnyRoom>) -> Key {
        self.created += 1;
        let ticks = Beat::new(self.now, room.tick_hz(), self.created);
        let syncs = Beat::new(self.now, room.sync_hz(), self.created);
        let facts = room.facts().clone();
        self.node.directory.publish(&id, &facts);
        let slot = RoomSlot {
            id: id.clone(),
            of,
            room,
            members: Slab::default(),
            epoch: u64::from_le_bytes(entropy()) >> 11, // every client can hold 53 bits
            born: self.now,
            ticks,
            syncs,
            sync_now: false,
            scheduled: None,
            published: facts,
            touched: false,
        };
        let key = self.rooms.insert(slot);
        self.by_id.insert(id, key);
        self.touch(key);
        key
    }

    /// The room's code ran: it is looked after at the end of the turn.
    pub(super) fn touch(&mut self, room: Key) {
        if let Some(slot) = self.rooms.get_mut(room)
            && !slot.touched
        {
            slot.touched = true;
            self.touched.push(room);
        }
    }

    /// What is to be done for a room whose code ran.
    pub(super) fn look_after(&mut self, room: Key) {
        let Some(slot) = self.rooms.get_mut(room) else { return };
        slot.touched = false;
        if slot.sync_now || slot.room.wants_sync() {
            self.sync_room(room);
        }
        let Some(slot) = self.rooms.get_mut(room) else { return };
        slot.touched = false;
        if slot.room.is_closed() {
            return self.bury(room);
        }
        self.publish(room);
        let Some(slot) = self.rooms.get_mut(room) else { return };
        if let Some(next) = slot.next_due()
            && slot.scheduled.is_none_or(|scheduled| next < scheduled)
        {
            slot.scheduled = Some(next);
            self.schedule.set(next, room);
        }
    }

    /// Tells the directory what others may know of a room, if that changed.
    pub(super) fn publish(&mut self, room: Key) {
        if let Some(slot) = self.rooms.get_mut(room)
            && *slot.room.facts() != slot.published
        {
            slot.published.clone_from(slot.room.facts());
            self.node.directory.publish(&slot.id, &slot.published);
        }
    }

    fn bury(&mut self, room: Key) {
        if let Some(slot) = self.rooms.remove(room) {
            self.by_id.remove(&slot.id);
            self.node.directory.remove(&slot.id);
        }
    }

    /// Runs what is due in a room: timers, then ticks, then a sync.
    pub(super) fn run_due(&mut self, scheduled: Duration, room: Key) {
        let now = self.now;
        let most = self.node.config.catch_up_ticks_max;
        let Some(slot) = self.rooms.get_mut(room).filter(|slot| slot.scheduled == Some(scheduled)) else {
            return;
        };
        slot.scheduled = None;
        let late = now.saturating_sub(scheduled).as_micros() as u64;
        self.net.stats.late_us_max = self.net.stats.late_us_max.max(late);
        let at = slot.at(now);
        if slot.room.wake_at().is_some_and(|wake| wake <= at) {
            let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
            inside.wake(at, &mut outlet);
        }
        if let Some(beat) = &mut slot.ticks {
            let (due, skipped) = beat.take_due(now, most);
            self.net.stats.ticks_skipped += skipped;
            for number in due {
                self.net.stats.ticks += 1;
                let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
                inside.tick(at, number, &mut outlet);
            }
        }
        if let Some(beat) = &mut slot.syncs {
            let (due, _) = beat.take_due(now, 1);
            slot.sync_now |= !due.is_empty();
        }
        // The sync itself, and when the room is next due, are seen to at once, so that rooms take their turns.
        self.look_after(room);
    }

    /// A player's message.
    pub(super) fn message(
        &mut self,
        room: Key,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<u32>,
    ) {
        let now = self.now;
        let Some(slot) = self.rooms.get_mut(room) else { return };
        let at = slot.at(now);
        let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
        inside.message(at, player, message, payload, request, &mut outlet);
        self.touch(room);
    }

    /// A message of a member whose connection is elsewhere.
    pub(super) fn message_from_elsewhere(
        &mut self,
        room: Key,
        member: u64,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<u32>,
    ) {
        let player = self
            .rooms
            .get(room)
            .and_then(|slot| slot.members.get(Key::from_bits(member)))
            .map(|member| member.player);
        if let Some(player) = player {
            self.message(room, player, message, payload, request);
        }
    }

    /// A member's session left, or is gone.
    pub(super) fn member_left(&mut self, room: Key, member: u64) {
        let now = self.now;
        let Some(slot) = self.rooms.get_mut(room) else { return };
        let Some(member) = slot.members.remove(Key::from_bits(member)) else { return };
        let at = slot.at(now);
        let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
        inside.leave(at, member.player, &mut outlet);
        self.touch(room);
    }

    pub(super) fn room_mail(&mut self, room: Key, mail: Mail) {
        let now = self.now;
        let Some(slot) = self.rooms.get_mut(room) else { return self.answer_for_nobody(mail) };
        let at = slot.at(now);
        let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
        inside.mail(at, mail, &mut outlet);
        self.touch(room);
    }

    pub(super) fn room_mail_by_id(&mut self, id: &str, mail: Mail) {
        match self.by_id.get(id) {
            Some(&room) => self.room_mail(room, mail),
            None => self.answer_for_nobody(mail),
        }
    }

    /// Whoever asks a room that is gone is told so.
    fn answer_for_nobody(&mut self, mail: Mail) {
        if let Mail::Asked { from, ask, .. } = mail
            && let Ok(place) = self.node.directory.find(&from)
        {
            let error = playfield_room::Error::new(ErrorCode::RoomNotFound, "the room has ended");
            let mail = Mail::Answered { ask, reply: Err(error) };
            self.net.letters[place.shard].push(ShardMail::ToRoom { id: from, mail });
        }
    }

    /// The node ends: rooms are closed, clients are told.
    pub(super) fn end_all(&mut self) {
        self.ending = true;
        let now = self.now;
        let rooms: Vec<Key> = self.rooms.keys().collect();
        for room in rooms {
            if let Some(slot) = self.rooms.get_mut(room) {
                let at = slot.at(now);
                let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
                inside.close(at, ErrorCode::RoomClosed, "the server is shutting down", &mut outlet);
                self.bury(room);
            }
        }
        let connections: Vec<Key> = self.net.connections.keys().collect();
        for key in connections {
            let said_hello =
                self.net.connections.get(key).is_some_and(|connection| connection.session.is_some());
            if said_hello {
                let format = self.net.connections.get(key).map_or(Format::Packed, super::Connection::format);
                self.net.goodbye(key, format, ErrorCode::ShuttingDown, "the server is shutting down");
            } else {
                self.net.finish(key);
            }
        }
    }

    /// How long clients have to take their goodbyes.
    pub(crate) fn shutdown_timeout(&self) -> Duration {
        Duration::from_millis(self.node.config.shutdown_timeout_ms)
    }

    /// The node ends, and everyone here has been seen off.
    pub(crate) fn has_ended(&self) -> bool {
        self.ending && self.net.connections.len() == 0
    }
}
