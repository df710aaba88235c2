//! The connection that is served next.
//!
//! As long as there is time for all, that is the one that came first, and those that took much time
//! lately come last. What a turn leaves over waits in the [fair queue](crate::shard::work), by
//! address, and so does what comes until that is empty.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::shard::connection::Links;
use crate::shard::keys::ConnectionKey;
use crate::shard::work::{Host, Line, Work};

/// Connections that have input, and came while nothing waited.
#[derive(Default)]
pub(in crate::shard) struct InputQueue {
    calm: VecDeque<ConnectionKey>,
    /// Connections that took much time lately.
    busy: VecDeque<ConnectionKey>,
    /// The number left to work off in this turn, by queue: at most what waited when it began to.
    left: [usize; 3],
}

impl Links {
    /// Begins to work off what waits now.
    pub(in crate::shard) fn begin_work(&mut self, now: Duration) {
        self.work.at(now);
        self.input.left = [self.work.len(), self.input.calm.len(), self.input.busy.len()];
    }

    /// Takes out the next of what waited when the turn began to work it off. If snapshots are held,
    /// it is the next of the rest.
    pub(in crate::shard) fn next_work(&mut self, holds_snapshots: bool) -> Option<Work> {
        let InputQueue { calm, busy, left } = &mut self.input;
        while let Some(number) = left.iter().position(|left| *left > 0) {
            left[number] -= 1;
            let next = match number {
                0 => self.work.next_if(holds_snapshots, |_| true),
                1 => calm.pop_front().map(Work::Input),
                _ => busy.pop_front().map(Work::Input),
            };
            if next.is_some() {
                return next;
            }
            // The rest is held.
            left[number] = 0;
        }
        None
    }

    /// Takes out the next piece of work, unless it is input. If snapshots are held, it is the next
    /// of the rest.
    pub(in crate::shard) fn next_work_but_input(&mut self, holds_snapshots: bool) -> Option<Work> {
        self.work.next_if(holds_snapshots, |work| !matches!(work, Work::Input(_)))
    }

    /// No more input is read in this turn. What is left waits by address.
    pub(in crate::shard) fn end_input(&mut self) {
        let [_, calm, busy] = std::mem::take(&mut self.input.left);
        if calm + busy == 0 {
            return;
        }
        for key in std::mem::take(&mut self.input.calm) {
            self.line_up_input(key, false);
        }
        for key in std::mem::take(&mut self.input.busy) {
            self.line_up_input(key, true);
        }
    }

    /// A connection waits to be served. It must not wait already.
    pub(crate) fn queue_input(&mut self, key: ConnectionKey, now: Duration) {
        let is_busy = self.takes_much(key, now);
        if let Some(connection) = self.slab.get_mut(key) {
            connection.unread = true;
        }
        if !self.work.is_empty() {
            self.line_up_input(key, is_busy);
        } else if is_busy {
            self.input.busy.push_back(key);
        } else {
            self.input.calm.push_back(key);
        }
    }

    fn line_up_input(&mut self, key: ConnectionKey, is_busy: bool) {
        let is_hello = self.get(key).is_some_and(|connection| !connection.has_session);
        // Input of an address keeps its order.
        let is_first = || self.host(key).is_some_and(|host| !self.work.waits(&host));
        let line = match is_busy {
            true => Line::BusyInput,
            false if is_hello && !self.is_served(key) && is_first() => Line::Hellos,
            false => Line::Input,
        };
        self.line_up(key, line, Work::Input(key));
    }

    /// Puts work for a connection into a line of its address.
    pub(in crate::shard) fn line_up(&mut self, key: ConnectionKey, line: Line, work: Work) {
        if let Some(host) = self.host(key) {
            self.work.push(&host, line as usize, work);
        }
    }

    /// The address of a connection.
    pub(in crate::shard) fn host(&self, key: ConnectionKey) -> Option<Host> {
        self.get(key).map(|connection| Host(Arc::clone(connection.tally.address())))
    }

    /// Returns whether anything waits to be worked off.
    pub(crate) fn has_work(&self) -> bool {
        let InputQueue { calm, busy, .. } = &self.input;
        !(calm.is_empty() && busy.is_empty() && self.work.is_empty())
    }

    /// Returns whether a connection took much of the shard's time lately, so that others come
    /// first.
    pub(crate) fn takes_much(&self, key: ConnectionKey, now: Duration) -> bool {
        self.get(key).is_some_and(|connection| connection.taken.is_much(now))
    }
}
