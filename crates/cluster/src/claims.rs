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
use crate::effect::{Effect, Handed, Place};
use crate::engine::{Answer, EngineError, Key, Tag};
use crate::event::{RequestId, Save, Want};
use crate::observer::Observer;
use crate::output::{Asked, Output};
use crate::random::Random;
use crate::record::Nonce;

/// The most requests that wait for one key.
const WAITING_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) claims: BTreeMap<Key, Claim>,
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
    pub(crate) fn wanted(&mut self, key: Key, request: RequestId, want: Want, output: &mut Output) {
        let mut is_new = false;
        let claim = self.claims.entry(key.clone()).or_insert_with(|| {
            is_new = true;
            Claim::new()
        });
        match claim.stage {
            Stage::Held => {
                let (place, is_code) = (Place::Here { is_new: false }, claim.is_code);
                output.effect(Effect::Found { request, place, is_code });
            }
            Stage::Reading | Stage::Judging { .. } | Stage::Writing | Stage::Opening
                if claim.waiting.len() < WAITING_MAX =>
            {
                claim.waits(request, want);
            }
            _ if is_new => {
                claim.waits(request, want);
                claim.read(&key, output);
            }
            _ => output.busy(request),
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
        } else if claim.mark == Some(tag) {
            claim.marked(key, result, self.nonce, context);
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
        key: &Key,
        attempt: u64,
        save: Option<Save>,
        context: &mut Context<'_>,
    ) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        if claim.stage != Stage::Opening || claim.attempt != attempt {
            return;
        }
        let is_new = claim.room == Room::None;
        let effect = match (claim.room, save) {
            (Room::Frozen, None) => {
                claim.busy(context.output);
                claim.wait(context.now, Retry::Open, context.settings);
                return;
            }
            (_, None) => return self.released(key, context.output),
            (Room::Frozen, Some(Save::Changed)) => {
                claim.end(key, context.output);
                return self.released(key, context.output);
            }
            (Room::Frozen, Some(Save::Intact)) => Effect::Thaw { key: key.clone() },
            _ => Effect::Serve { key: key.clone() },
        };
        claim.room = Room::Served;
        claim.stage = Stage::Held;
        claim.is_received = false;
        context.output.effect(effect);
        claim.end_handing(Handed::No, context.output);
        claim.answer_here(is_new, context.output);
        claim.mark(key, self.nonce, context);
    }

    /// Claims a key again: another owner has opened the save of its room.
    pub(crate) fn fenced(&mut self, key: &Key, output: &mut Output) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        if claim.stage == Stage::Held {
            claim.freeze(key, output);
            claim.read(key, output);
        }
    }

    /// Writes into a held claim that its key is a code.
    pub(crate) fn is_code(&mut self, key: &Key, context: &mut Context<'_>) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        claim.is_code = true;
        if claim.stage == Stage::Held {
            claim.mark(key, self.nonce, context);
        }
    }

    /// Removes the claim of a room that is gone. A write that is under way is removed when it is
    /// answered, unless the key is wanted again by then.
    pub(crate) fn released(&mut self, key: &Key, output: &mut Output) {
        let Some(claim) = self.claims.get_mut(key) else { return };
        claim.busy(output);
        claim.end_handing(Handed::Lost, output);
        claim.room = Room::None;
        if let Some(tag) = claim.mark.take() {
            (claim.stage, claim.tag) = (Stage::Writing, tag);
        }
        if claim.stage == Stage::Writing {
            claim.proof = None;
            return;
        }
        if claim.revision > 0 {
            output.purge(key.clone(), claim.revision);
        }
        self.claims.remove(key);
    }

    /// Freezes all rooms: the incarnation is dead.
    pub(crate) fn lost(&mut self, output: &mut Output) {
        for (key, claim) in &mut self.claims {
            claim.busy(output);
            claim.freeze(key, output);
            claim.stage = Stage::Leaseless;
            (claim.tag, claim.proof, claim.mark) = (0, None, None);
            (claim.revision, claim.unproven_since) = (0, None);
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
            if is_older && is_written && claim.proof.is_none() && claim.mark.is_none() {
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
