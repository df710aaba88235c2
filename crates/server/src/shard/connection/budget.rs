//! The memory that clients make the node hold: each connection counts its buffers, and its address
//! and the node add them up. Over budget, the connections that hold the most are closed.

use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, Links, narrowed};
use crate::shard::keys::ConnectionKey;

/// Memory is counted in pieces of this size, rounded down. Most connections hold less than one most
/// of the time, and then nothing has to be counted.
const PIECE_BYTES: usize = 1024;

/// A client with more than this unsent would not read why its connection is closed.
pub(in crate::shard) const UNSENT_READ_MAX: usize = 64 << 10;

impl Connection {
    /// Returns the memory that its buffers take, in whole pieces.
    fn holds(&self) -> usize {
        let input = match &self.input {
            Input::WebSocket(Some(decoder)) => decoder.buffered_bytes(),
            _ => 0,
        };
        // What is being closed is given back soon: others need not go for it.
        let layer = if self.is_closing() { 0 } else { self.layer_bytes as usize };
        let buffers = self.partial.capacity() + self.outbox_capacity();
        let bytes = buffers + self.logged as usize + input + layer + self.waiting_bytes as usize;
        bytes / PIECE_BYTES * PIECE_BYTES
    }

    /// Counts what it holds now. Returns whether that is more than before, and its address or all
    /// hold too much.
    #[inline]
    pub(in crate::shard) fn count_bytes(&mut self) -> bool {
        let bytes = self.holds();
        let before = self.tally.bytes();
        if bytes == before {
            return false;
        }
        self.tally.holds(bytes);
        let address = self.tally.address();
        bytes > before && (address.is_over() || address.is_node_over())
    }
}

impl Links {
    /// The layer between a connection and its socket holds this much memory now.
    #[inline]
    pub(crate) fn layer_holds(&mut self, key: ConnectionKey, bytes: usize) {
        if let Some(connection) = self.slab.get_mut(key)
            && !connection.is_away()
            && connection.layer_bytes as usize != bytes
        {
            connection.layer_bytes = narrowed(bytes);
            self.count_bytes(key);
        }
    }

    /// Counts what a connection holds now.
    #[inline]
    pub(in crate::shard) fn count_bytes(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.slab.get_mut(key) {
            self.is_over_budget |= connection.count_bytes();
        }
    }
}
