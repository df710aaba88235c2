//! The observation of other nodes: who is alive, and who is to be declared dead.
//!
//! A node is dead when its record says so, and another node writes that, with the revision of the
//! last renewal as the condition, after it has not heard of a renewal for the length of a lease.
//! Time counts only while the observer's own renewals are answered: after an outage of the engine
//! no node is dead.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::Context;
use crate::effect::{Effect, NodeId, Notice, Peer};
use crate::engine::{Answer, EngineError, Record, Revision, Tag};
use crate::lease::{Lease, NODES, key_of, slot_of};
use crate::output::{Asked, Output};
use crate::record::{Beat, Incarnation, Load, NodeRecord, NodeState, Slot};
use crate::settings::Settings;

#[derive(Debug, Default)]
pub(crate) struct Observer {
    watched: BTreeMap<Slot, Watched>,
    /// The records of all slots were listed since this node has its incarnation.
    is_listed: bool,
    listing: Option<Tag>,
}

/// A slot, and the node in it.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The incarnation that the newest record, or message, names.
    incarnation: Option<Incarnation>,
    is_dead: bool,
    /// The revision of its newest renewal that is known.
    revision: Revision,
    /// The time at which that revision was heard of, or at which counting began after that.
    heard_at: Duration,
    /// The time at which the record was last asked for.
    checked_at: Duration,
    /// The length of its lease, once its record was read.
    lease: Duration,
    /// The incarnation, once its record was read.
    peer: Option<Peer>,
    load: Option<Load>,
    pending: Option<(Tag, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Declare,
}

impl Observer {
    /// Notes a message that another node has sent.
    pub(crate) fn beat(&mut self, now: Duration, beat: Beat, output: &mut Output) {
        let Beat { slot, incarnation, revision, state, load } = beat;
        let watched = self.heard(now, slot, incarnation, revision, output);
        if state == NodeState::Dead && watched.revision == revision {
            watched.is_dead = true;
            watched.peer = None;
        }
        if watched.incarnation == Some(incarnation) {
            watched.load = Some(load);
            if let Some(peer) = &mut watched.peer {
                peer.load = Some(load);
            }
        }
    }

    /// Notes that an incarnation says it has made the renewal of that revision.
    pub(crate) fn heard(
        &mut self,
        now: Duration,
        slot: Slot,
        incarnation: Incarnation,
        revision: Revision,
        output: &mut Output,
    ) -> &mut Watched {
        let watched = self.watch(now, slot);
        if revision > watched.revision {
            watched.is(Some(incarnation));
            watched.is_dead = false;
            watched.revision = revision;
            watched.heard_at = now;
        }
        let is_unread = watched.peer.is_none() && !watched.is_dead;
        if is_unread && watched.incarnation == Some(incarnation) && watched.pending.is_none() {
            watched.read(now, slot, output);
        }
        watched
    }

    /// Notes the record of a slot.
    pub(crate) fn learn(
        &mut self,
        now: Duration,
        slot: Slot,
        revision: Revision,
        record: Option<&NodeRecord>,
    ) {
        self.watch(now, slot).learn(now, slot, revision, record);
    }

    /// Observes a slot again whose record was written before the claim of an incarnation that it
    /// does not name: that one is dead, or its record is still on the way.
    pub(crate) fn doubt(&mut self, now: Duration, slot: Slot) {
        let watched = self.watch(now, slot);
        if watched.is_dead {
            watched.is_dead = false;
            watched.heard_at = now;
        }
    }

    fn watch(&mut self, now: Duration, slot: Slot) -> &mut Watched {
        self.watched.entry(slot).or_insert_with(|| Watched {
            incarnation: None,
            is_dead: false,
            revision: 0,
            heard_at: now,
            checked_at: now,
            lease: Duration::ZERO,
            peer: None,
            load: None,
            pending: None,
        })
    }

    /// An incarnation that is alive, as a hint: it was heard of lately. The last word has the node
    /// there.
    pub(crate) fn alive(&self, now: Duration, id: NodeId, settings: &Settings) -> Option<&Peer> {
        let watched = self.watched.get(&id.slot)?;
        let is_heard = now < watched.heard_at + settings.freeze;
        watched.peer.as_ref().filter(|peer| peer.incarnation == id.incarnation && is_heard)
    }

    /// The node in a slot, as far as it was read, unless it is known to be dead.
    pub(crate) fn peer(&self, slot: Slot) -> Option<&Peer> {
        self.watched.get(&slot)?.peer.as_ref()
    }

    /// The incarnation in a slot, unless it is known to be dead.
    pub(crate) fn incarnation(&self, slot: Slot) -> Option<Incarnation> {
        self.watched.get(&slot).filter(|watched| !watched.is_dead)?.incarnation
    }

    /// The nodes that were read, are not known to be dead, and were heard of since that time.
    pub(crate) fn heard_since(&self, since: Duration) -> impl Iterator<Item = &Peer> {
        let watched = self.watched.values().filter(move |watched| watched.heard_at >= since);
        watched.filter_map(|watched| watched.peer.as_ref())
    }

    /// All nodes that were read, and are not known to be dead.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.watched.values().filter_map(|watched| watched.peer.as_ref())
    }

    /// Begins to count again for all nodes.
    pub(crate) fn restart(&mut self, now: Duration) {
        for watched in self.watched.values_mut() {
            watched.heard_at = now;
        }
    }

    /// Forgets all nodes: an engine that has lost writes may have lost deaths.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Reads the records of nodes that are silent.
    pub(crate) fn turn(
        &mut self,
        now: Duration,
        lease: &Lease,
        settings: &Settings,
        output: &mut Output,
    ) {
        if !is_counting(now, lease, settings) {
            return;
        }
        if !self.is_listed && self.listing.is_none() {
            self.listing = Some(output.list(Asked::Peers, NODES));
        }
        let mut rank = 0;
        for (&slot, watched) in &mut self.watched {
            if watched.is_dead || slot == lease.slot() {
                continue;
            }
            let silent = now.saturating_sub(watched.heard_at);
            let is_silent = silent > settings.renew * 2;
            let is_over = silent > watched.lease.max(settings.lease) + settings.rank_delay * rank;
            let pace = if is_over { settings.renew / 4 } else { settings.renew * 2 };
            if watched.pending.is_none() && is_silent && now >= watched.checked_at + pace {
                watched.read(now, slot, output);
            }
            if !is_silent && slot < lease.slot() {
                rank += 1;
            }
        }
    }

    /// Begins to observe the nodes that have records, those from before this node's time, too.
    pub(crate) fn listed(
        &mut self,
        now: Duration,
        tag: Tag,
        result: Result<Answer, EngineError>,
        output: &mut Output,
    ) {
        if self.listing.take_if(|listing| *listing == tag).is_none() {
            return;
        }
        let Ok(Answer::Listed(keys)) = result else { return };
        self.is_listed = true;
        for slot in keys.iter().filter_map(slot_of) {
            self.watch(now, slot).read(now, slot, output);
        }
    }

    pub(crate) fn answered(
        &mut self,
        slot: Slot,
        tag: Tag,
        result: Result<Answer, EngineError>,
        context: &mut Context<'_>,
    ) {
        let Some(watched) = self.watched.get_mut(&slot) else { return };
        let Some((_, step)) = watched.pending.take_if(|(pending, _)| *pending == tag) else {
            return;
        };
        match (step, result) {
            (Step::Read, Ok(Answer::Read(record))) => watched.compare(slot, &record, context),
            (Step::Declare, Ok(Answer::Written(revision))) => {
                watched.revision = revision;
                watched.is_dead = true;
                watched.peer = None;
            }
            _ => {}
        }
    }
}

impl Watched {
    fn read(&mut self, now: Duration, slot: Slot, output: &mut Output) {
        self.checked_at = now;
        self.pending = Some((output.read(Asked::Peer(slot), key_of(slot)), Step::Read));
    }

    /// Compares the record with what is known, and declares the node dead if it is the same for
    /// the length of a lease.
    fn compare(&mut self, slot: Slot, found: &Record, context: &mut Context<'_>) {
        let Context { now, lease, settings, output } = context;
        let record = match found.value.as_deref().map(NodeRecord::decode).transpose() {
            Ok(record) => record,
            Err(error) => {
                if found.revision != self.revision {
                    let (key, error) = (key_of(slot), error.to_string());
                    output.effect(Effect::Noted(Notice::Unreadable { key, error }));
                    self.learn(*now, slot, found.revision, None);
                }
                return;
            }
        };
        let is_unread = self.peer.is_none()
            && record.as_ref().is_some_and(|record| {
                record.state == NodeState::Serving && Some(record.incarnation) == self.incarnation
            });
        if found.revision != self.revision || is_unread {
            self.learn(*now, slot, found.revision, record.as_ref());
            return;
        }
        let is_over = *now >= self.heard_at + self.lease.max(settings.lease);
        if !is_over || !is_counting(*now, lease, settings) {
            return;
        }
        let (incarnation, beat) =
            record.map_or((Incarnation(0), 0), |record| (record.incarnation, record.beat));
        let dead = NodeRecord::dead(incarnation, beat);
        let tag = output.write(Asked::Peer(slot), key_of(slot), dead.encode(), found.revision);
        self.pending = Some((tag, Step::Declare));
    }

    fn learn(
        &mut self,
        now: Duration,
        slot: Slot,
        revision: Revision,
        record: Option<&NodeRecord>,
    ) {
        let incarnation = record.map(|record| record.incarnation);
        let is_dead = record.is_some_and(|record| record.state == NodeState::Dead);
        let lease_ms = record.map_or(0, |record| record.lease_ms);
        self.lease = Duration::from_millis(lease_ms.into());
        // What was doubted of the same record stays so.
        if revision != self.revision || incarnation != self.incarnation {
            self.is(incarnation);
            self.is_dead = is_dead;
            self.revision = revision;
            self.heard_at = now;
        }
        if is_dead {
            self.peer = None;
        } else if let Some(record) = record.filter(|_| self.peer.is_none()) {
            self.peer = Some(Peer {
                slot,
                incarnation: record.incarnation,
                name: record.name.as_str().into(),
                addresses: record.addresses.clone().into(),
                build: record.build,
                types: record.types.clone().into(),
                load: self.load,
            });
        }
    }

    /// Notes the incarnation that has the slot now.
    fn is(&mut self, incarnation: Option<Incarnation>) {
        if self.incarnation != incarnation {
            self.incarnation = incarnation;
            (self.peer, self.load) = (None, None);
        }
    }
}

/// Returns whether time counts for others: this node's own renewals are answered.
fn is_counting(now: Duration, lease: &Lease, settings: &Settings) -> bool {
    lease.is_renewed_within(settings.gap, now)
}
