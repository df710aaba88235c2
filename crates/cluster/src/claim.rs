//! A claim: the state of one key at a node.

use std::time::Duration;

use crate::context::Context;
use crate::effect::{Effect, Handed, NodeId, Notice, Place};
use crate::engine::{Answer, EngineError, Key, Record, Revision, Tag};
use crate::event::{RequestId, Want};
use crate::lease::key_of;
use crate::moving::Handing;
use crate::observer::Observer;
use crate::output::{Asked, Output};
use crate::owner::{Owner, judge};
use crate::record::{ClaimRecord, Nonce};
use crate::settings::Settings;

/// The most writes of other nodes that a request for a key waits for.
const CONFLICTS_MAX: u8 = 3;

#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) stage: Stage,
    pub(crate) room: Room,
    /// The command under way for the stage.
    pub(crate) tag: Tag,
    /// The nonce that the room in memory was claimed with.
    pub(crate) held: Option<Nonce>,
    /// The revision of the claim, while it is held.
    pub(crate) revision: Revision,
    /// The time at which the claim was known to be written, until a read has shown it after a
    /// renewal that was sent later.
    pub(crate) unproven_since: Option<Duration>,
    pub(crate) proof: Option<Tag>,
    /// The number of the last opening of the save.
    pub(crate) attempt: u64,
    /// Writes that another node's write has forestalled.
    pub(crate) conflicts: u8,
    /// Requests, in order.
    pub(crate) waiting: Vec<(RequestId, Want)>,
    /// The key is a code.
    pub(crate) is_code: bool,
    /// The claim that was written last says so.
    pub(crate) says_code: bool,
    /// The command that writes a held claim again for that.
    pub(crate) mark: Option<Tag>,
    /// The move of the claim to another node.
    pub(crate) handing: Option<Handing>,
    /// The claim was handed over to this node, which writes it again.
    pub(crate) is_received: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reads the claim.
    Reading,
    /// Reads the record of the node that has the claim, as of that revision.
    Judging { judged: NodeId, revision: Revision, is_code: bool },
    /// Writes the claim.
    Writing,
    /// Writes the claim for another node.
    Handing,
    /// The claim is held; the host opens the save.
    Opening,
    /// The claim is held, and the room served.
    Held,
    /// Waits before it tries again.
    Waiting { until: Duration, then: Retry },
    /// Waits for a new incarnation of the node.
    Leaseless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    Read,
    Open,
}

/// The room of a key in the memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    None,
    Served,
    Frozen,
}

impl Claim {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Leaseless,
            room: Room::None,
            tag: 0,
            held: None,
            revision: 0,
            unproven_since: None,
            proof: None,
            attempt: 0,
            conflicts: 0,
            waiting: Vec::new(),
            is_code: false,
            says_code: false,
            mark: None,
            handing: None,
            is_received: false,
        }
    }

    /// Returns whether the claim has a purpose: a room in memory, or a request for one.
    pub(crate) fn is_wanted(&self) -> bool {
        let claims = |(_, want): &(RequestId, Want)| matches!(want, Want::Claim { .. });
        self.room != Room::None || self.is_received || self.waiting.iter().any(claims)
    }
}

/// Returns of these functions say whether the claim is kept.
impl Claim {
    pub(crate) fn answered(
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
            (Stage::Judging { judged, revision, is_code }, Ok(Answer::Read(found))) => {
                match judge(judged, revision, &found, observer, context) {
                    Owner::Dead => self.take(key, revision, nonce, context),
                    Owner::Alive(peer) => {
                        self.answer(&Place::At(peer), is_code, context.output);
                        false
                    }
                    Owner::Unclear => self.fail(context),
                }
            }
            (Stage::Writing, Ok(Answer::Written(revision))) if self.is_wanted() => {
                self.hold(key, revision, nonce, context);
                true
            }
            (Stage::Writing, Ok(Answer::Written(revision))) => {
                self.leave(key, revision, context.output)
            }
            (Stage::Handing, Ok(Answer::Written(_))) => self.is_handed(context.output),
            (Stage::Handing, Err(_)) => {
                self.read(key, context.output);
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
            let handing = self.found_handing(key, None, found.revision, nonce, context);
            if let Some(is_kept) = handing {
                return is_kept;
            }
            return self.take(key, found.revision, nonce, context);
        };
        let claim = match ClaimRecord::decode(value) {
            Ok(claim) => claim,
            Err(error) => {
                let notice = Notice::Unreadable { key: key.clone(), error: error.to_string() };
                context.output.effect(Effect::Noted(notice));
                return self.fail(context);
            }
        };
        let handing = self.found_handing(key, Some(&claim), found.revision, nonce, context);
        if let Some(is_kept) = handing {
            return is_kept;
        }
        if self.receives(&claim, nonce) || claim.nonce == nonce || self.held == Some(claim.nonce) {
            return match self.is_wanted() {
                true => self.write(key, found.revision, nonce, context),
                false => self.leave(key, found.revision, context.output),
            };
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
                true => self.take(key, found.revision, nonce, context),
                false => self.fail(context),
            };
        }
        let (now, settings) = (context.now, context.settings);
        let ClaimRecord { slot, incarnation, is_code, .. } = claim;
        let judged = NodeId { slot, incarnation };
        if let Some(peer) = observer.alive(now, judged, settings) {
            self.answer(&Place::At(peer.clone()), is_code, context.output);
            return false;
        }
        self.tag = context.output.read(Asked::Claim(key.clone()), key_of(slot));
        self.stage = Stage::Judging { judged, revision: found.revision, is_code };
        true
    }

    /// Compares the engine's record with a claim that has been written.
    pub(crate) fn proved(&mut self, key: &Key, found: &Record, context: &mut Context<'_>) {
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

    /// Writes again that the key is a code, or that it is none, if the claim says something else.
    pub(crate) fn mark(&mut self, key: &Key, nonce: Nonce, context: &mut Context<'_>) {
        if self.is_code != self.says_code && self.mark.is_none() {
            self.proof = None;
            self.mark = self.put(key, self.revision, nonce, context);
        }
    }

    pub(crate) fn marked(
        &mut self,
        key: &Key,
        result: Result<Answer, EngineError>,
        nonce: Nonce,
        context: &mut Context<'_>,
    ) {
        self.mark = None;
        if let Ok(Answer::Written(revision)) = result {
            self.written(revision, context);
            self.mark(key, nonce, context);
        } else {
            self.freeze(key, context.output);
            self.read(key, context.output);
        }
    }

    pub(crate) fn read(&mut self, key: &Key, output: &mut Output) {
        self.mark = None;
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
        let Some(tag) = self.put(key, expect, nonce, context) else { return self.fail(context) };
        self.tag = tag;
        self.stage = Stage::Writing;
        true
    }

    /// Writes the claim, unless the node has no incarnation.
    fn put(
        &mut self,
        key: &Key,
        expect: Revision,
        nonce: Nonce,
        context: &mut Context<'_>,
    ) -> Option<Tag> {
        let (slot, incarnation) = (context.lease.slot(), context.lease.incarnation()?);
        self.says_code = self.is_code;
        let room = Default::default();
        let claim = ClaimRecord { slot, incarnation, room, is_code: self.is_code, nonce };
        Some(context.output.write(Asked::Claim(key.clone()), key.clone(), claim.encode(), expect))
    }

    /// Writes the claim if it is wanted. Otherwise the key is free.
    fn take(
        &mut self,
        key: &Key,
        expect: Revision,
        nonce: Nonce,
        context: &mut Context<'_>,
    ) -> bool {
        if self.is_wanted() {
            return self.write(key, expect, nonce, context);
        }
        self.answer(&Place::Free, false, context.output);
        false
    }

    /// Removes a claim of this incarnation that has no purpose.
    fn leave(&mut self, key: &Key, revision: Revision, output: &mut Output) -> bool {
        output.purge(key.clone(), revision);
        self.answer(&Place::Free, false, output);
        false
    }

    fn hold(&mut self, key: &Key, revision: Revision, nonce: Nonce, context: &mut Context<'_>) {
        self.held = Some(nonce);
        self.conflicts = 0;
        self.written(revision, context);
        self.open(key, context.output);
    }

    fn written(&mut self, revision: Revision, context: &Context<'_>) {
        self.revision = revision;
        self.proof = None;
        self.unproven_since = Some(context.now);
    }

    /// Opens the save after the claim: what an owner before this one has saved by then is in it,
    /// and what that one saves later is refused.
    pub(crate) fn open(&mut self, key: &Key, output: &mut Output) {
        self.stage = Stage::Opening;
        self.attempt = output.open(key.clone());
    }

    pub(crate) fn freeze(&mut self, key: &Key, output: &mut Output) {
        if self.room == Room::Served {
            self.room = Room::Frozen;
            output.effect(Effect::Freeze { key: key.clone() });
        }
    }

    pub(crate) fn end(&mut self, key: &Key, output: &mut Output) {
        self.end_handing(Handed::Lost, output);
        self.room = Room::None;
        output.effect(Effect::End { key: key.clone() });
    }

    /// Adds a request. The first one that claims the key says whether it is a code.
    pub(crate) fn waits(&mut self, request: RequestId, want: Want) {
        if let Want::Claim { is_code } = want
            && !self.is_wanted()
        {
            self.is_code = is_code;
        }
        self.waiting.push((request, want));
    }

    /// Tells all requests that the room is here; first of all the one that a new room is for.
    pub(crate) fn answer_here(&mut self, is_new: bool, output: &mut Output) {
        let first = self.first_served().filter(|_| is_new);
        let is_code = self.is_code;
        if let Some((request, _)) = first.map(|index| self.waiting.remove(index)) {
            let place = Place::Here { is_new };
            output.effect(Effect::Found { request, place, is_code });
        }
        self.answer(&Place::Here { is_new: false }, is_code, output);
    }

    pub(crate) fn busy(&mut self, output: &mut Output) {
        self.answer(&Place::Busy, false, output);
    }

    fn answer(&mut self, place: &Place, is_code: bool, output: &mut Output) {
        for (request, _) in self.waiting.drain(..) {
            output.effect(Effect::Found { request, place: place.clone(), is_code });
        }
    }

    /// Gives up for now. A room in memory is not forgotten.
    fn fail(&mut self, context: &mut Context<'_>) -> bool {
        self.busy(context.output);
        self.conflicts = 0;
        let is_kept = self.room != Room::None;
        if is_kept {
            self.wait(context.now, Retry::Read, context.settings);
        }
        is_kept
    }

    pub(crate) fn wait(&mut self, now: Duration, then: Retry, settings: &Settings) {
        self.stage = Stage::Waiting { until: now + settings.renew / 2, then };
    }
}
