//! The shadow of a list: its elements, and the latest changes of its shape.

use std::collections::VecDeque;

use super::op::{Op, ops_max};
use crate::lens::{Lens, Stamps};

/// The shadow of a list.
#[derive(Debug)]
pub struct ListShadow<S> {
    pub(super) token: u64,
    pub(super) stamps: Stamps,
    pub(super) elements: Vec<Element<S>>,
    /// Changes of shape, oldest first.
    log: VecDeque<(u64, Op)>,
    /// The size of the log, in indices.
    log_size: usize,
    /// The log holds all changes of shape after this version.
    log_since: u64,
}

#[derive(Debug)]
pub(super) struct Element<S> {
    pub(super) shadow: S,
    /// The version at which it was inserted.
    pub(super) defined: u64,
    pub(super) stamps: Stamps,
}

/// The way to bring a copy from a version to the present.
pub(super) enum Way<'a> {
    /// Through these changes of shape, then changes of elements.
    Ops(&'a VecDeque<(u64, Op)>, usize),
    /// The list is sent whole.
    Whole,
}

impl<S> ListShadow<S> {
    pub(super) fn new(token: u64, elements: Vec<Element<S>>, stamps: Stamps, now: u64) -> Self {
        Self { token, stamps, elements, log: VecDeque::new(), log_size: 0, log_since: now }
    }

    /// Logs the changes of shape of a sync.
    pub(super) fn log(&mut self, ops: Vec<Op>, now: u64) {
        for op in ops {
            self.log_size += size(&op);
            self.log.push_back((now, op));
        }
        // A log longer than the list costs more than the list, except that one order is as long as
        // the list.
        let most = 16 + 2 * self.elements.len();
        while self.log_size > most
            && let Some((version, op)) = self.log.pop_front()
        {
            self.log_size -= size(&op);
            self.log_since = version;
        }
    }

    /// The cheaper way to the present.
    pub(super) fn way(&self, since: u64) -> Way<'_> {
        let first = self.log.partition_point(|(version, _)| *version <= since);
        let ops = self.log.len() - first;
        let inserted =
            self.log.range(first..).map(|(_, op)| op.inserted()).fold(0, usize::saturating_add);
        let long = ops > ops_max(self.elements.len()) || inserted > self.elements.len();
        if since < self.log_since || long { Way::Whole } else { Way::Ops(&self.log, first) }
    }

    /// Returns the [`way`](Self::way) for trees. There, an operation moves one element, and an
    /// insertion has the element's present value. That is only possible if all changes of shape are
    /// of one sync, whose indices, front to back, are those of the final list.
    pub(super) fn way_in_tree(&self, since: u64) -> Way<'_> {
        let Way::Ops(log, first) = self.way(since) else { return Way::Whole };
        let ops =
            log.range(first..).map(|(_, op)| count_in_json(op)).fold(0, usize::saturating_add);
        let one_sync = first == log.len() || log[first].0 == log[log.len() - 1].0;
        if one_sync && ops <= ops_max(self.elements.len()) {
            Way::Ops(log, first)
        } else {
            Way::Whole
        }
    }

    /// The lens on the elements for a copy that is updated this way.
    pub(super) fn lens(way: &Way<'_>, lens: Lens) -> Lens {
        match way {
            Way::Ops(..) => lens,
            Way::Whole => Lens { since: 0, ..lens },
        }
    }
}

/// The memory that a change of shape takes, in indices.
fn size(op: &Op) -> usize {
    match op {
        Op::Order(order) => order.len(),
        Op::Remove { .. } | Op::Insert { .. } | Op::Move { .. } => 1,
    }
}

/// The number of operations that a change of shape takes in JSON.
fn count_in_json(op: &Op) -> usize {
    match op {
        Op::Remove { count, .. } | Op::Insert { count, .. } | Op::Move { count, .. } => {
            *count as usize
        }
        Op::Order(_) => 1,
    }
}
