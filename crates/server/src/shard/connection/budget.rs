//! The memory that clients make the node hold: each connection counts its buffers, and its address
//! and the node add them up. Over budget, the connections that hold the most are closed.

use std::sync::Arc;

use playfield_wire::ErrorCode;

use crate::addresses::Address;
use crate::shard::Shard;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, narrowed};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;

/// Memory is counted in pieces of this size, rounded down. Most connections hold less than one most
/// of the time, and then nothing has to be counted.
const PIECE_BYTES: usize = 1024;

/// A client with more than this unsent would not read why its connection is closed.
const UNSENT_READ_MAX: usize = 64 << 10;

impl Connection {
    /// How much memory its buffers take, in whole pieces.
    fn holds(&self) -> usize {
        let input = match &self.input {
            Input::WebSocket(Some(decoder)) => decoder.buffered_bytes(),
            Input::Http(http) => http.buffered_bytes(),
            _ => 0,
        };
        // What is being closed is given back soon: others need not go for it.
        let layer = if self.is_closing() { 0 } else { self.layer_bytes as usize };
        let buffers = self.partial.capacity() + self.outbox_capacity();
        let bytes = buffers + self.logged as usize + input + layer + self.waiting_bytes as usize;
        bytes / PIECE_BYTES * PIECE_BYTES
    }
}

impl Shard {
    /// The layer between a connection and its socket holds this much memory now.
    #[inline]
    pub(crate) fn layer_holds(&mut self, key: ConnectionKey, bytes: usize) {
        if let Some(connection) = self.delivery.connections.get_mut(key)
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
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let bytes = connection.holds();
        let before = connection.tally.bytes();
        if bytes == before {
            return;
        }
        connection.tally.holds(bytes);
        if bytes > before {
            let address = connection.tally.address();
            if address.is_over() || address.is_node_over() {
                self.over_budget = Some(Arc::clone(address));
            }
        }
    }

    /// If clients are over budget, closes the connections that hold the most: of the address that
    /// holds too much, or of the one that holds the most of all.
    pub(in crate::shard) fn keep_to_budget(&mut self) {
        let Some(address) = self.over_budget.take() else { return };
        if address.is_over() {
            self.relieve_everywhere(&address);
        }
        if address.is_node_over()
            && let Some(largest) = self.delivery.node.addresses.largest()
        {
            self.relieve_everywhere(&largest);
        }
    }

    fn relieve_everywhere(&mut self, address: &Arc<Address>) {
        self.relieve(address);
        if address.is_over() || address.is_node_over() {
            let own = self.delivery.shard;
            for shard in (0..self.delivery.node.shards as u16).filter(|at| *at != own) {
                self.delivery.post(shard, ShardMail::Relieve(Arc::clone(address)));
            }
        }
    }

    /// Closes connections from an address, the ones that hold the most first, until it and the node
    /// are within their budgets.
    pub(in crate::shard) fn relieve(&mut self, address: &Arc<Address>) {
        if !address.is_over() && !address.is_node_over() {
            return;
        }
        let connections = &self.delivery.connections;
        let mut holders: Vec<(usize, ConnectionKey)> = connections
            .keys()
            .into_iter()
            .filter_map(|key| Some((connections.get(key)?, key)))
            .filter(|(connection, _)| Arc::ptr_eq(connection.tally.address(), address))
            .map(|(connection, key)| (connection.tally.bytes(), key))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        holders.sort_unstable_by_key(|(bytes, _)| *bytes);
        while let Some((_, key)) = holders.pop()
            && (address.is_over() || address.is_node_over())
        {
            let setting =
                if address.is_over() { "peer_bytes_per_address_max" } else { "peer_bytes_max" };
            self.let_go_of(key, setting);
        }
    }

    /// Closes a connection that holds too much. If its client reads, it is sent the reason.
    fn let_go_of(&mut self, key: ConnectionKey, setting: &str) {
        self.delivery.counters.closed_over_budget += 1;
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        if connection.is_closing() || connection.unsent() > UNSENT_READ_MAX {
            return self.drop_connection(key);
        }
        let text = format!("{setting}: clients make the node hold too much memory");
        let is_http = matches!(connection.input, Input::Http(_));
        let code = if connection.blocked { ErrorCode::TooSlow } else { ErrorCode::Limit };
        if is_http {
            self.refuse_http(key, 503, &text);
        } else {
            self.fail(key, code, &text);
        }
        self.count_bytes(key);
    }
}
