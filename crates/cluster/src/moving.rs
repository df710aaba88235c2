//! Moves of claims: the commit of a room's move to another node.
//!
//! ```text
//!  source                               target, which has the nonce of the move by then
//!  held ──▶ writes it for the target    reads ──▶ the nonce of the move ──▶ writes its own ──▶ held
//!    ▲        │ conflict, or unknown      └─────▶ another: not now
//!    │        ▼
//!    └────── reads ──▶ the target's
//! ```
//!
//! Only the claim says which node has the room. Whatever becomes of the source or the target, the
//! other one learns from the claim whether the room goes on there.

use crate::claim::{Claim, Room, Stage};
use crate::claims::Claims;
use crate::context::Context;
use crate::effect::{Handed, NodeId};
use crate::engine::{Key, Revision};
use crate::event::{RequestId, Want};
use crate::output::{Asked, Output};
use crate::record::{ClaimRecord, Nonce};

/// The most times that a claim is written for the target.
const WRITES_MAX: u8 = 3;

/// A move of a claim to another node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handing {
    to: NodeId,
    nonce: Nonce,
    request: RequestId,
    /// The room has not moved before, and has no other claim.
    is_first: bool,
    writes: u8,
}

impl Handing {
    pub(crate) fn new(to: NodeId, nonce: Nonce, request: RequestId, is_first: bool) -> Self {
        Self { to, nonce, request, is_first, writes: 0 }
    }

    fn is_done_by(&self, claim: &ClaimRecord) -> bool {
        let owner = NodeId { slot: claim.slot, incarnation: claim.incarnation };
        // The target may have written its own nonce by now.
        claim.nonce == self.nonce || owner == self.to
    }
}

impl Claims {
    /// Writes the claim of a room for another node. One that has not moved before may have none.
    pub(crate) fn hand_over(&mut self, key: &Key, handing: Handing, context: &mut Context<'_>) {
        if handing.is_first && !self.claims.contains_key(key) {
            let claim = Claim { stage: Stage::Held, room: Room::Served, ..Claim::new() };
            self.claims.insert(key.clone(), claim);
        }
        let claim = self.claims.get_mut(key);
        match claim.filter(|claim| claim.stage == Stage::Held && claim.mark.is_none()) {
            Some(claim) => {
                (claim.handing, claim.proof) = (Some(handing), None);
                claim.hand(key, claim.revision, context);
            }
            None => context.output.handed(handing.request, Handed::No),
        }
    }
}

/// Returns of these functions say whether the claim is kept.
impl Claim {
    /// Writes the claim for the target of its move.
    pub(crate) fn hand(&mut self, key: &Key, expect: Revision, context: &mut Context<'_>) -> bool {
        let Some(handing) = &mut self.handing else { return true };
        handing.writes += 1;
        let NodeId { slot, incarnation } = handing.to;
        let (nonce, is_code, room) = (handing.nonce, self.is_code, Default::default());
        let claim = ClaimRecord { slot, incarnation, room, is_code, nonce };
        let asked = Asked::Claim(key.clone());
        self.tag = context.output.write(asked, key.clone(), claim.encode(), expect);
        self.stage = Stage::Handing;
        true
    }

    /// The claim was written for the target. Those who want it ask again.
    pub(crate) fn is_handed(&mut self, output: &mut Output) -> bool {
        self.busy(output);
        self.end_handing(Handed::Yes, output);
        self.room = Room::None;
        false
    }

    /// Tells the host the outcome of a move, if the claim was to move.
    pub(crate) fn end_handing(&mut self, handed: Handed, output: &mut Output) {
        if let Some(handing) = self.handing.take() {
            output.handed(handing.request, handed);
        }
    }

    /// Goes on with a move by what the engine has: the claim, and its revision. `None` if the claim
    /// does not move any more.
    pub(crate) fn found_handing(
        &mut self,
        key: &Key,
        found: Option<&ClaimRecord>,
        revision: Revision,
        nonce: Nonce,
        context: &mut Context<'_>,
    ) -> Option<bool> {
        let handing = self.handing?;
        match found {
            Some(claim) if handing.is_done_by(claim) => Some(self.is_handed(context.output)),
            Some(claim) if claim.nonce == nonce || self.held == Some(claim.nonce) => {
                // What is still on the way fails by its condition once another write is there.
                let writes_again = handing.writes < WRITES_MAX;
                writes_again.then(|| self.hand(key, revision, context))
            }
            None if handing.is_first && handing.writes < WRITES_MAX => {
                Some(self.hand(key, revision, context))
            }
            None if handing.is_first => None,
            // The target may have had it, and another node may have it now.
            Some(_) | None => {
                self.busy(context.output);
                self.end(key, context.output);
                Some(false)
            }
        }
    }

    /// The place of the request that a new room is for: the one that puts it in, if the room has
    /// moved here, or else the first that claims the key.
    pub(crate) fn first_served(&self) -> Option<usize> {
        let receives = |(_, want): &(RequestId, Want)| matches!(want, Want::Receive { .. });
        let claims = |(_, want): &(RequestId, Want)| *want != Want::Find;
        let first = self.waiting.iter().position(receives);
        first.or_else(|| self.waiting.iter().position(claims))
    }

    /// Returns whether the claim that the engine has was written for this node by a move that a
    /// request knows, or written again since.
    pub(crate) fn receives(&mut self, claim: &ClaimRecord, own: Nonce) -> bool {
        let is_own = claim.nonce == own || self.held == Some(claim.nonce);
        let is_it = |(_, want): &(RequestId, Want)| match want {
            Want::Receive { nonce } => is_own || *nonce == claim.nonce,
            Want::Find | Want::Claim { .. } => false,
        };
        if self.room == Room::None && self.waiting.iter().any(is_it) {
            (self.is_received, self.is_code) = (true, claim.is_code);
            self.held = Some(claim.nonce);
        }
        self.is_received
    }
}
