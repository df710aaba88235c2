//! The way of a sync to the players: the one path that is walked for every player, twenty times a
//! second.

use std::borrow::Cow;
use std::time::Duration;

use playfield_room::{AnyRoom, PlayerId};
use playfield_session::SyncHistory;
use playfield_wire::client::ResumeRoom;
use playfield_wire::server::{self, ServerMessage, Versions};
use playfield_wire::{Format, RoomNumber};

use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::connection::Kind;
use crate::shard::connection::patience::Patience;
use crate::shard::delivery::Delivery;
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey};
use crate::shard::parcels::pack;
use crate::shard::rooms::Hosted;
use crate::shard::rooms::lateness::Cost;
use crate::shard::rooms::member::{Member, MemberOutput, Standing};
use crate::shard::session::allowance::Rate;

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

/// What the versions of a room without a rate count, beside what is sent.
const STEP_MS: u128 = 50;

/// How long a room writes snapshots at a time, for players who join or ask for one. One of a large
/// state may take a millisecond, and a thousand may be asked for at once.
const SNAPSHOTS: Duration = Duration::from_millis(2);
/// How long the next ones wait then. Other rooms and input come first.
const SNAPSHOTS_PAUSE: Duration = Duration::from_millis(2);

impl Hosted {
    /// What versions on the wire count by: nothing but the clock moves it. A sync that only some
    /// players can notice must not show in the versions of the others, so a room's own version
    /// stays inside the node. As long as a room syncs by its rate alone, this counts as the room
    /// does, and players who are sent the same are sent the same bytes.
    fn clock(&self, now: Duration) -> u64 {
        if self.room.sync_hz() > 0 {
            return 1 + self.regular_syncs;
        }
        1 + (now.saturating_sub(self.created).as_millis() / STEP_MS) as u64
    }
}

/// What versions are made of.
#[derive(Clone, Copy)]
struct Versioned<'a> {
    epoch: u64,
    clock: u64,
    history: &'a SyncHistory,
}

impl Shard {
    /// Syncs a room, and gives every member what it lacks.
    pub(in crate::shard) fn sync_room(&mut self, key: RoomKey, cause: Cause) {
        let began = self.stopwatch.read();
        self.call(key, |room, at, out| {
            if !room.is_closed() {
                room.sync(at, out);
            }
        });
        let synced = self.stopwatch.read();
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        self.delivery.counters.syncs += 1;
        let regular_before = hosted.regular_syncs;
        if let Cause::Clock { due } = cause {
            hosted.regular_syncs += due;
        }
        let clock = hosted.clock(self.now);
        let every = self.delivery.node.config.check_every_syncs;
        let is_check_due = has_passed(every, regular_before, hosted.regular_syncs);
        let rate = snapshot_rate(&self.delivery);
        hosted.history.synced(clock, hosted.room.version());
        let Hosted { room, members, id, room_type, epoch, resyncs, snapshots_at, history, .. } =
            hosted;
        let named = (*id, *room_type);
        let mut snapshots_took = Duration::ZERO;
        let now = Versioned { epoch: *epoch, clock, history };
        let has_rate = room.sync_hz() > 0;
        for (member_key, member) in members.iter_mut() {
            let place = (key, member_key);
            let is_told = matches!(member.standing, Standing::Live);
            if !is_told && self.delivery.is_held(member) {
                // A client that is away is sent `joined` later.
                continue;
            }
            match &mut member.standing {
                Standing::Live => {
                    let before = member.sent;
                    let force = cause == Cause::Last;
                    patch(&mut self.delivery, place, member, &mut **room, now, force);
                    if is_check_due || (!has_rate && has_passed(every, before, member.sent)) {
                        check(&mut self.delivery, place, member, &mut **room);
                    }
                }
                // Its session drew on its snapshots before, in a room that it has left. A room
                // that ends does not wait for that: the player was in it, and is sent that.
                Standing::Entering(entering)
                    if entering.seated
                        && member.snapshots.ready_at(rate) > self.now
                        && cause != Cause::Last =>
                {
                    resyncs.insert((member.snapshots.ready_at(rate), member_key));
                }
                // Its client has much to read first, or does not read at all.
                Standing::Entering(entering)
                    if entering.seated
                        && cause != Cause::Last
                        && is_loaded(&mut self.delivery, &member.output) => {}
                Standing::Entering(entering)
                    if entering.seated && !self.delivery.has_space(&member.output, 0) =>
                {
                    self.delivery.doom(member, false);
                }
                Standing::Entering(entering)
                    if entering.seated && snapshots_took >= SNAPSHOTS && cause != Cause::Last =>
                {
                    entering.synced = true;
                    resyncs.insert((self.now, member_key));
                    *snapshots_at = self.now + SNAPSHOTS_PAUSE;
                }
                Standing::Entering(entering) if entering.seated => {
                    if member.snapshots.ready_at(rate) <= self.now {
                        member.snapshots.take(self.now, rate);
                    }
                    let began = self.stopwatch.read();
                    enter(&mut self.delivery, place, member, &mut **room, named, now);
                    let took = self.stopwatch.read().saturating_sub(began);
                    self.delivery.charge(&mut member.output, self.now, took);
                    snapshots_took += took;
                }
                // Only while its own join is being asked for, and no sync runs then.
                Standing::Entering(_) => {}
            }
        }
        if room.may_leave_out() {
            let live =
                members.iter_mut().filter(|(_, member)| matches!(member.standing, Standing::Live));
            self.delivery.counters.left_out +=
                live.map(|(_, member)| room.left_out(member.player)).sum::<u64>();
        }
        if matches!(cause, Cause::Clock { .. }) {
            hosted.cost = Cost {
                ticks: std::mem::take(&mut hosted.ticking),
                sync: synced.saturating_sub(began),
                patches: self.stopwatch.read().saturating_sub(synced),
            };
        }
    }

    /// Gives a member whose earlier output went out what it missed meanwhile: one patch to now, or
    /// the snapshot it asked for.
    pub(in crate::shard) fn catch_up(&mut self, room: RoomKey, key: MemberKey) {
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(self.now);
        let Some(member) = hosted.members.get_mut(key) else { return };
        if member.wants_snapshot {
            return self.resync(room, key);
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
            let (room, place) = (&mut *hosted.room, (room, key));
            patch(&mut self.delivery, place, member, room, now, false);
        }
    }

    /// Sends a member a snapshot because it asked for one: once it has read what it was sent
    /// before, no more often than may be, and one for all that it asked for until then. What it
    /// asked for is never forgotten: it could not go on without.
    pub(in crate::shard) fn resync(&mut self, room: RoomKey, key: MemberKey) {
        let rate = snapshot_rate(&self.delivery);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(self.now);
        let Some(member) = hosted.members.get_mut(key) else { return };
        let is_behind =
            is_behind(&mut self.delivery, member) || is_loaded(&mut self.delivery, &member.output);
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
        let now = Versioned { epoch: hosted.epoch, clock, history: &hosted.history };
        let (room, place) = (&mut *hosted.room, (room, key));
        let began = self.stopwatch.read();
        snapshot(&mut self.delivery, place, member, room, now);
        let took = self.stopwatch.read().saturating_sub(began);
        self.delivery.charge(&mut member.output, self.now, took);
    }

    /// Sends `joined` to a member that was there at the last sync, and had to wait for its turn.
    fn enter_late(&mut self, room: RoomKey, key: MemberKey) {
        let rate = snapshot_rate(&self.delivery);
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let clock = hosted.clock(self.now);
        let named = (hosted.id, hosted.room_type);
        let Some(member) = hosted.members.get_mut(key) else { return };
        // The next sync is for these, or what ends their wait.
        if self.delivery.is_held(member) || is_loaded(&mut self.delivery, &member.output) {
            return;
        }
        if !self.delivery.has_space(&member.output, 0) {
            return self.delivery.doom(member, false);
        }
        member.snapshots.take(self.now, rate);
        let now = Versioned { epoch: hosted.epoch, clock, history: &hosted.history };
        let (room, place) = (&mut *hosted.room, (room, key));
        let began = self.stopwatch.read();
        enter(&mut self.delivery, place, member, room, named, now);
        let took = self.stopwatch.read().saturating_sub(began);
        self.delivery.charge(&mut member.output, self.now, took);
    }

    /// The message that brings the copy of a client that has come back up to date: a patch from the
    /// version that it has, or a snapshot if no patch reaches back that far; empty if it is up to
    /// date, or if the client has not joined yet.
    pub(in crate::shard) fn renew_copy(
        &mut self,
        room: RoomKey,
        key: MemberKey,
        copy: Option<ResumeRoom>,
    ) -> Vec<u8> {
        let mut body = Vec::new();
        let Some(hosted) = self.rooms.get_mut(room) else { return body };
        let clock = hosted.clock(self.now);
        let Hosted { room, members, epoch, history, .. } = hosted;
        let Some(member) = members.get_mut(key) else { return body };
        if !matches!(member.standing, Standing::Live) {
            return body;
        }
        let (synced, latest) = (room.version(), member.latest());
        let (format, number, player) = (member.format, member.number, member.player);
        member.wants_snapshot = false;
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
                self.delivery.counters.patches += 1;
                return body;
            }
            body.clear();
            if base == latest {
                member.clean = synced;
                return body;
            }
        }
        let version = clock.max(latest);
        member.is_now_at(version, synced, history);
        write_snapshot(&mut **room, player, format, number, (*epoch, version), &mut body);
        body
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

    /// Sends the snapshots that had to wait until now, as many as fit into the time for them;
    /// players who are joining get theirs by a sync, if none has shown them to the room yet.
    pub(in crate::shard) fn resync_due(&mut self, room: RoomKey) {
        let mut began = None;
        while let Some(hosted) = self.rooms.get_mut(room)
            && hosted.snapshots_at <= self.now
            && let Some(&first) = hosted.resyncs.first()
            && first.0 <= self.now
        {
            let read = self.stopwatch.read();
            if read.saturating_sub(*began.get_or_insert(read)) >= SNAPSHOTS {
                hosted.snapshots_at = self.now + SNAPSHOTS_PAUSE;
                return self.touch(room);
            }
            let (_, key) = first;
            hosted.resyncs.remove(&first);
            // It may have gone since, or got one when it had read enough.
            let Some(member) = hosted.members.get_mut(key) else { continue };
            match &member.standing {
                _ if member.wants_snapshot => self.resync(room, key),
                Standing::Entering(entering) if entering.synced => self.enter_late(room, key),
                Standing::Entering(_) if hosted.room.sync_hz() == 0 => {
                    hosted.sync_awaited = true;
                    self.touch(room);
                }
                _ => {}
            }
        }
    }
}

/// Sends a member that is seated `joined`, a snapshot and the events since it came.
fn enter(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    (id, room_type): (RoomId, u16),
    now: Versioned<'_>,
) {
    let events = delivery.take_held(place, member);
    let Standing::Entering(entering) = &mut member.standing else { return };
    let request = entering.request;
    member.standing = Standing::Live;
    let room_type = &delivery.node.room_types[usize::from(room_type)];
    let joined = ServerMessage::Joined {
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
    };
    delivery.send(place, member, &joined);
    if let MemberOutput::Here(connection) = member.output {
        mark_joined(delivery, connection, member.number);
    }
    snapshot(delivery, place, member, room, now);
    for event in events {
        delivery.event(place, member, event.header, &event.payload);
    }
}

/// Whether earlier output is still on its way to a member's client.
fn is_behind(delivery: &mut Delivery, member: &Member) -> bool {
    match &member.output {
        MemberOutput::Here(connection) => delivery.connections.lags(*connection),
        MemberOutput::Elsewhere(session) => session.in_flight > 0 || session.held,
    }
}

/// Whether too much waits for a member's client for a snapshot to follow it. When the client has
/// read it, the member [catches up](Shard::catch_up).
fn is_loaded(delivery: &mut Delivery, output: &MemberOutput) -> bool {
    match output {
        MemberOutput::Here(connection) => delivery.connections.is_loaded(*connection),
        MemberOutput::Elsewhere(session) => {
            session.is_behind(delivery.node.config.outbox_high_bytes)
        }
    }
}

/// How often a member is sent a snapshot because it came in or asked.
fn snapshot_rate(delivery: &Delivery) -> Rate {
    Rate::per_second("resyncs_per_second_max", delivery.node.config.resyncs_per_second_max)
}

/// Sends the patch from what the member has to now, if anything changed that it sees, or a snapshot
/// if no patch reaches that far. While earlier output is on its way nothing is sent, and later
/// there will be one patch instead of many; `force` sends it all the same if the outbox has space.
#[inline]
fn patch(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    now: Versioned<'_>,
    force: bool,
) {
    let synced = room.version();
    if member.clean >= synced {
        return;
    }
    let version = now.clock.max(member.sent + 1);
    let (format, number) = (member.format, member.number);
    let versions = Versions { base: member.sent, version };
    let (player, clean) = (member.player, member.clean);
    let mut write = |out: &mut Vec<u8>| {
        let mut changed = true;
        if room.reaches(clean) {
            server::write_patch(format, out, number, versions, |out| {
                changed = room.patch(player, clean, format, out);
            });
        } else {
            write_snapshot(room, player, format, number, (now.epoch, version), out);
        }
        changed
    };
    let force = force && delivery.has_space(&member.output, 0) && !delivery.is_held(member);
    let written = match &mut member.output {
        MemberOutput::Here(connection) => {
            delivery.connections.append_unless_blocked(*connection, force, |dialect, out| {
                let mut changed = false;
                dialect.write_with(out, |out| changed = write(out));
                changed
            })
        }
        MemberOutput::Elsewhere(session) if (session.in_flight > 0 && !force) || session.held => {
            None
        }
        MemberOutput::Elsewhere(session) => {
            let start = session.out.len();
            let changed = pack(&mut session.out, Kind::Fleeting, write);
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
            member.clean = synced;
            member.remember(now.history);
            delivery.counters.patches += 1;
            delivery.connections.messages_out += 1;
        }
        // The client's copy equals this version of the room too.
        Some(false) => member.clean = synced,
        None => {
            if !member.lagging && !is_changed(delivery, member, room) {
                member.clean = synced;
                return;
            }
            member.lagging = true;
            delivery.counters.conflated += 1;
        }
    }
}

/// Whether a patch that is skipped would have held something. Asked until one would: what a member
/// is behind with shows in the versions of events and in whether it is sent a check.
#[cold]
fn is_changed(delivery: &mut Delivery, member: &Member, room: &mut dyn AnyRoom) -> bool {
    let mut body = delivery.connections.buffer();
    let is_changed = !room.reaches(member.clean)
        || room.patch(member.player, member.clean, member.format, &mut body);
    delivery.connections.recycle(body);
    is_changed
}

/// Whether a multiple of `every` lies past `before`, and not past `now`: with versions that follow
/// the clock, that is so for all who are sent the same patch.
fn has_passed(every: u64, before: u64, now: u64) -> bool {
    now / every.max(1) > before / every.max(1) && every > 0
}

/// Sends the digest of a copy that is as it should be now. All members get theirs at the same sync,
/// since what everyone sees is gone through once for all of them. It leaves in one write with their
/// patches.
fn check(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
) {
    if member.clean != room.version() || is_behind(delivery, member) {
        return;
    }
    if let Some(digest) = room.digest(member.player, member.format) {
        let message = ServerMessage::Check { room: member.number, version: member.sent, digest };
        delivery.send(place, member, &message);
    }
}

fn snapshot(
    delivery: &mut Delivery,
    place: (RoomKey, MemberKey),
    member: &mut Member,
    room: &mut dyn AnyRoom,
    now: Versioned<'_>,
) {
    let (number, player) = (member.number, member.player);
    let version = now.clock.max(member.latest());
    member.is_now_at(version, room.version(), now.history);
    delivery.write(place, member, Kind::Fleeting, |format, out| {
        write_snapshot(room, player, format, number, (now.epoch, version), out);
    });
}

fn write_snapshot(
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

/// From here on the session may speak to the room.
pub(in crate::shard) fn mark_joined(
    delivery: &mut Delivery,
    connection: ConnectionKey,
    number: RoomNumber,
) {
    if let Some(session) = delivery.connections.session_mut(connection) {
        session.told_joined(number);
    }
}
