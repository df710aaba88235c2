//! Rooms of a cluster that stand still, because their node can't show that it serves their keys.
//!
//! A room stands still for one of two reasons. The lease of the node has run out: the shard sees it
//! by the clock at the begin of a turn, before it calls a room. Or the room's own claim is in doubt,
//! as the host of the cluster says. The room goes on when neither is so.

use std::sync::Arc;

use playfield_cluster::Save;
use playfield_room::{EndReason, Error, Opened, Pausable, Pause};

use crate::cluster::KeyOf;
use crate::cluster::keeping::{Claim, MOVED};
use crate::room_id::RoomId;
use crate::shard::frames::{Stay, ToSession};
use crate::shard::keys::{MemberKey, RoomKey};
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::MemberLink;

/// A member of a room that stands still.
pub(crate) struct Waits {
    pub(super) member: MemberKey,
    /// The number of its messages that wait. Its session counts them as not done.
    pub(super) acts: u32,
}

impl RoomHost {
    /// At the begin of a turn: lets the rooms that are served by claims stand still, if the lease
    /// has run out. The process may have been stopped for a while.
    pub(in crate::shard) fn look_at_lease(&mut self, below: &mut Below<'_>) {
        let Some(cluster) = &below.env.node.cluster else { return };
        if self.is_cut_off || cluster.acts() {
            return;
        }
        cluster.cut_off(below.env.shard);
        self.is_cut_off = true;
        let paused = self.keep_all_to_claims(below);
        if paused > 0 {
            log::warn!(
                "shard {}: {paused} rooms with keys stand still: the node has not renewed its lease \
                 in the cluster for 3/4 of cluster.lease = {:?}",
                below.env.shard,
                below.env.node.config.cluster.lease
            );
        }
    }

    /// The node may call its rooms again, apart from those that are frozen by now.
    pub(in crate::shard) fn lease_renewed(&mut self, below: &mut Below<'_>) {
        let Some(cluster) = &below.env.node.cluster else { return };
        if !self.is_cut_off {
            return;
        }
        if !cluster.acts() {
            return cluster.cut_off(below.env.shard);
        }
        self.is_cut_off = false;
        self.keep_all_to_claims(below);
    }

    /// Checks that a new room would not have to stand still.
    pub(super) fn check_claim(
        &self,
        below: &Below<'_>,
        room_type: u16,
        key: Option<&Arc<str>>,
    ) -> Result<(), Error> {
        let node = &below.env.node;
        let (Some(key), Some(cluster)) = (key, &node.cluster) else { return Ok(()) };
        let freezes = node.room_types[usize::from(room_type)].settings.freezes();
        let key = KeyOf { room_type, key: Arc::clone(key) };
        if freezes && (self.is_cut_off || cluster.is_frozen(&key)) {
            return Err(Pause::Cluster.error());
        }
        Ok(())
    }

    /// Takes news of the claim of a room's key.
    pub(in crate::shard) fn claim(&mut self, below: &mut Below<'_>, id: RoomId, claim: Claim) {
        let key = self.by_id.get(&id).copied();
        let hosted = key.and_then(|key| self.rooms.get_mut(key));
        let (Some(key), Some(hosted)) = (key, hosted) else {
            // The room has ended meanwhile, or comes to be after this.
            if let Claim::Reopened { key, attempt, opened } = claim {
                close(below, &key, &opened);
                self.compared(below, key, attempt, Save::Intact);
            }
            return;
        };
        match claim {
            Claim::Freeze | Claim::Thaw => {
                hosted.is_frozen = matches!(claim, Claim::Freeze);
                self.keep_to_claim(below, key);
            }
            Claim::Reopened { key: of, attempt, opened } => {
                let at = below.env.now.saturating_sub(hosted.created);
                let is_last = hosted.room.reopened(at, *opened);
                // One that goes on may have to be saved.
                self.touch(key);
                let save = if is_last { Save::Intact } else { Save::Changed };
                self.compared(below, of, attempt, save);
            }
            Claim::End => self.another_has_key(below, key),
        }
    }

    #[allow(clippy::unused_self, reason = "it is called as the others")]
    fn compared(&self, below: &Below<'_>, key: KeyOf, attempt: u64, save: Save) {
        if let Some(cluster) = &below.env.node.cluster {
            cluster.compared(key, attempt, save);
        }
    }

    /// Another node has the key of a room: it ends, unless it may go on without.
    fn another_has_key(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        let settings = &below.env.node.room_types[usize::from(hosted.room_type)].settings;
        if !settings.freezes() && settings.persist_s == 0 {
            return below.env.node.directory.forget_key(hosted.id);
        }
        self.call(below, key, |room, at, out| room.close(at, EndReason::Moved, MOVED, out));
    }

    /// Lets rooms stand still whose save another owner has opened.
    pub(super) fn pause_fenced(&mut self, below: &mut Below<'_>) {
        while let Some(key) = self.queues.fenced.pop() {
            if let Some(hosted) = self.rooms.get_mut(key)
                && let Some(of) = hosted.published.key.clone()
                && let Some(cluster) = &below.env.node.cluster
            {
                hosted.is_frozen = true;
                cluster.fenced(KeyOf { room_type: hosted.room_type, key: of });
                self.keep_to_claim(below, key);
            }
        }
    }

    /// Lets all rooms that are served by claims stand still, or go on. Returns how many stand still.
    fn keep_all_to_claims(&mut self, below: &mut Below<'_>) -> usize {
        for key in self.rooms.keys() {
            self.keep_to_claim(below, key);
        }
        self.queues.standing.len()
    }

    /// Lets a room stand still or go on, as its claim and the lease are now.
    fn keep_to_claim(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        let settings = &below.env.node.room_types[usize::from(hosted.room_type)].settings;
        if hosted.published.key.is_none() || !settings.freezes() {
            return;
        }
        let stands = hosted.is_frozen || self.is_cut_off;
        let is_paused = hosted.room.pausable().and_then(|room| room.why()) == Some(Pause::Cluster);
        match (stands, is_paused) {
            (true, false) => self.pause(below, key),
            (false, true) => self.go_on(below, key),
            _ => {}
        }
    }

    fn pause(&mut self, below: &mut Below<'_>, key: RoomKey) {
        self.make_up_for_syncs(below, key);
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        Pausable::pause(&mut hosted.room, below.env.now.saturating_sub(hosted.created));
        hosted.set_due(key, &mut self.schedule, None);
        let members = hosted.members.iter_mut();
        let members = members.map(|(member, of)| (of.player, Waits { member, acts: 0 }));
        self.queues.standing.insert(key, members.collect());
    }

    fn go_on(&mut self, below: &mut Below<'_>, key: RoomKey) {
        self.pass_over_missed(below, key);
        self.call(below, key, |room, at, out| {
            if let Some(room) = room.pausable() {
                room.resume(at, out);
            }
        });
        let standing = self.queues.standing.remove(&key).unwrap_or_default();
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        Pausable::unwrap(&mut hosted.room);
        for Waits { member, acts } in standing.into_values().filter(|waits| waits.acts > 0) {
            let Some(member) = hosted.members.get_mut(member) else { continue };
            match &member.link {
                MemberLink::Local(connection) => {
                    let stay = Stay { connection: *connection, room: member.number };
                    outlet!(below).acts_done(stay, acts);
                }
                MemberLink::Remote(link) => {
                    (0..acts).for_each(|_| link.put(below.outbound, ToSession::Done));
                }
            }
        }
        self.pause_fenced(below);
    }

    /// Counts the ticks and syncs that a room has missed. They are not made up for.
    fn pass_over_missed(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        let (now, counters) = (below.env.now, &mut below.env.counters);
        if let Some(ticks) = &mut hosted.ticks {
            let first = ticks.number();
            counters.ticks_skipped += ticks.take(now, 0).end - first;
        }
        if let Some(syncs) = &mut hosted.syncs {
            let (first, late) = (syncs.number(), now.saturating_sub(syncs.deadline()));
            let missed = syncs.take(now, 0).end - first;
            hosted.regular_syncs += missed;
            hosted.syncs_missed += missed;
            counters.syncs_missed += missed;
            hosted.late.note(now, late.into());
        }
    }
}

/// Gives a fence back that no room uses.
fn close(below: &Below<'_>, key: &KeyOf, opened: &Opened) {
    let node = &below.env.node;
    if let Some(store) = node.store.lend() {
        let name = &node.room_types[usize::from(key.room_type)].name;
        store.close(name, &key.key, opened.fence);
    }
}
