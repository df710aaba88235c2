//! Keeping copies in step.

use playfield_wire::server::{write_patch, write_snapshot};

use super::mail::{RoomAddress, ShardMail};
use super::outlet::{Kind, RoomOutlet};
use super::rooms::{Home, Member, RoomSlot, Stage};
use super::{Net, Shard, join};
use crate::slab::Key;

impl Shard {
    /// Syncs a room, and sends each member what changed for it.
    pub(super) fn sync_room(&mut self, room: Key) {
        let now = self.now;
        let Some(slot) = self.rooms.get_mut(room) else { return };
        slot.sync_now = false;
        let at = now.saturating_sub(slot.born);
        let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
        inside.sync(at, &mut outlet);
        if slot.room.is_closed() {
            return;
        }
        let mut members = std::mem::take(&mut slot.members);
        for (key, member) in members.iter_mut() {
            self.net.bring_up(slot, room, key, member);
        }
        slot.members = members;
        // A view may have panicked: the room says so at its next call, which is to come soon.
        self.touch_if_failed(room);
    }

    /// A member that was too slow has drained: one patch brings it from where it is to now.
    pub(super) fn catch_up(&mut self, room: Key, member: u64) {
        let key = Key::from_bits(member);
        let Some(slot) = self.rooms.get_mut(room) else { return };
        let mut members = std::mem::take(&mut slot.members);
        if let Some(member) = members.get_mut(key).filter(|member| member.late) {
            member.late = false;
            self.net.bring_up(slot, room, key, member);
        }
        slot.members = members;
    }

    /// The shard of a member's connection takes the next patch.
    pub(super) fn credit(&mut self, room: Key, member: u64) {
        if let Some(member) =
            self.rooms.get_mut(room).and_then(|slot| slot.members.get_mut(Key::from_bits(member)))
        {
            member.in_flight = false;
        }
        self.catch_up(room, member);
    }

    /// A client's copy is not what it should be: it begins again from a snapshot.
    pub(super) fn begin_again(&mut self, room: Key, member: u64) {
        let key = Key::from_bits(member);
        let Some(slot) = self.rooms.get_mut(room) else { return };
        let mut members = std::mem::take(&mut slot.members);
        if let Some(member) = members.get_mut(key).filter(|member| matches!(member.stage, Stage::Live)) {
            member.sent = 0;
            self.net.bring_up(slot, room, key, member);
        }
        slot.members = members;
    }

    fn touch_if_failed(&mut self, room: Key) {
        let failed = self
            .rooms
            .get(room)
            .is_some_and(|slot| slot.room.wake_at().is_some_and(|wake| slot.born + wake <= self.now));
        if failed {
            self.touch(room);
        }
    }
}

impl Net {
    /// Sends a member what takes its copy to the room's version, unless it has not taken what was sent before.
    fn bring_up(&mut self, slot: &mut RoomSlot, room: Key, key: Key, member: &mut Member) {
        if self.is_slow(member) {
            member.late = true;
            self.stats.conflated += 1;
            return;
        }
        let from = (RoomAddress { shard: self.shard, room }, key.to_bits());
        let version = slot.room.version();
        if member.sent > 0 {
            self.patch(slot, from, member, version);
            return;
        }
        let (format, number, player) = (member.format, member.number, member.player);
        let stage = std::mem::replace(&mut member.stage, Stage::Live);
        if let Stage::Joining { request, .. } = &stage {
            let joined = join::joined(*request, member, slot);
            self.send_to(member, from, Kind::Notice, |out| joined.encode(format, out));
        }
        let epoch = slot.epoch;
        self.send_to(member, from, Kind::State, |out| {
            write_snapshot(format, out, number, epoch, version, |body| {
                slot.room.snapshot(player, format, body);
            });
        });
        self.stats.patches += 1;
        member.sent = version;
        member.equals = version;
        member.in_flight = matches!(member.home, Home::Elsewhere { .. });
        if let Stage::Joining { events, .. } = stage {
            // What was raised before the member was told that it is in.
            for event in events {
                self.send_to(member, from, Kind::Event, |out| out.extend_from_slice(&event));
            }
        }
    }

    fn is_slow(&self, member: &Member) -> bool {
        match member.home {
            Home::Here(connection) => self.connections.get(connection).is_some_and(|to| to.blocked),
            Home::Elsewhere { .. } => member.in_flight,
        }
    }

    /// One patch from what the member's copy equals to now; nothing, if nothing changed for it.
    fn patch(&mut self, slot: &mut RoomSlot, from: (RoomAddress, u64), member: &mut Member, version: u64) {
        let Member { format, number, player, sent, equals, .. } = *member;
        let room = &mut slot.room;
        let mut any = false;
        let mut write = |out: &mut Vec<u8>| {
            write_patch(format, out, number, sent, version, |body| {
                any = room.patch(player, equals, format, body);
            });
        };
        match member.home {
            Home::Here(key) => {
                let Some(to) = self.connections.get_mut(key).filter(|to| to.is_open()) else { return };
                self.pool.equip(to);
                let mark = to.mark();
                to.put(format, write);
                if any {
                    Self::mark_dirty(&mut self.dirty, to, key);
                } else {
                    to.take_back(mark);
                }
            }
            Home::Elsewhere { shard, connection } => {
                let mut bytes = Vec::new();
                write(&mut bytes);
                if any {
                    self.letters[shard].push(ShardMail::Deliver {
                        connection,
                        kind: Kind::State,
                        bytes,
                        from,
                    });
                    member.in_flight = true;
                }
            }
        }
        member.equals = version;
        if any {
            member.sent = version;
            self.stats.patches += 1;
        }
    }
}
