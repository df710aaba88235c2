//! The lease of a node: its record, which it takes and renews by compare-and-set.

use std::time::Duration;

use crate::effect::{Effect, Notice};
use crate::engine::{Answer, EngineError, Key, Record, Revision, Tag};
use crate::output::{Asked, Output};
use crate::random::Random;
use crate::record::{Incarnation, NodeRecord, NodeState, SLOTS, Slot};
use crate::settings::Settings;

/// The change of a lease by an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// The node has its slot, with a new incarnation.
    Taken,
    /// A renewal that was sent then has succeeded, that much later than the one before.
    Renewed {
        sent_at: Duration,
        gap: Duration,
    },
    /// The incarnation is dead. The node takes a slot again.
    Lost,
    /// The incarnation is dead, and the node takes no slot any more.
    Left,
}

#[derive(Debug)]
pub(crate) struct Lease {
    slot: Slot,
    key: Key,
    incarnation: Incarnation,
    is_serving: bool,
    /// The revision of the newest renewal that is known.
    revision: Revision,
    beat: u64,
    /// The time at which the last answered renewal was sent.
    renewed_at: Option<Duration>,
    /// The time at which its answer came.
    answered_at: Option<Duration>,
    pending: Option<Pending>,
    next_at: Duration,
    exit: Exit,
    /// Slots that were taken, since this node has begun to look for one.
    refused: u32,
    random: Random,
}

/// The way out of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Staying,
    Leaving,
    Left,
}

/// Slots that are tried one after the other, before the node waits for the time of a renewal.
const SLOTS_TRIED: u32 = 32;

/// A command under way. There is one at a time.
#[derive(Clone, Copy, Debug)]
struct Pending {
    tag: Tag,
    step: Step,
    sent_at: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads the record of a slot to take.
    Look,
    Take,
    Renew,
    /// Writes that the incarnation is dead.
    Leave,
    /// Reads the record after one of these has failed.
    Check,
}

impl Lease {
    pub(crate) fn new(settings: &Settings, now: Duration, mut random: Random) -> Self {
        let slot = settings.slot.unwrap_or_else(|| random.below(u64::from(SLOTS)) as Slot);
        Self {
            slot,
            key: key_of(slot),
            incarnation: Incarnation(0),
            is_serving: false,
            revision: 0,
            beat: 0,
            renewed_at: None,
            answered_at: None,
            pending: None,
            next_at: now,
            exit: Exit::Staying,
            refused: 0,
            random,
        }
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// The incarnation, if it is not known to be dead.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        self.is_serving.then_some(self.incarnation)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The time at which the node freezes, as far as it knows now.
    pub(crate) fn acts_until(&self, settings: &Settings) -> Option<Duration> {
        let is_acting = self.is_serving && self.exit == Exit::Staying;
        self.renewed_at.filter(|_| is_acting).map(|at| at + settings.freeze)
    }

    /// Returns whether the last renewal was sent, and answered, within this time.
    pub(crate) fn is_renewed_within(&self, time: Duration, now: Duration) -> bool {
        self.renewed_at.is_some_and(|at| self.is_serving && now <= at + time)
    }

    /// The incarnation that had the slot last.
    pub(crate) fn last_incarnation(&self) -> Option<Incarnation> {
        (self.revision > 0).then_some(self.incarnation)
    }

    pub(crate) fn has_left(&self) -> bool {
        self.exit == Exit::Left
    }

    /// Begins to leave: rooms are not called from now on.
    pub(crate) fn leave(&mut self, now: Duration) -> Change {
        if self.exit != Exit::Staying {
            return Change::None;
        }
        if !self.is_serving {
            self.exit = Exit::Left;
            return Change::Left;
        }
        self.exit = Exit::Leaving;
        self.next_at = now;
        Change::None
    }

    /// Does what is due, and returns when to come again.
    pub(crate) fn turn(
        &mut self,
        now: Duration,
        settings: &Settings,
        output: &mut Output,
    ) -> Option<Duration> {
        if self.pending.is_some() || self.exit == Exit::Left {
            return None;
        }
        if now < self.next_at {
            return Some(self.next_at);
        }
        self.next_at = now + settings.renew;
        if self.is_serving {
            self.beat += 1;
            let (record, step) = match self.exit {
                Exit::Staying => (self.record(settings), Step::Renew),
                _ => (NodeRecord::dead(self.incarnation, self.beat), Step::Leave),
            };
            let (value, revision) = (record.encode(), self.revision);
            let tag = output.write(Asked::Lease, self.key.clone(), value, revision);
            self.begin(tag, step, now);
        } else {
            self.read(Step::Look, now, output);
        }
        None
    }

    pub(crate) fn answered(
        &mut self,
        now: Duration,
        tag: Tag,
        result: Result<Answer, EngineError>,
        settings: &Settings,
        output: &mut Output,
    ) -> Change {
        let Some(pending) = self.pending.take_if(|pending| pending.tag == tag) else {
            return Change::None;
        };
        match (pending.step, result) {
            _ if self.exit == Exit::Left => Change::None,
            (Step::Look, Ok(Answer::Read(record))) => self.look(now, &record, settings, output),
            (Step::Take, Ok(Answer::Written(revision))) => {
                self.revision = revision;
                self.renewed(now, pending.sent_at);
                Change::Taken
            }
            // Reading shows which write came first.
            (Step::Take, Err(_)) => {
                self.read(Step::Look, now, output);
                Change::None
            }
            (Step::Renew, Ok(Answer::Written(revision))) if revision > self.revision => {
                self.revision = revision;
                let gap = self.gap(now, pending.sent_at);
                self.renewed(now, pending.sent_at);
                Change::Renewed { sent_at: pending.sent_at, gap }
            }
            (Step::Renew, Ok(_)) => self.lose(now, Notice::EngineLostWrites, output),
            (Step::Leave, Ok(Answer::Written(revision))) => {
                self.revision = revision;
                self.end()
            }
            (Step::Renew | Step::Leave, Err(EngineError::Conflict)) => {
                self.read(Step::Check, now, output);
                Change::None
            }
            (Step::Check, Ok(Answer::Read(record))) => self.check(now, &record, settings, output),
            // Asked again when the next renewal is due.
            _ => Change::None,
        }
    }

    /// Takes the slot, if its record allows it, or tries another slot.
    fn look(
        &mut self,
        now: Duration,
        found: &Record,
        settings: &Settings,
        output: &mut Output,
    ) -> Change {
        if let Some(value) = &found.value {
            let is_free = match NodeRecord::decode(value) {
                // An attempt whose outcome was not known has succeeded.
                Ok(record)
                    if record.incarnation == self.incarnation
                        && self.is_taking()
                        && record.state == NodeState::Serving =>
                {
                    self.revision = found.revision;
                    self.is_serving = true;
                    self.next_at = now;
                    self.turn(now, settings, output);
                    return Change::Taken;
                }
                Ok(record) => {
                    record.state == NodeState::Dead
                        || record.incarnation == self.incarnation
                        // This process holds the lock, so the one before is gone.
                        || !record.lock.is_empty() && record.lock == settings.lock
                }
                Err(error) => {
                    let (key, error) = (self.key.clone(), error.to_string());
                    output.effect(Effect::Noted(Notice::Unreadable { key, error }));
                    false
                }
            };
            if !is_free {
                self.refused += 1;
                self.slot = self.random.below(u64::from(SLOTS)) as Slot;
                self.key = key_of(self.slot);
                self.beat = 0;
                if self.refused.is_multiple_of(SLOTS_TRIED) {
                    // The next turn goes on.
                    let tried = self.refused;
                    output.effect(Effect::Noted(Notice::SlotsTaken { tried }));
                } else {
                    self.read(Step::Look, now, output);
                }
                return Change::None;
            }
        }
        // An attempt that may still arrive keeps its incarnation, so that it is recognized.
        if !self.is_taking() {
            self.incarnation = Incarnation(self.random.next());
        }
        self.beat = 1;
        let value = self.record(settings).encode();
        let tag = output.write(Asked::Lease, self.key.clone(), value, found.revision);
        self.begin(tag, Step::Take, now);
        Change::None
    }

    /// Returns whether an incarnation was made that may come to have the slot.
    fn is_taking(&self) -> bool {
        self.beat == 1
    }

    /// Decides what a failed renewal means: an earlier renewal that was not answered, a death, or
    /// an engine that has lost writes.
    fn check(
        &mut self,
        now: Duration,
        found: &Record,
        settings: &Settings,
        output: &mut Output,
    ) -> Change {
        let notice = match found.value.as_deref().map(NodeRecord::decode) {
            Some(Ok(record)) if record.incarnation == self.incarnation => match record.state {
                NodeState::Serving if found.revision >= self.revision => {
                    self.revision = found.revision;
                    self.next_at = now;
                    self.turn(now, settings, output);
                    return Change::None;
                }
                NodeState::Serving => Notice::EngineLostWrites,
                NodeState::Dead => Notice::DeclaredDead,
            },
            Some(_) if found.revision > self.revision => Notice::DeclaredDead,
            _ => Notice::EngineLostWrites,
        };
        self.lose(now, notice, output)
    }

    fn lose(&mut self, now: Duration, notice: Notice, output: &mut Output) -> Change {
        if self.exit == Exit::Leaving {
            return self.end();
        }
        self.is_serving = false;
        self.renewed_at = None;
        self.answered_at = None;
        self.beat = 0;
        self.next_at = now;
        output.effect(Effect::Noted(notice));
        Change::Lost
    }

    fn end(&mut self) -> Change {
        self.is_serving = false;
        self.exit = Exit::Left;
        Change::Left
    }

    /// The time between a renewal and the one before: between their sendings, or their answers if
    /// these are further apart. An answer that waited in a queue while the process stood still does
    /// not shorten it.
    fn gap(&self, now: Duration, sent_at: Duration) -> Duration {
        let between = |before: Option<Duration>, after: Duration| {
            before.map_or(Duration::MAX, |before| after.saturating_sub(before))
        };
        between(self.renewed_at, sent_at).max(between(self.answered_at, now))
    }

    fn renewed(&mut self, now: Duration, sent_at: Duration) {
        self.is_serving = true;
        self.refused = 0;
        self.renewed_at = Some(sent_at);
        self.answered_at = Some(now);
    }

    fn record(&self, settings: &Settings) -> NodeRecord {
        NodeRecord {
            incarnation: self.incarnation,
            state: NodeState::Serving,
            beat: self.beat,
            name: settings.name.clone(),
            addresses: settings.addresses.clone(),
            build: settings.build,
            types: settings.types.clone(),
            lock: settings.lock.clone(),
            lease_ms: u32::try_from(settings.lease.as_millis()).unwrap_or(u32::MAX),
        }
    }

    fn read(&mut self, step: Step, now: Duration, output: &mut Output) {
        let tag = output.read(Asked::Lease, self.key.clone());
        self.begin(tag, step, now);
    }

    fn begin(&mut self, tag: Tag, step: Step, now: Duration) {
        self.pending = Some(Pending { tag, step, sent_at: now });
    }
}

/// The beginning of the names of the records of slots.
pub(crate) const NODES: &str = "n.";

/// The name of the record of a slot.
pub(crate) fn key_of(slot: Slot) -> Key {
    format!("{NODES}{slot}").into()
}

/// The slot whose record has this name.
pub(crate) fn slot_of(key: &Key) -> Option<Slot> {
    let slot = key.strip_prefix(NODES)?.parse().ok()?;
    (slot < SLOTS).then_some(slot)
}
