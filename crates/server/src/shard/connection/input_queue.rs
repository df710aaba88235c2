//! Which connection is served next.
//!
//! As long as there is time for all, that is the one that came first, and those that took much time
//! lately come last. What a turn leaves over waits in [lines](crate::shard::lines), by address, and
//! so does what comes until they are empty.

use std::collections::VecDeque;
use std::time::Duration;

use crate::shard::Shard;
use crate::shard::connection::Links;
use crate::shard::env::nanoseconds;
use crate::shard::keys::ConnectionKey;
use crate::shard::lines::{End, Host, Lines};
use crate::shard::pacing::Part;

/// Connections that have input.
#[derive(Default)]
pub(in crate::shard) struct InputQueue {
    calm: VecDeque<ConnectionKey>,
    /// Connections that took much time lately.
    busy: VecDeque<ConnectionKey>,
    pub(in crate::shard) lines: Lines<ConnectionKey>,
    /// How many are served in this turn at most: those that waited when it began to read.
    left: [usize; 3],
}

impl Links {
    /// A connection waits to be served. It must not wait already.
    pub(crate) fn queue_input(&mut self, key: ConnectionKey, now: Duration) {
        let is_busy = self.takes_much(key, now);
        if let Some(connection) = self.slab.get_mut(key) {
            connection.unread = true;
        }
        if !self.input.lines.is_empty() {
            self.line_up_input(key, is_busy);
        } else if is_busy {
            self.input.busy.push_back(key);
        } else {
            self.input.calm.push_back(key);
        }
    }

    fn line_up_input(&mut self, key: ConnectionKey, is_busy: bool) {
        let Some(connection) = self.get(key) else { return };
        let host = Host(connection.tally.address().clone());
        let end = if is_busy { End::Back } else { End::Front };
        self.input.lines.push(host, end, key);
    }

    /// Whether connections wait to be served.
    pub(crate) fn has_input(&self) -> bool {
        let InputQueue { calm, busy, lines, .. } = &self.input;
        !(calm.is_empty() && busy.is_empty() && lines.is_empty())
    }

    /// Returns whether a connection took much of the shard's time lately, so that others come
    /// first.
    pub(crate) fn takes_much(&self, key: ConnectionKey, now: Duration) -> bool {
        self.get(key).is_some_and(|connection| connection.taken.is_much(now))
    }
}

impl Shard {
    /// Begins to serve those that wait, each once.
    pub(crate) fn begin_input(&mut self) {
        self.links.input_began = self.env.stopwatch.read();
        self.pacing.begin_part(&self.env, Part::Input);
        let InputQueue { calm, busy, lines, left } = &mut self.links.input;
        *left = [lines.len(), calm.len(), busy.len()];
    }

    /// The next connection to serve in this turn.
    pub(crate) fn next_input(&mut self) -> Option<ConnectionKey> {
        let key = self.take_input()?;
        if let Some(connection) = self.links.get_mut(key) {
            connection.unread = false;
        }
        Some(key)
    }

    /// Takes the next connection out of the queue, if there is time for it.
    fn take_input(&mut self) -> Option<ConnectionKey> {
        if self.links.input.left == [0; 3] || self.is_part_over() {
            return None;
        }
        let InputQueue { calm, busy, lines, left } = &mut self.links.input;
        for (number, left) in left.iter_mut().enumerate() {
            if *left == 0 {
                continue;
            }
            *left -= 1;
            return match number {
                0 => lines.next(),
                1 => calm.pop_front(),
                _ => busy.pop_front(),
            };
        }
        None
    }

    /// No more is served in this turn. What is left waits by address.
    pub(crate) fn end_input(&mut self) {
        self.pacing.end_part(&self.env);
        let took = self.env.stopwatch.read().saturating_sub(self.links.input_began);
        self.env.counters.input_ns += nanoseconds(took);
        let [_, calm, busy] = std::mem::take(&mut self.links.input.left);
        if calm + busy == 0 {
            return;
        }
        for key in std::mem::take(&mut self.links.input.calm) {
            self.links.line_up_input(key, false);
        }
        for key in std::mem::take(&mut self.links.input.busy) {
            self.links.line_up_input(key, true);
        }
    }
}
