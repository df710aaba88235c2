//! The way of a sync to the players: the one path that is walked for every player, twenty times a
//! second.

use std::time::Duration;

use playfield_room::{AnyRoom, PlayerId};
use playfield_session::SyncHistory;
use playfield_state::{Beside, Probing, SyncProbe, beside};
use playfield_wire::server::{self, ServerMessage, Versions};

use crate::shard::allowance::Rate;
use crate::shard::env::{Env, nanoseconds};
use crate::shard::keys::{MemberKey, RoomKey};
use crate::shard::rooms::Hosted;
use crate::shard::rooms::delivery::{Delivery, HostedRoomOutput};
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::lateness::Cost;
use crate::shard::rooms::member::{Member, Standing};
use crate::shard::rooms::snapshots::{enter, write_snapshot};
use crate::shard::work::Waiting;

/// Why a room is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its rate, which called for `due` syncs since the last one: more than one if it is late.
    Clock { due: u64 },
    /// The room asked, or someone joined a room without a rate.
    Demand,
    /// The room is about to end: neither what its players have not read yet nor the limit of their
    /// snapshots is a reason to skip this one.
    Last,
}

/// The interval at which the clock of a room without a rate advances, in milliseconds.
const STEP_MS: u128 = 50;

impl Hosted {
    /// The clock of versions on the wire, which nothing but time moves. A sync that only some
    /// players can notice must not show in the versions of the others, so a room's own version
    /// stays inside the node. As long as a room syncs by its rate alone, this counts as the room
    /// does, and players who are sent the same are sent the same bytes.
    pub(in crate::shard) fn clock(&self, now: Duration) -> u64 {
        if self.room.sync_hz() > 0 {
            return 1 + self.regular_syncs;
        }
        1 + (now.saturating_sub(self.created).as_millis() / STEP_MS) as u64
    }
}

/// The parts that versions are made of.
#[derive(Clone, Copy)]
pub(super) struct Versioned<'a> {
    pub(super) epoch: u64,
    pub(super) clock: u64,
    pub(super) history: &'a SyncHistory,
}

impl RoomHost {
    /// Syncs a room, and gives every member what it lacks.
    pub(in crate::shard) fn sync_room(
        &mut self,
        below: &mut Below<'_>,
        key: RoomKey,
        cause: Cause,
    ) {
        self.sync_room_by(below, key, cause, |room, at, out| {
            if !room.is_closed() {
                room.sync(at, out);
            }
        });
    }

    /// Syncs a room as `sync` does, and gives every member what it lacks.
    pub(in crate::shard) fn sync_room_by(
        &mut self,
        below: &mut Below<'_>,
        key: RoomKey,
        cause: Cause,
        sync: impl FnOnce(&mut dyn AnyRoom, Duration, &mut HostedRoomOutput<'_>),
    ) {
        let probing = self.probing(below, key);
        let began = below.env.stopwatch.read();
        let mut version = 0;
        self.call(below, key, |room, at, out| {
            version = room.version();
            sync(room, at, out);
        });
        let synced = below.env.stopwatch.read();
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        below.env.counters.syncs += 1;
        let regular_before = hosted.regular_syncs;
        if let Cause::Clock { due } = cause {
            hosted.regular_syncs += due;
        }
        let clock = hosted.clock(below.env.now);
        let every = below.env.node.config.rooms.check_every_syncs;
        let is_check_due = has_passed(every, regular_before, hosted.regular_syncs);
        let rate = snapshot_rate(below.env);
        hosted.history.synced(clock, hosted.room.version());
        hosted.is_quiet = matches!(cause, Cause::Clock { .. })
            && hosted.room.version() == version + 1
            && !hosted.room.may_leave_out();
        let Hosted { room, members, id, room_type, epoch, history, .. } = hosted;
        let named = (*id, *room_type);
        // Members whose snapshot has to wait, and until when.
        let mut waiting = Vec::new();
        let now = Versioned { epoch: *epoch, clock, history };
        let has_rate = room.sync_hz() > 0;
        beside(Beside::Player);
        for (member_key, member) in members.iter_mut() {
            let is_told = matches!(member.standing, Standing::Live);
            if !is_told && delivery!(below, self).is_held(&member.link) {
                // A client that is away is sent `joined` later.
                continue;
            }
            match &mut member.standing {
                Standing::Live => {
                    let before = member.sent;
                    let force = cause == Cause::Last;
                    if patch(&mut delivery!(below, self), key, member, &mut **room, now, force) {
                        waiting.push((member_key, member.snapshots.ready_at(rate)));
                    }
                    if is_check_due || (!has_rate && has_passed(every, before, member.sent)) {
                        beside(Beside::Checks);
                        check(&mut delivery!(below, self), key, member, &mut **room);
                        beside(Beside::Player);
                    }
                }
                // Its session drew on its snapshots before, in a room that it has left. A room
                // that ends does not wait for that: the player was in it, and is sent that.
                Standing::Entering(entering)
                    if entering.seated
                        && member.snapshots.ready_at(rate) > below.env.now
                        && cause != Cause::Last =>
                {
                    waiting.push((member_key, member.snapshots.ready_at(rate)));
                }
                // Its client has much to read first, or does not read at all.
                Standing::Entering(entering)
                    if entering.seated
                        && cause != Cause::Last
                        && delivery!(below, self).is_loaded(&member.link) => {}
                Standing::Entering(entering)
                    if entering.seated && !delivery!(below, self).has_space(&member.link) =>
                {
                    delivery!(below, self).doom(&mut member.link, false);
                }
                Standing::Entering(entering)
                    if entering.seated
                        && cause != Cause::Last
                        && !below.sessions.snapshots.is_free() =>
                {
                    entering.synced = true;
                    waiting.push((member_key, below.env.now));
                }
                Standing::Entering(entering) if entering.seated => {
                    if member.snapshots.ready_at(rate) <= below.env.now {
                        member.snapshots.take(below.env.now, rate);
                    }
                    let began = below.env.stopwatch.read();
                    enter(&mut delivery!(below, self), key, member, &mut **room, named, now);
                    let took = below.env.stopwatch.read().saturating_sub(began);
                    delivery!(below, self).charge(&member.link, took);
                    below.sessions.snapshots.spent(took);
                }
                // Only while its own join is being asked for, and no sync runs then.
                Standing::Entering(_) => {}
            }
        }
        beside(Beside::Sync);
        if room.may_leave_out() {
            let live =
                members.iter_mut().filter(|(_, member)| matches!(member.standing, Standing::Live));
            below.env.counters.left_out +=
                live.map(|(_, member)| room.left_out(member.player)).sum::<u64>();
        }
        let sync = synced.saturating_sub(began);
        let patches = below.env.stopwatch.read().saturating_sub(synced);
        drop(probing);
        below.env.counters.syncs_ns += nanoseconds(sync);
        below.env.counters.patches_ns += nanoseconds(patches);
        self.busy.ran(hosted.room_type, sync + patches);
        let took = hosted.ticking + sync + patches;
        if matches!(cause, Cause::Clock { .. }) {
            hosted.cost = Cost::new(std::mem::take(&mut hosted.ticking), sync, patches);
        }
        if let Some(capture) = &mut hosted.capture {
            capture.synced(&mut *hosted.room, took, &below.env.stopwatch);
            hosted.capture.take_if(|capture| capture.is_over(below.env.now));
        }
        for (member, at) in waiting {
            self.queue_snapshot(below, Waiting::Member(key, member), at);
        }
    }

    /// Measures by field what this thread does, if rooms of this type are measured.
    fn probing(&self, below: &mut Below<'_>, key: RoomKey) -> Option<Probing> {
        let hosted = self.rooms.get(key)?;
        let room_type = &below.env.node.room_types[usize::from(hosted.room_type)];
        room_type.probe.as_ref().map(SyncProbe::begin)
    }

    /// Gives a member whose earlier output went out what it missed meanwhile: one patch to now, or
    /// the snapshot it asked for.
    pub(in crate::shard) fn catch_up(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
    ) {
        self.make_up_for_syncs(below, room);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(below.env.now);
        let Some(member) = hosted.members.get_mut(key) else { return };
        if member.wants_snapshot {
            return self.resync(below, room, key);
        }
        if matches!(member.standing, Standing::Entering(_)) {
            if hosted.room.sync_hz() == 0 {
                hosted.sync_awaited = true;
                self.touch(room);
            }
            return;
        }
        if std::mem::take(&mut member.lagging) && matches!(member.standing, Standing::Live) {
            let now = Versioned { epoch: hosted.epoch, clock, history: &hosted.history };
            let any = &mut *hosted.room;
            if patch(&mut delivery!(below, self), room, member, any, now, false) {
                self.resync(below, room, key);
            }
        }
    }

    /// The session of a member takes output: if the player has not been sent `joined`, that
    /// follows.
    pub(in crate::shard) fn announce_join(&mut self, room: RoomKey, key: MemberKey) {
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(member) = hosted.members.get(key) else { return };
        if matches!(&member.standing, Standing::Entering(entering) if entering.seated)
            && hosted.room.sync_hz() == 0
        {
            hosted.sync_awaited = true;
            self.touch(room);
        }
    }

    /// The player behind a member.
    pub(in crate::shard) fn player_of(
        &mut self,
        room: RoomKey,
        key: MemberKey,
    ) -> Option<PlayerId> {
        Some(self.rooms.get(room)?.members.get(key)?.player)
    }
}

/// Returns the rate at which a member may be sent snapshots because it came in or asked.
pub(super) fn snapshot_rate(env: &Env) -> Rate {
    Rate::new("limits.session.snapshots", env.node.config.limits.session.snapshots)
}

/// Sends the patch from what the member has to now, if anything changed that it sees. While earlier
/// output is on its way nothing is sent, and later there will be one patch instead of many; `force`
/// sends it all the same if the outbox has space.
/// Where no patch reaches that far, `force` sends a snapshot; without, the answer is whether the
/// member has to be given a place in the queue for one.
#[inline]
fn patch(
    delivery: &mut Delivery<'_>,
    key: RoomKey,
    member: &mut Member,
    room: &mut dyn AnyRoom,
    now: Versioned<'_>,
    force: bool,
) -> bool {
    let synced = room.version();
    if member.clean >= synced {
        return false;
    }
    let reaches = room.reaches(member.clean);
    if !reaches && !force {
        return needs_snapshot(delivery, member);
    }
    let version = now.clock.max(member.sent + 1);
    let (format, number) = (member.format, member.number);
    let versions = Versions { base: member.sent, version };
    let (player, clean) = (member.player, member.clean);
    let mut bytes = 0;
    let write = |out: &mut Vec<u8>| {
        let (mut changed, start) = (true, out.len());
        if reaches {
            server::write_patch(format, out, number, versions, |out| {
                changed = room.patch(player, clean, format, out);
            });
        } else {
            write_snapshot(room, player, format, number, (now.epoch, version), out);
        }
        bytes = out.len() - start;
        changed
    };
    let force = force && delivery.has_space(&member.link) && !delivery.is_held(&member.link);
    let written = delivery.append_unless_behind(&mut member.link, force, write);
    match written {
        Some(true) => {
            member.sent = version;
            member.clean = synced;
            member.remember(now.history);
            delivery.env.counters.patches += 1;
            delivery.links.messages_out += 1;
            delivery.queues.traffic.sent(key, bytes);
        }
        // The client's copy equals this version of the room too.
        Some(false) => member.clean = synced,
        None => {
            if !member.lagging && !is_changed(delivery, member, room) {
                member.clean = synced;
                return false;
            }
            member.lagging = true;
            delivery.env.counters.conflated += 1;
        }
    }
    false
}

/// No patch reaches what the member has. Whether it needs a place in the queue: not if it has one,
/// or has much to read before.
#[cold]
fn needs_snapshot(delivery: &mut Delivery<'_>, member: &mut Member) -> bool {
    if !std::mem::replace(&mut member.lagging, true) {
        delivery.env.counters.conflated += 1;
    }
    if delivery.is_behind(&member.link) || delivery.is_loaded(&member.link) {
        return false;
    }
    !std::mem::replace(&mut member.wants_snapshot, true)
}

/// Returns whether a patch that is skipped would have held something. Asked until one would: what a
/// member is behind with shows in the versions of events and in whether it is sent a check.
#[cold]
fn is_changed(delivery: &mut Delivery<'_>, member: &Member, room: &mut dyn AnyRoom) -> bool {
    let mut body = delivery.links.buffer();
    let is_changed = !room.reaches(member.clean)
        || room.patch(member.player, member.clean, member.format, &mut body);
    delivery.links.recycle(body);
    is_changed
}

/// Returns whether a multiple of `every` lies past `before`, and not past `now`: with versions that
/// follow the clock, that is so for all who are sent the same patch.
pub(super) fn has_passed(every: u64, before: u64, now: u64) -> bool {
    now / every.max(1) > before / every.max(1) && every > 0
}

/// Sends the digest of a copy that is as it should be now. All members get theirs at the same sync,
/// since what everyone sees is gone through once for all of them. It leaves in one write with their
/// patches.
fn check(delivery: &mut Delivery<'_>, key: RoomKey, member: &mut Member, room: &mut dyn AnyRoom) {
    if member.clean != room.version() || delivery.is_behind(&member.link) {
        return;
    }
    if let Some(digest) = room.digest(member.player, member.format) {
        let message = ServerMessage::Check(server::Check {
            room: member.number,
            version: member.sent,
            digest,
        });
        delivery.send(key, member, &message);
    }
}
