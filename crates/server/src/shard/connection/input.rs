//! Input of a connection that is kept for later.

use crate::shard::connection::{Connection, Links, Phase};
use crate::shard::env::Stopwatch;
use crate::shard::keys::ConnectionKey;

impl Links {
    /// Keeps the rest of the input.
    pub(in crate::shard) fn keep(&mut self, key: ConnectionKey, rest: Vec<u8>) {
        if let Some(connection) = self.slab.get_mut(key)
            && connection.phase == Phase::Open
        {
            connection.partial = rest.into();
        }
    }

    /// Stops reading from a client that does not read what it is sent.
    #[inline]
    pub(in crate::shard) fn pause_if_behind(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.slab.get_mut(key) {
            connection.pause.outbox |= connection.unsent() > self.high_bytes;
        }
    }

    /// Returns the connection after a part of its input was handled. It is not read on if its
    /// client does not read what it is sent, or if it was served for long enough and others come
    /// first.
    #[inline(always)]
    pub(in crate::shard) fn handled_message(
        &mut self,
        stopwatch: &Stopwatch,
        key: ConnectionKey,
    ) -> Option<&mut Connection> {
        let is_over = self.visit.is_over(|| stopwatch.read());
        let connection = self.slab.get_mut(key)?;
        connection.pause.outbox |= connection.unsent() > self.high_bytes;
        connection.pause.turn |= is_over;
        Some(connection)
    }

    /// Lets others come first, if this connection was served for long enough.
    #[inline]
    pub(in crate::shard) fn end_turn_if_over(&mut self, stopwatch: &Stopwatch, key: ConnectionKey) {
        if self.visit.is_over(|| stopwatch.read())
            && let Some(connection) = self.slab.get_mut(key)
        {
            connection.pause.turn = true;
        }
    }
}
