//! The observation of other nodes: who is alive, and who is to be declared dead.
//!
//! A node is dead when its record says so, and another node writes that, with the revision of the
//! last renewal as the condition, after it has not heard of a renewal for the length of a lease.
//! Time counts only while the observer's own renewals are answered: after an outage of the engine
//! no node is dead.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::Context;
use crate::engine::{Answer, EngineError, Record, Revision, Tag};
use crate::lease::{Lease, NODES, key_of, slot_of};
use crate::node::{Effect, Notice, Settings};
use crate::output::{Asked, Output};
use crate::record::{Beat, Incarnation, NodeRecord, NodeState, Slot};

#[derive(Debug, Default)]
pub(crate) struct Observer {
    peers: BTreeMap<Slot, Peer>,
    /// The records of all slots were listed since this node has its incarnation.
    is_listed: bool,
    listing: Option<Tag>,
}

#[derive(Debug)]
struct Peer {
    /// The incarnation that the newest record, or message, names.
    incarnation: Option<Incarnation>,
    is_dead: bool,
    /// The revision of its newest renewal that is known.
    revision: Revision,
    /// The time at which that revision was heard of, or at which counting began after that.
    heard_at: Duration,
    /// The time at which the record was last asked for.
    checked_at: Duration,
    address: String,
    pending: Option<(Tag, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Declare,
}

impl Observer {
    /// Notes a message that another node has sent after a renewal.
    pub(crate) fn beat(&mut self, now: Duration, beat: Beat) {
        let peer = self.peer(now, beat.slot);
        if beat.revision > peer.revision {
            if peer.incarnation != Some(beat.incarnation) {
                peer.address.clear();
            }
            peer.incarnation = Some(beat.incarnation);
            peer.is_dead = false;
            peer.revision = beat.revision;
            peer.heard_at = now;
        }
    }

    /// Notes the record of a slot.
    pub(crate) fn learn(
        &mut self,
        now: Duration,
        slot: Slot,
        revision: Revision,
        record: Option<&NodeRecord>,
    ) {
        self.peer(now, slot).learn(now, revision, record);
    }

    /// Observes a slot again whose record was written before the claim of an incarnation that it
    /// does not name: that one is dead, or its record is still on the way.
    pub(crate) fn doubt(&mut self, now: Duration, slot: Slot) {
        let peer = self.peer(now, slot);
        if peer.is_dead {
            peer.is_dead = false;
            peer.heard_at = now;
        }
    }

    fn peer(&mut self, now: Duration, slot: Slot) -> &mut Peer {
        self.peers.entry(slot).or_insert_with(|| Peer {
            incarnation: None,
            is_dead: false,
            revision: 0,
            heard_at: now,
            checked_at: now,
            address: String::new(),
            pending: None,
        })
    }

    /// The address of an incarnation that is alive, as a hint: it was heard of lately. The last
    /// word has the node there.
    pub(crate) fn address(
        &self,
        now: Duration,
        slot: Slot,
        incarnation: Incarnation,
        settings: &Settings,
    ) -> Option<&str> {
        let peer = self.peers.get(&slot)?;
        let is_alive = peer.incarnation == Some(incarnation)
            && !peer.is_dead
            && now < peer.heard_at + settings.freeze
            && !peer.address.is_empty();
        is_alive.then_some(&peer.address)
    }

    /// Begins to count again for all nodes.
    pub(crate) fn restart(&mut self, now: Duration) {
        for peer in self.peers.values_mut() {
            peer.heard_at = now;
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
        for (&slot, peer) in &mut self.peers {
            if peer.is_dead || slot == lease.slot() {
                continue;
            }
            let silent = now.saturating_sub(peer.heard_at);
            let is_silent = silent > settings.renew * 2;
            let is_over = silent > settings.lease + settings.rank_delay * rank;
            let pace = if is_over { settings.renew / 4 } else { settings.renew * 2 };
            if peer.pending.is_none() && is_silent && now >= peer.checked_at + pace {
                peer.read(now, slot, output);
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
            self.peer(now, slot).read(now, slot, output);
        }
    }

    pub(crate) fn answered(
        &mut self,
        slot: Slot,
        tag: Tag,
        result: Result<Answer, EngineError>,
        context: &mut Context<'_>,
    ) {
        let Some(peer) = self.peers.get_mut(&slot) else { return };
        let Some((_, step)) = peer.pending.take_if(|(pending, _)| *pending == tag) else { return };
        match (step, result) {
            (Step::Read, Ok(Answer::Read(record))) => peer.compare(slot, &record, context),
            (Step::Declare, Ok(Answer::Written(revision))) => {
                peer.revision = revision;
                peer.is_dead = true;
            }
            _ => {}
        }
    }
}

impl Peer {
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
                    self.learn(*now, found.revision, None);
                }
                return;
            }
        };
        if found.revision != self.revision {
            self.learn(*now, found.revision, record.as_ref());
            return;
        }
        if !is_counting(*now, lease, settings) || *now < self.heard_at + settings.lease {
            return;
        }
        let dead = NodeRecord {
            incarnation: record.as_ref().map_or(Incarnation(0), |record| record.incarnation),
            state: NodeState::Dead,
            beat: record.map_or(0, |record| record.beat),
            address: String::new(),
            lock: String::new(),
        };
        let tag = output.write(Asked::Peer(slot), key_of(slot), dead.encode(), found.revision);
        self.pending = Some((tag, Step::Declare));
    }

    fn learn(&mut self, now: Duration, revision: Revision, record: Option<&NodeRecord>) {
        if let Some(record) = record {
            self.address.clone_from(&record.address);
        }
        if revision != self.revision {
            self.incarnation = record.map(|record| record.incarnation);
            self.is_dead = record.is_some_and(|record| record.state == NodeState::Dead);
            self.revision = revision;
            self.heard_at = now;
        }
    }
}

/// Returns whether time counts for others: this node's own renewals are answered.
fn is_counting(now: Duration, lease: &Lease, settings: &Settings) -> bool {
    lease.is_renewed_within(settings.gap, now)
}
