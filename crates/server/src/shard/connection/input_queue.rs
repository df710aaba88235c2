//! Which connection is served next.
//!
//! As long as there is time for all, that is the one that came first, and those that took much time
//! lately come last. What a turn leaves over waits in [lines](crate::shard::lines), by address, and
//! so does what comes until they are empty.

use std::collections::VecDeque;
use std::time::Duration;

use crate::shard::connection::Links;
use crate::shard::keys::ConnectionKey;
use crate::shard::lines::{End, Host, Lines};

/// Connections that have input.
#[derive(Default)]
pub(in crate::shard) struct InputQueue {
    pub(in crate::shard) calm: VecDeque<ConnectionKey>,
    /// Connections that took much time lately.
    pub(in crate::shard) busy: VecDeque<ConnectionKey>,
    pub(in crate::shard) lines: Lines<ConnectionKey>,
    /// How many are served in this turn at most: those that waited when it began to read.
    pub(in crate::shard) left: [usize; 3],
}

impl InputQueue {
    /// Takes out the next connection of those that waited when the turn began to read.
    pub(in crate::shard) fn take(&mut self) -> Option<ConnectionKey> {
        let Self { calm, busy, lines, left } = self;
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

    pub(in crate::shard) fn line_up_input(&mut self, key: ConnectionKey, is_busy: bool) {
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
