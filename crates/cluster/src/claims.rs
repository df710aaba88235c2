//! The claims of a node: which keys it serves, and where the others are.
//!
//! ```text
//!  wanted ──▶ read ──▶ free, its own, or its node is dead ──▶ write ──▶ open the save ──▶ held
//!              ▲  └──▶ another node's: its address                                        │
//!              └────────────── fenced, not there any more, a new incarnation ─────────────┘
//! ```
//!
//! Only the answer to a write makes a claim held. A write whose outcome is not known, or a removal,
//! may take effect late; a claim that carries this incarnation's nonce is written again before it
//! is used, and whatever is still on the way then fails by its condition.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::claim::{Claim, Retry, Room, Stage};
use crate::context::Context;
use crate::engine::{Answer, EngineError, Key, Record, Revision, Tag};
use crate::lease::key_of;
use crate::node::{Effect, Notice, Place, RequestId, Save, Settings};
use crate::observer::Observer;
use crate::output::{Asked, Output};
use crate::owner::{Owner, judge};
use crate::random::Random;
use crate::record::{ClaimRecord, Nonce};

/// The most requests that wait for one key.
const WAITING_MAX: usize = 1024;
/// The most writes of other nodes that a request for a key waits for.
const CONFLICTS_MAX: u8 = 3;

#[derive(Debug)]
pub(crate) struct Claims {
    claims: BTreeMap<Key, Claim>,
    /// The nonce of all claims of this incarnation. Other nodes don't know it, so a claim with it
    /// was written here.
    nonce: Nonce,
    random: Random,
}

impl Claims {
    pub(crate) fn new(random: Random) -> Self {
        Self { claims: BTreeMap::new(), nonce: Nonce::default(), random }
    }

    /// Finds the room of a key, or claims the key.
    pub(crate) fn wanted(&mut self, key: Key, request: RequestId, output: &mut Output) {
        let mut is_new = false;
        let claim = self.claims.entry(key.clone()).or_insert_with(|| {
            is_new = true;
            Claim::new()
        });
        match claim.stage {
            Stage::Held => output.effect(Effect::Found { request, place: Place::Here }),
            Stage::Reading | Stage::Judging { .. } | Stage::Writing | Stage::Opening
                if claim.waiting.len() < WAITING_MAX =>
            {
                claim.waiting.push(request);
            }
            _ if is_new => {
                claim.waiting.push(request);
                claim.read(&key, output);
            }
            _ => output.effect(Effect::Found { request, place: Place::Busy }),
        }
    }

    pub(crate) fn answered(
        &mut self,
        key: &Key,
        tag: Tag,
        result: Result<Answer, EngineError>,
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        let is_kept = if claim.proof == Some(tag) {
            claim.proof = None;
            if let Ok(Answer::Read(record)) = result {
                claim.proved(key, &record, context);
            }
            true
        } else if claim.tag == tag {
            claim.answered(key, result, self.nonce, observer, context)
        } else {
            true
        };
        if !is_kept {
            self.claims.remove(key);
        }
    }

    /// Takes the outcome of opening a save.
    pub(crate) fn opened(
        &mut self,
        now: Duration,
        key: &Key,
        attempt: u64,
        save: Option<Save>,
        settings: &Settings,
        output: &mut Output,
    ) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        if claim.stage != Stage::Opening || claim.attempt != attempt {
            return;
        }
        let effect = match (claim.room, save) {
            (_, None) => {
                claim.answer(&Place::Busy, output);
                claim.wait(now, Retry::Open, settings);
                return;
            }
            (Room::Frozen, Some(Save::Changed)) => {
                claim.answer(&Place::Busy, output);
                claim.end(key, output);
                output.purge(key.clone(), claim.revision);
                self.claims.remove(key);
                return;
            }
            (Room::Frozen, Some(Save::Intact)) => Effect::Thaw { key: key.clone() },
            _ => Effect::Serve { key: key.clone() },
        };
        claim.room = Room::Served;
        claim.stage = Stage::Held;
        output.effect(effect);
        claim.answer(&Place::Here, output);
    }

    /// Claims a key again: another owner has opened the save of its room.
    pub(crate) fn fenced(&mut self, key: &Key, output: &mut Output) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        if claim.stage == Stage::Held {
            claim.freeze(key, output);
            claim.read(key, output);
        }
    }

    /// Removes the claim of a room that ends.
    pub(crate) fn release(&mut self, key: &Key, output: &mut Output) -> bool {
        let revision = match self.claims.get(key) {
            Some(claim) if claim.stage == Stage::Held => claim.revision,
            _ => return false,
        };
        output.purge(key.clone(), revision);
        self.claims.remove(key);
        true
    }

    /// Freezes all rooms: the incarnation is dead.
    pub(crate) fn lost(&mut self, output: &mut Output) {
        for (key, claim) in &mut self.claims {
            claim.answer(&Place::Busy, output);
            claim.freeze(key, output);
            claim.stage = Stage::Leaseless;
            (claim.tag, claim.proof, claim.unproven_since) = (0, None, None);
        }
        self.claims.retain(|_, claim| claim.room == Room::Frozen);
    }

    /// Claims the keys of frozen rooms again, by the new incarnation.
    pub(crate) fn taken(&mut self, output: &mut Output) {
        let [high, low] = [self.random.next(), self.random.next()];
        self.nonce = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        for (key, claim) in &mut self.claims {
            if claim.stage == Stage::Leaseless {
                claim.read(key, output);
            }
        }
    }

    /// Reads what was written before this renewal was sent, once. An engine that loses its last
    /// writes later loses this renewal with them, which the next one shows.
    pub(crate) fn renewed(&mut self, sent_at: Duration, output: &mut Output) {
        for (key, claim) in &mut self.claims {
            let is_older = claim.unproven_since.is_some_and(|since| since <= sent_at);
            let is_written = matches!(claim.stage, Stage::Opening | Stage::Held);
            if is_older && is_written && claim.proof.is_none() {
                claim.proof = Some(output.read(Asked::Claim(key.clone()), key.clone()));
            }
        }
    }

    /// Tries again what has waited long enough.
    pub(crate) fn turn(&mut self, now: Duration, output: &mut Output) {
        for (key, claim) in &mut self.claims {
            match claim.stage {
                Stage::Waiting { until, then } if until <= now => match then {
                    Retry::Read => claim.read(key, output),
                    Retry::Open => claim.open(key, output),
                },
                _ => {}
            }
        }
    }
}

/// Returns of these functions say whether the claim is kept.
impl Claim {
    fn answered(
        &mut self,
        key: &Key,
        result: Result<Answer, EngineError>,
        nonce: Nonce,
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) -> bool {
        match (self.stage, result) {
            (Stage::Reading, Ok(Answer::Read(found))) => {
                self.found(key, &found, nonce, observer, context)
            }
            (Stage::Judging { slot, incarnation, revision }, Ok(Answer::Read(found))) => {
                match judge(slot, incarnation, revision, &found, observer, context) {
                    Owner::Dead => self.write(key, revision, nonce, context),
                    Owner::Alive(address) => {
                        self.answer(&Place::At(address), context.output);
                        false
                    }
                    Owner::Unclear => self.fail(context),
                }
            }
            (Stage::Writing, Ok(Answer::Written(revision))) => {
                self.hold(key, revision, nonce, context);
                true
            }
            // Read again: it may be another node's now, or be written after all.
            (Stage::Writing, Err(error)) if self.conflicts < CONFLICTS_MAX => {
                self.conflicts += u8::from(error == EngineError::Conflict);
                self.read(key, context.output);
                true
            }
            _ => self.fail(context),
        }
    }

    /// Decides by the claim that the engine has.
    fn found(
        &mut self,
        key: &Key,
        found: &Record,
        nonce: Nonce,
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(value) = &found.value else {
            return self.write(key, found.revision, nonce, context);
        };
        let claim = match ClaimRecord::decode(value) {
            Ok(claim) => claim,
            Err(error) => {
                let notice = Notice::Unreadable { key: key.clone(), error: error.to_string() };
                context.output.effect(Effect::Noted(notice));
                return self.fail(context);
            }
        };
        if claim.nonce == nonce || self.held == Some(claim.nonce) {
            return self.write(key, found.revision, nonce, context);
        }
        if self.room == Room::Frozen {
            self.end(key, context.output);
            if self.waiting.is_empty() {
                return false;
            }
        }
        if claim.slot == context.lease.slot() {
            // A claim for this incarnation that it has not written is left alone.
            let is_replaced = Some(claim.incarnation) != context.lease.incarnation()
                && found.revision < context.lease.revision();
            return match is_replaced {
                true => self.write(key, found.revision, nonce, context),
                false => self.fail(context),
            };
        }
        let (now, settings) = (context.now, context.settings);
        if let Some(address) = observer.address(now, claim.slot, claim.incarnation, settings) {
            let place = Place::At(address.to_owned());
            self.answer(&place, context.output);
            return false;
        }
        let ClaimRecord { slot, incarnation, .. } = claim;
        self.tag = context.output.read(Asked::Claim(key.clone()), key_of(slot));
        self.stage = Stage::Judging { slot, incarnation, revision: found.revision };
        true
    }

    /// Compares the engine's record with a claim that has been written.
    fn proved(&mut self, key: &Key, found: &Record, context: &mut Context<'_>) {
        if !matches!(self.stage, Stage::Opening | Stage::Held) {
            return;
        }
        let claim = found.value.as_deref().and_then(|value| ClaimRecord::decode(value).ok());
        // Revisions are used again after a loss, so the nonce counts, too.
        let is_own = claim.is_some_and(|claim| self.held == Some(claim.nonce));
        if is_own && found.revision == self.revision {
            self.unproven_since = None;
        } else {
            self.freeze(key, context.output);
            self.read(key, context.output);
        }
    }

    fn read(&mut self, key: &Key, output: &mut Output) {
        self.tag = output.read(Asked::Claim(key.clone()), key.clone());
        self.stage = Stage::Reading;
    }

    fn write(
        &mut self,
        key: &Key,
        expect: Revision,
        nonce: Nonce,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(incarnation) = context.lease.incarnation() else { return self.fail(context) };
        let value = ClaimRecord { slot: context.lease.slot(), incarnation, nonce }.encode();
        self.tag = context.output.write(Asked::Claim(key.clone()), key.clone(), value, expect);
        self.stage = Stage::Writing;
        true
    }

    fn hold(&mut self, key: &Key, revision: Revision, nonce: Nonce, context: &mut Context<'_>) {
        self.held = Some(nonce);
        self.revision = revision;
        self.conflicts = 0;
        self.proof = None;
        self.unproven_since = Some(context.now);
        self.open(key, context.output);
    }

    /// Opens the save after the claim: what an owner before this one has saved by then is in it,
    /// and what that one saves later is refused.
    fn open(&mut self, key: &Key, output: &mut Output) {
        self.stage = Stage::Opening;
        self.attempt = output.open(key.clone());
    }

    fn freeze(&mut self, key: &Key, output: &mut Output) {
        if self.room == Room::Served {
            self.room = Room::Frozen;
            output.effect(Effect::Freeze { key: key.clone() });
        }
    }

    fn end(&mut self, key: &Key, output: &mut Output) {
        self.room = Room::None;
        output.effect(Effect::End { key: key.clone() });
    }

    fn answer(&mut self, place: &Place, output: &mut Output) {
        for request in self.waiting.drain(..) {
            output.effect(Effect::Found { request, place: place.clone() });
        }
    }

    /// Gives up for now. A room in memory is not forgotten.
    fn fail(&mut self, context: &mut Context<'_>) -> bool {
        self.answer(&Place::Busy, context.output);
        self.conflicts = 0;
        let is_kept = self.room != Room::None;
        if is_kept {
            self.wait(context.now, Retry::Read, context.settings);
        }
        is_kept
    }

    fn wait(&mut self, now: Duration, then: Retry, settings: &Settings) {
        self.stage = Stage::Waiting { until: now + settings.renew / 2, then };
    }
}
