//! The judgment of who owns a key: the node that a claim names may be dead.

use crate::context::Context;
use crate::effect::{Effect, NodeId, Notice, Peer};
use crate::engine::{Record, Revision};
use crate::lease::key_of;
use crate::observer::Observer;
use crate::record::{NodeRecord, NodeState};

/// The node that a claim names.
pub(crate) enum Owner {
    Alive(Peer),
    Dead,
    Unclear,
}

/// Judges by the record of a slot whether the incarnation is dead that wrote a claim, of that
/// revision.
///
/// All writes have one sequence. So a record that was written after the claim, and names another
/// incarnation, shows that the one of the claim has lost the slot. An earlier record shows nothing:
/// the claim may have been under way for long, or the engine may have lost writes.
pub(crate) fn judge(
    claimed: NodeId,
    revision: Revision,
    found: &Record,
    observer: &mut Observer,
    context: &mut Context<'_>,
) -> Owner {
    let NodeId { slot, incarnation } = claimed;
    let Context { now, output, .. } = context;
    let record = match found.value.as_deref().map(NodeRecord::decode).transpose() {
        Ok(record) => record,
        Err(error) => {
            let notice = Notice::Unreadable { key: key_of(slot), error: error.to_string() };
            output.effect(Effect::Noted(notice));
            return Owner::Unclear;
        }
    };
    observer.learn(*now, slot, found.revision, record.as_ref());
    match record {
        Some(record) if record.incarnation == incarnation => match record.state {
            NodeState::Serving => observer.peer(slot).cloned().map_or(Owner::Unclear, Owner::Alive),
            NodeState::Dead => Owner::Dead,
        },
        Some(_) if found.revision > revision => Owner::Dead,
        _ => {
            observer.doubt(*now, slot);
            Owner::Unclear
        }
    }
}
