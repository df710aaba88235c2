//! Snapshots that peers cause: by joining, by asking, and by coming back with copies that no patch
//! reaches. They wait for their turn in the [queue of the shard](crate::shard::snapshots).

use std::borrow::Cow;
use std::time::Duration;

use playfield_room::{AnyRoom, PlayerId};
use playfield_wire::client::ResumeRoom;
use playfield_wire::server::{self, ServerMessage, Versions};
use playfield_wire::{Format, RoomNumber};

use crate::room_id::RoomId;
use crate::shard::connection::Kind;
use crate::shard::connection::patience::Patience;
use crate::shard::frames::ToSession;
use crate::shard::keys::{MemberKey, RoomKey};
use crate::shard::mail::member::ResumeCopy;
use crate::shard::rooms::Hosted;
use crate::shard::rooms::delivery::Delivery;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::MemberLink;
use crate::shard::rooms::member::{Member, Standing};
use crate::shard::rooms::sync::{Versioned, snapshot_rate};
use crate::shard::work::Waiting;

impl RoomHost {
    /// A member needs a snapshot, because it asked for one or no patch reaches what it has: it is
    /// sent one when it has read what it was sent before, no more often than may be, and one for
    /// all that it asked for until then. What it asked for is never forgotten: it could not go on
    /// without.
    pub(in crate::shard) fn resync(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
    ) {
        let rate = snapshot_rate(below.env);
        self.make_up_for_syncs(below, room);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get_mut(key) else { return };
        let mut delivery = delivery!(below, self);
        let is_behind = delivery.is_behind(&member.link) || delivery.is_loaded(&member.link);
        let is_live = matches!(member.standing, Standing::Live);
        member.wants_snapshot = is_behind || is_live;
        let ready_at = member.snapshots.ready_at(rate);
        if is_live && !is_behind {
            self.queue_snapshot(below, Waiting::Member(room, key), ready_at);
        }
    }

    /// Serves a member that waits for a snapshot, in its turn. It may have gone since, or have got
    /// one in another way.
    pub(in crate::shard) fn serve_member(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
    ) {
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get_mut(key) else { return };
        if let MemberLink::Remote(link) = &member.link
            && let Some(resume_copy) = link.resume_copy
        {
            return self.resume_copy_for_other(below, room, key, resume_copy);
        }
        match &member.standing {
            _ if member.wants_snapshot => self.send_snapshot(below, room, key),
            Standing::Entering(entering) if entering.synced => self.enter_late(below, room, key),
            // A sync that shows the player to the room may send the snapshot too.
            Standing::Entering(_) if hosted.room.sync_hz() == 0 => {
                hosted.sync_awaited = true;
                self.touch(room);
            }
            _ => {}
        }
    }

    fn send_snapshot(&mut self, below: &mut Below<'_>, room: RoomKey, key: MemberKey) {
        let rate = snapshot_rate(below.env);
        self.make_up_for_syncs(below, room);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(below.env.now);
        let Some(member) = hosted.members.get_mut(key) else { return };
        let mut delivery = delivery!(below, self);
        // It had read everything when it was given its place. What other rooms have sent it since
        // does not put this off: rooms on other shards would not know of that yet.
        let has_to_wait = delivery.is_loaded(&member.link) || delivery.is_held(&member.link);
        if has_to_wait || !matches!(member.standing, Standing::Live) {
            // It is asked for again when the client has read that.
            return;
        }
        let ready_at = member.snapshots.ready_at(rate);
        if ready_at > below.env.now {
            return self.queue_snapshot(below, Waiting::Member(room, key), ready_at);
        }
        member.wants_snapshot = false;
        member.snapshots.take(below.env.now, rate);
        let now = Versioned { epoch: hosted.epoch, clock, history: &hosted.history };
        snapshot(&mut delivery!(below, self), room, member, &mut *hosted.room, now);
    }

    /// Sends `joined` to a member that was there at the last sync, and had to wait for its turn.
    fn enter_late(&mut self, below: &mut Below<'_>, room: RoomKey, key: MemberKey) {
        let rate = snapshot_rate(below.env);
        self.make_up_for_syncs(below, room);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(below.env.now);
        let named = (hosted.id, hosted.room_type);
        let Some(member) = hosted.members.get_mut(key) else { return };
        // The next sync is for these, or what ends their wait.
        let mut delivery = delivery!(below, self);
        if delivery.is_held(&member.link) || delivery.is_loaded(&member.link) {
            return;
        }
        if !delivery.has_space(&member.link) {
            return delivery.doom(&mut member.link, false);
        }
        member.snapshots.take(below.env.now, rate);
        let now = Versioned { epoch: hosted.epoch, clock, history: &hosted.history };
        enter(&mut delivery!(below, self), room, member, &mut *hosted.room, named, now);
    }

    /// Sends a session of another shard that has come back what brings the copy up to date.
    fn resume_copy_for_other(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        resume_copy: ResumeCopy,
    ) {
        let body = match self.bring_up_to_date(below, room, key, resume_copy.copy) {
            Ok(body) => body,
            Err(ready_at) => {
                return self.queue_snapshot(below, Waiting::Member(room, key), ready_at);
            }
        };
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get_mut(key) else { return };
        let MemberLink::Remote(link) = &mut member.link else { return };
        link.resume_copy = None;
        let answer = ToSession::CopyResumed { number: resume_copy.number, body: &body };
        link.put(below.outbound, answer);
    }

    /// The message that brings the copy of a client that has come back up to date: a patch from the
    /// version that it has, or a snapshot if no patch reaches back that far; empty if it is up to
    /// date, or if the client has not joined yet.
    ///
    /// # Errors
    /// If it needs a snapshot sooner after others than may be: when it may have it.
    pub(in crate::shard) fn bring_up_to_date(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        copy: Option<ResumeRoom>,
    ) -> Result<Vec<u8>, Duration> {
        let mut body = Vec::new();
        let (rate, place) = (snapshot_rate(below.env), room);
        self.make_up_for_syncs(below, room);
        let Some(hosted) = self.rooms.get_mut(room) else { return Ok(body) };
        let clock = hosted.clock(below.env.now);
        let Hosted { room, members, epoch, history, .. } = hosted;
        let Some(member) = members.get_mut(key) else { return Ok(body) };
        if !matches!(member.standing, Standing::Live) {
            return Ok(body);
        }
        let (synced, latest) = (room.version(), member.latest());
        let (format, number, player) = (member.format, member.number, member.player);
        let base = copy.filter(|copy| copy.epoch == *epoch).map_or(0, |copy| copy.version);
        if let Some(clean) = member.room_version(base, history)
            && room.reaches(clean)
        {
            // Versions that were sent and did not arrive are not given again.
            let versions = Versions { base, version: clock.max(latest).max(base + 1) };
            let mut changed = false;
            server::write_patch(format, &mut body, number, versions, |out| {
                changed = room.patch(player, clean, format, out);
            });
            if changed {
                member.has_again(base);
                member.is_now_at(versions.version, synced, history);
                below.env.counters.patches += 1;
                self.queues.traffic.sent(place, body.len());
                return Ok(body);
            }
            body.clear();
            if base == latest {
                member.clean = synced;
                return Ok(body);
            }
        }
        let ready_at = member.snapshots.ready_at(rate);
        if ready_at > below.env.now {
            return Err(ready_at);
        }
        member.snapshots.take(below.env.now, rate);
        member.wants_snapshot = false;
        let version = clock.max(latest);
        member.is_now_at(version, synced, history);
        write_snapshot(&mut **room, player, format, number, (*epoch, version), &mut body);
        self.queues.traffic.sent(place, body.len());
        Ok(body)
    }
}

/// Sends a member that is seated `joined`, a snapshot and the events since it came.
pub(super) fn enter(
    delivery: &mut Delivery<'_>,
    key: RoomKey,
    member: &mut Member,
    room: &mut dyn AnyRoom,
    (id, room_type): (RoomId, u16),
    now: Versioned<'_>,
) {
    let events = delivery.take_held(member);
    let Standing::Entering(entering) = &mut member.standing else { return };
    let request = entering.request;
    member.standing = Standing::Live;
    let room_type = &delivery.env.node.room_types[usize::from(room_type)];
    let joined = ServerMessage::Joined(server::Joined {
        request,
        room: member.number,
        id: id.as_str().into(),
        room_type: room_type.name.clone().into(),
        key: room.summary().key.as_deref().map(Cow::Borrowed),
        player: member.player.0,
        epoch: now.epoch,
        tick_hz: room.tick_hz(),
        sync_hz: room.sync_hz(),
        fingerprint: room_type.fingerprint,
        silence_ms: Patience::of(room_type.settings).silence_ms(),
        grace_ms: u32::try_from(room_type.settings.grace_ms).unwrap_or(u32::MAX),
    });
    delivery.send_joined(key, member, &joined);
    snapshot(delivery, key, member, room, now);
    for event in events {
        delivery.event(key, member, event.header, &event.payload);
    }
}

fn snapshot(
    delivery: &mut Delivery<'_>,
    key: RoomKey,
    member: &mut Member,
    room: &mut dyn AnyRoom,
    now: Versioned<'_>,
) {
    let (number, player) = (member.number, member.player);
    let version = now.clock.max(member.latest());
    member.is_now_at(version, room.version(), now.history);
    delivery.write(key, member, Kind::Fleeting, |format, out| {
        write_snapshot(room, player, format, number, (now.epoch, version), out);
    });
}

pub(super) fn write_snapshot(
    room: &mut dyn AnyRoom,
    player: PlayerId,
    format: Format,
    number: RoomNumber,
    (epoch, version): (u64, u64),
    out: &mut Vec<u8>,
) {
    server::write_snapshot(format, out, number, epoch, version, |out| {
        room.snapshot(player, format, out);
    });
}
