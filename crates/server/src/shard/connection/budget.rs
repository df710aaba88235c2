//! The memory that clients make the node hold: each connection counts its buffers, and its address
//! and the node add them up. Over budget, the connections that hold the most are closed.

use std::sync::Arc;

use playfield_wire::ErrorCode;

use crate::addresses::Address;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, Links, narrowed};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::session::outlet::Outlet;

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
        let Some(connection) = self.slab.get_mut(key) else { return };
        let bytes = connection.holds();
        let before = connection.tally.bytes();
        if bytes == before {
            return;
        }
        connection.tally.holds(bytes);
        if bytes > before {
            let address = connection.tally.address();
            self.is_over_budget |= address.is_over() || address.is_node_over();
        }
    }
}

impl Outlet<'_> {
    /// If clients are over budget, closes the connections that hold the most: of each address that
    /// holds too much, and of the ones that hold the most of all. What they hold on other shards is
    /// closed there.
    pub(in crate::shard) fn keep_to_budget(&mut self) {
        if !std::mem::take(&mut self.links.is_over_budget) {
            return;
        }
        let mut left = self.relieve(None);
        // Each time around, an address that is the largest gives back some.
        while let Some(largest) = self.env.node.addresses.largest().filter(|of| of.is_node_over()) {
            let before = largest.bytes();
            left.extend(self.relieve(Some(&largest)));
            if largest.bytes() == before {
                break;
            }
        }
        let own = self.env.shard;
        for address in left {
            for shard in (0..self.env.node.shards as u16).filter(|at| *at != own) {
                self.outbound.post(shard, ShardMail::Relieve(Arc::clone(&address)));
            }
        }
    }

    /// Closes connections, the ones that hold the most first, until no address holds more than its
    /// share: all in one pass, however many are over it. With `only`, until this address and the
    /// node are within their budgets. Returns the addresses that hold too much elsewhere.
    pub(in crate::shard) fn relieve(&mut self, only: Option<&Arc<Address>>) -> Vec<Arc<Address>> {
        let is_over = |address: &Arc<Address>| match only {
            Some(only) => Arc::ptr_eq(address, only) && (only.is_over() || only.is_node_over()),
            None => address.is_over(),
        };
        let connections = &self.links;
        let mut holders: Vec<(usize, ConnectionKey, Arc<Address>)> = connections
            .keys()
            .into_iter()
            .filter_map(|key| Some((&connections.get(key)?.tally, key)))
            .filter(|(tally, _)| tally.bytes() > 0 && is_over(tally.address()))
            .map(|(tally, key)| (tally.bytes(), key, Arc::clone(tally.address())))
            .collect();
        holders.sort_unstable_by_key(|(bytes, ..)| *bytes);
        for (_, key, address) in holders.iter().rev() {
            if is_over(address) {
                let of_address = address.is_over();
                let setting =
                    if of_address { "peer_bytes_per_address_max" } else { "peer_bytes_max" };
                self.let_go_of(*key, setting);
            }
        }
        let addresses = holders.into_iter().map(|(.., address)| address).chain(only.cloned());
        let mut left: Vec<_> = addresses.filter(is_over).collect();
        left.sort_unstable_by_key(Arc::as_ptr);
        left.dedup_by(|one, other| Arc::ptr_eq(one, other));
        left
    }

    /// Closes a connection that holds too much. If its client reads, it is sent the reason.
    fn let_go_of(&mut self, key: ConnectionKey, setting: &str) {
        self.env.counters.closed_over_budget += 1;
        let Some(connection) = self.links.get_mut(key) else { return };
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
        self.links.count_bytes(key);
    }
}
