//! What was last synced of a list: its elements, and the latest changes of its shape.

use std::collections::VecDeque;

use super::align::Run;
use crate::lens::{Lens, Stamps};

/// The shadow of a list.
#[derive(Debug)]
pub struct ListShadow<S> {
    pub(super) token: u64,
    pub(super) stamps: Stamps,
    pub(super) elements: Vec<Element<S>>,
    /// Changes of shape, oldest first.
    log: VecDeque<(u64, Op)>,
    /// The log holds all changes of shape after this version.
    log_since: u64,
}

#[derive(Debug)]
pub(super) struct Element<S> {
    pub(super) shadow: S,
    /// When it came.
    pub(super) defined: u64,
    pub(super) stamps: Stamps,
}

/// A change of shape at an index of the list as it is when the changes before it were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Remove { index: u32, count: u32 },
    Insert { index: u32, count: u32 },
}

/// The most changes of shape in one patch; past it the list is sent whole.
pub(super) const LIST_OPS_MAX: usize = 1_024;

impl Op {
    fn inserted(self) -> usize {
        match self {
            Self::Remove { .. } => 0,
            Self::Insert { count, .. } => count as usize,
        }
    }

    fn count(self) -> usize {
        match self {
            Self::Remove { count, .. } | Self::Insert { count, .. } => count as usize,
        }
    }
}

/// How a copy gets from a version to now.
pub(super) enum Way<'a> {
    /// Through these changes of shape, then changes of elements.
    Ops(&'a VecDeque<(u64, Op)>, usize),
    /// The list is sent whole.
    Whole,
}

impl<S> ListShadow<S> {
    pub(super) fn new(token: u64, elements: Vec<Element<S>>, stamps: Stamps, now: u64) -> Self {
        Self { token, stamps, elements, log: VecDeque::new(), log_since: now }
    }

    /// Notes what a sync did to the shape.
    pub(super) fn log(&mut self, runs: &[Run], now: u64) {
        let mut index = 0;
        for run in runs {
            match *run {
                Run::Pair(count) => index += count as u32,
                Run::Remove(count) => self.log.push_back((now, Op::Remove { index, count: count as u32 })),
                Run::Insert(count) => {
                    let count = count as u32;
                    self.log.push_back((now, Op::Insert { index, count }));
                    index += count;
                }
            }
        }
        // A log longer than the list costs more than the list.
        let most = 16 + self.elements.len();
        while self.log.len() > most
            && let Some((version, _)) = self.log.pop_front()
        {
            self.log_since = version;
        }
    }

    /// The cheaper way to now.
    pub(super) fn way(&self, since: u64) -> Way<'_> {
        let first = self.log.partition_point(|(version, _)| *version <= since);
        let ops = self.log.len() - first;
        let inserted = self.log.range(first..).map(|(_, op)| op.inserted()).fold(0, usize::saturating_add);
        let long = ops > self.ops_max() || inserted > self.elements.len();
        if since < self.log_since || long { Way::Whole } else { Way::Ops(&self.log, first) }
    }

    /// As [`way`](Self::way), for trees. There an operation moves one element, and an insertion carries it as it is now: that is only
    /// possible if all changes of shape are of one sync, whose indices, front to back, are those of the finished list.
    pub(super) fn way_in_tree(&self, since: u64) -> Way<'_> {
        let Way::Ops(log, first) = self.way(since) else { return Way::Whole };
        let ops = log.range(first..).map(|(_, op)| op.count()).fold(0, usize::saturating_add);
        let one_sync = first == log.len() || log[first].0 == log[log.len() - 1].0;
        if one_sync && ops <= self.ops_max() { Way::Ops(log, first) } else { Way::Whole }
    }

    /// More changes of shape than this cost more than the list does.
    fn ops_max(&self) -> usize {
        (1 + self.elements.len() / 2).min(LIST_OPS_MAX)
    }

    /// What a copy that goes this way knows of the elements.
    pub(super) fn lens(way: &Way<'_>, lens: Lens) -> Lens {
        match way {
            Way::Ops(..) => lens,
            Way::Whole => Lens { since: 0, ..lens },
        }
    }
}
