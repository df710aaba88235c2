//! Over budget, the connections that hold the most are closed.

use std::sync::Arc;

use playfield_wire::ErrorCode;

use crate::addresses::Address;
use crate::shard::connection::budget::UNSENT_READ_MAX;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::session::outlet::Outlet;

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
                    if of_address { "limits.memory.per_address" } else { "limits.memory.total" };
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
