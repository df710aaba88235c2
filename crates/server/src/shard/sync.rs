//! The way of a sync to the players: the one path that is walked for every player, twenty times a
//! second.

use playfield_room::{AnyRoom, PlayerId};
use playfield_wire::Format;
use playfield_wire::server::{self, ServerMessage};

use crate::shard::Shard;
use crate::shard::allowance::Rate;
use crate::shard::connection::ConnectionKey;
use crate::shard::delivery::Delivery;
use crate::shard::member::{Entering, Member, MemberKey, MemberOutput, Standing};
use crate::shard::rooms::{Hosted, RoomKey};

impl Shard {
    /// Syncs a room, and gives every member what it lacks.
    pub(super) fn sync_room(&mut self, key: RoomKey) {
        self.call(key, |room, at, out| {
            if !room.is_closed() {
                room.sync(at, out);
            }
        });
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        self.delivery.counters.syncs += 1;
        let version = hosted.room.version();
        let rate = snapshot_rate(&self.delivery);
        let Hosted { room, members, id, room_type, epoch, resyncs, .. } = hosted;
        for (member_key, member) in members.iter_mut() {
            let place = (key, member_key);
            match &mut member.standing {
                Standing::Live => {
                    patch(&mut self.delivery, place, member, &mut **room, *epoch);
                    check(&mut self.delivery, place, member, &mut **room, version);
                }
                // Its session drew on its snapshots before, in a room that it has left.
                Standing::Entering(entering)
                    if entering.seated && member.snapshots.ready_at(rate) > self.now =>
                {
                    resyncs.insert((member.snapshots.ready_at(rate), member_key));
                }
                Standing::Entering(entering) if entering.seated => {
                    member.snapshots.take(self.now, rate);
                    let entering = std::mem::replace(entering, Box::new(Entering::default()));
                    member.standing = Standing::Live;
                    let room_type = &self.delivery.node.room_types[usize::from(*room_type)];
                    let joined = ServerMessage::Joined {
                        request: entering.request,
                        room: member.number,
                        id: id.as_str().into(),
                        room_type: room_type.name.clone().into(),
                        player: member.player.0,
                        epoch: *epoch,
                        tick_hz: room.tick_hz(),
                        sync_hz: room.sync_hz(),
                        fingerprint: room_type.fingerprint,
                    };
                    self.delivery.send(place, member, &joined);
                    if let MemberOutput::Here(connection) = member.output {
                        mark_joined(&mut self.delivery, connection, member.number);
                    }
                    snapshot(&mut self.delivery, place, member, &mut **room, *epoch);
                    for event in entering.events {
                        self.delivery.event(place, member, event.header, &event.payload);
                    }
                }
                // Only while its own join is being asked for, and no sync runs then.
                Standing::Entering(_) => {}
            }
        }
    }

    /// Gives a member whose earlier output went out what it missed meanwhile: one patch to now, or
    /// the snapshot it asked for.
    pub(super) fn catch_up(&mut self, room: RoomKey, key: MemberKey) {
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get_mut(key) else { return };
        if member.wants_snapshot {
            return self.resync(room, key);
        }
        if std::mem::take(&mut member.lagging) && matches!(member.standing, Standing::Live) {
            patch(&mut self.delivery, (room, key), member, &mut *hosted.room, hosted.epoch);
        }
    }

    /// Sends a member a snapshot because it asked for one: once it has read what it was sent
    /// before, no more often than may be, and one for all that it asked for until then. What it
    /// asked for is never forgotten: it could not go on without.
    pub(super) fn resync(&mut self, room: RoomKey, key: MemberKey) {
        let rate = snapshot_rate(&self.delivery);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get_mut(key) else { return };
        let is_behind = match &member.output {
            MemberOutput::Here(connection) => self.delivery.connections.lags(*connection),
            MemberOutput::Elsewhere(session) => session.in_flight > 0,
        };
        member.wants_snapshot = is_behind;
        if is_behind || !matches!(member.standing, Standing::Live) {
            return;
        }
        let ready_at = member.snapshots.ready_at(rate);
        if ready_at > self.now {
            member.wants_snapshot = true;
            hosted.resyncs.insert((ready_at, key));
            return self.touch(room);
        }
        member.snapshots.take(self.now, rate);
        snapshot(&mut self.delivery, (room, key), member, &mut *hosted.room, hosted.epoch);
    }

    /// Sends the snapshots that had to wait until now, or has a sync send them to who comes in.
    pub(super) fn resync_due(&mut self, room: RoomKey) {
        while let Some(hosted) = self.rooms.get_mut(room)
            && hosted.resyncs.first().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, key)) = hosted.resyncs.pop_first()
        {
            // It may have gone since, or got one when it had read enough.
            let Some(member) = hosted.members.get_mut(key) else { continue };
            if member.wants_snapshot {
                self.resync(room, key);
            } else if matches!(member.standing, Standing::Entering(_)) && hosted.room.sync_hz() == 0
            {
                hosted.sync_awaited = true;
                self.touch(room);
            }
        }
    }
}

/// How often a member is sent a snapshot because it came in or asked.
fn snapshot_rate(delivery: &Delivery) -> Rate {
    Rate::per_second("resyncs_per_second_max", delivery.node.config.resyncs_per_second_max)
}

/// Sends the patch from what the member has to now, if anything changed that it sees, or a snapshot
/// if no patch reaches that far. While earlier output is on its way nothing is sent, and later
/// there will be one patch instead of many.
#[inline]
fn patch(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    epoch: u64,
) {
    let version = room.version();
    if member.clean >= version {
        return;
    }
    let (dialect, format, number) = (member.dialect, member.dialect.format, member.number);
    let (player, sent, clean) = (member.player, member.sent, member.clean);
    let mut write = |out: &mut Vec<u8>| {
        let mut changed = false;
        dialect.write_with(out, |out| {
            if room.reaches(clean) {
                server::write_patch(format, out, number, sent, version, |out| {
                    changed = room.patch(player, clean, format, out);
                });
            } else {
                changed = true;
                write_snapshot(room, player, format, number, epoch, out);
            }
        });
        changed
    };
    let written = match &mut member.output {
        MemberOutput::Here(connection) => {
            delivery.connections.append_unless_blocked(*connection, write)
        }
        MemberOutput::Elsewhere(session) if session.in_flight > 0 => None,
        MemberOutput::Elsewhere(session) => {
            let start = session.out.len();
            let changed = write(&mut session.out);
            if !changed {
                session.out.truncate(start);
            } else if start == 0 {
                delivery.remote_dirty.push(place);
            }
            Some(changed)
        }
    };
    match written {
        Some(true) => {
            member.sent = version;
            member.clean = version;
            delivery.counters.patches += 1;
            delivery.connections.messages_out += 1;
        }
        // The client's copy equals this version too, but the client does not know.
        Some(false) => member.clean = version,
        None => {
            member.lagging = true;
            delivery.counters.conflated += 1;
        }
    }
}

/// Now and then sends the digest of a copy that is as it should be now: all members at the same
/// sync, since what everyone sees is gone through once for all of them. It leaves in one write with
/// their patches.
#[inline]
fn check(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    version: u64,
) {
    let every = delivery.node.config.check_every_syncs;
    let is_due = every > 0 && version.is_multiple_of(every);
    if !is_due || member.clean != version {
        return;
    }
    if let Some(digest) = room.digest(member.player, member.dialect.format) {
        let message = ServerMessage::Check { room: member.number, version: member.sent, digest };
        delivery.send(place, member, &message);
    }
}

fn snapshot(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    epoch: u64,
) {
    let (number, player, version) = (member.number, member.player, room.version());
    member.sent = version;
    member.clean = version;
    member.lagging = false;
    delivery.write(place, member, |dialect, out| {
        dialect.write_with(out, |out| {
            write_snapshot(room, player, dialect.format, number, epoch, out)
        });
    });
}

fn write_snapshot(
    room: &mut dyn AnyRoom,
    player: PlayerId,
    format: Format,
    number: u32,
    epoch: u64,
    out: &mut Vec<u8>,
) {
    let version = room.version();
    server::write_snapshot(format, out, number, epoch, version, |out| {
        room.snapshot(player, format, out)
    });
}

/// From here on the session may speak to the room.
fn mark_joined(delivery: &mut Delivery, connection: ConnectionKey, number: u32) {
    let session = delivery.connections.session_mut(connection);
    if let Some(room) = session.and_then(|session| session.room_mut(number)) {
        room.request = None;
    }
}
