//! Links: one between each two nodes that have something to tell each other, with numbered records
//! in order, or a reset that both ends notice.
//!
//! The messages of the engine may get lost, and wait in queues for as long as a process stands
//! still. A link shows that: the frames of both ends name the records that they have, so a gap is
//! noticed with the next frame, which comes within about a second. A node that stood still resets
//! its links, lest it carries out requests that nobody waits for any more.

mod end;
mod frame;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::Context;
use crate::effect::{AskError, Effect, NodeId};
use crate::lease::Lease;
use crate::link::end::{End, Shared};
use crate::link::frame::{BODY_MAX, Head, Item};
use crate::observer::Observer;
use crate::output::Output;
use crate::record::Slot;
use crate::settings::Settings;

#[derive(Debug, Default)]
pub(crate) struct Links {
    ends: BTreeMap<Slot, End>,
    shared: Shared,
}

impl Links {
    /// Sends a request to the node in a slot.
    pub(crate) fn ask(
        &mut self,
        to: Slot,
        ask: u64,
        within: Duration,
        body: &[u8],
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) {
        if body.len() > BODY_MAX {
            let result = Err(AskError::TooLarge);
            context.output.effect(Effect::Answered { ask, result });
            return;
        }
        let deadline = context.now.saturating_add(within);
        let Some((end, shared)) = self.end(to, observer, context) else {
            let result = Err(AskError::NobodyThere);
            context.output.effect(Effect::Answered { ask, result });
            return;
        };
        let item = |ask| Item::Ask { ask, within, body }.encode();
        end.ask(deadline, ask, item, shared, context.output);
        end.bound(context.settings.link_bytes_max, shared, context.output);
    }

    /// Sends a message to the node in a slot.
    pub(crate) fn tell(
        &mut self,
        to: Slot,
        body: &[u8],
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) {
        if let Some((end, shared)) = self.end(to, observer, context) {
            end.tell(body, context.output);
            end.bound(context.settings.link_bytes_max, shared, context.output);
        }
    }

    /// Answers a request of the node in a slot, unless the link was reset since.
    pub(crate) fn answer(
        &mut self,
        to: Slot,
        number: u64,
        body: &[u8],
        settings: &Settings,
        output: &mut Output,
    ) {
        if let Some(end) = self.ends.get_mut(&to) {
            end.answer(number, body);
            end.bound(settings.link_bytes_max, &mut self.shared, output);
        }
    }

    /// Takes a frame. One that can't be read is as good as lost.
    pub(crate) fn delivered(
        &mut self,
        bytes: &[u8],
        observer: &mut Observer,
        context: &mut Context<'_>,
    ) {
        let Ok((head, records)) = Head::decode(bytes) else { return };
        let now = context.now;
        if context.lease.incarnation() != Some(head.to) {
            return;
        }
        let NodeId { slot, incarnation } = head.from;
        if self.ends.get(&slot).is_none_or(|end| end.with() != head.from) {
            observer.heard(now, slot, incarnation, head.revision, context.output);
            if observer.incarnation(slot) != Some(incarnation) {
                return;
            }
        }
        if let Some((end, shared)) = self.end(slot, observer, context) {
            end.take(now, &head, records, shared, context.output);
        }
    }

    /// Resets all links.
    pub(crate) fn reset(&mut self, output: &mut Output) {
        for end in self.ends.values_mut() {
            end.reset(AskError::LinkReset, &mut self.shared, output);
        }
    }

    /// Closes all links: this incarnation is dead.
    pub(crate) fn lost(&mut self, output: &mut Output) {
        self.reset(output);
        self.ends.clear();
    }

    /// Closes links to nodes that are gone, and ends requests whose time is over. Returns when to
    /// come again.
    pub(crate) fn turn(
        &mut self,
        now: Duration,
        observer: &Observer,
        output: &mut Output,
    ) -> Option<Duration> {
        let Self { ends, shared } = self;
        ends.retain(|&slot, end| {
            let is_there = observer.incarnation(slot) == Some(end.with().incarnation);
            if !is_there {
                end.reset(AskError::NobodyThere, shared, output);
            }
            is_there
        });
        while let Some(&(deadline, slot, number)) = shared.deadlines.first() {
            if deadline > now {
                break;
            }
            shared.deadlines.pop_first();
            if let Some(end) = ends.get_mut(&slot) {
                end.finish(number, Err(AskError::Timeout), shared, output);
            }
        }
        let deadline = shared.deadlines.first().map(|&(deadline, ..)| deadline);
        ends.values_mut().filter_map(|end| end.turn(now)).chain(deadline).min()
    }

    /// Sends what has come up since the last time: one frame to each node, unless it is too long.
    pub(crate) fn flush(
        &mut self,
        now: Duration,
        lease: &Lease,
        settings: &Settings,
        output: &mut Output,
    ) {
        let Some(incarnation) = lease.incarnation() else { return };
        let from = NodeId { slot: lease.slot(), incarnation };
        for end in self.ends.values_mut() {
            end.flush(now, from, lease.revision(), settings.link_bytes_max, output);
        }
    }

    /// The end of the link with the node in a slot, a new one if there is none.
    fn end(
        &mut self,
        slot: Slot,
        observer: &Observer,
        context: &mut Context<'_>,
    ) -> Option<(&mut End, &mut Shared)> {
        let Self { ends, shared } = self;
        let own = context.lease.incarnation()?;
        let incarnation = observer.incarnation(slot).filter(|&incarnation| incarnation != own)?;
        let with = NodeId { slot, incarnation };
        if let Some(end) = ends.get_mut(&slot)
            && end.with() != with
        {
            end.reset(AskError::NobodyThere, shared, context.output);
            ends.remove(&slot);
        }
        let end = ends.entry(slot).or_insert_with(|| End::new(with, shared));
        Some((end, shared))
    }
}
