//! New connections, of clients and of proxies.

use std::net::SocketAddr;

use playfield_wire::ErrorCode;

use crate::addresses::Tally;
use crate::proxy::Client;
use crate::shard::connection::Connection;
use crate::shard::connection::transport::Input;
use crate::shard::env::SHUTTING_DOWN;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// A client connected.
    pub(crate) fn accepted(&mut self, address: SocketAddr, tally: Tally) -> ConnectionKey {
        let input = Input::Unknown(Box::new(Client::named(address)));
        let connection = Connection::new(self.env.now, input, tally);
        let key = self.links.insert(connection);
        self.links.look_at(key, self.env.now + self.env.node.config.timeouts.hello);
        if self.env.is_shutting_down {
            self.go_away(key, SHUTTING_DOWN);
        }
        key
    }

    /// Refuses a new connection whose PROXY header can't be read.
    pub(crate) fn refuse_proxy(&mut self, key: ConnectionKey, why: &str) {
        self.env.counters.proxies_refused += 1;
        self.fail(key, ErrorCode::BadPreamble, &format!("the PROXY header can't be read: {why}"));
    }

    /// The PROXY header of a new connection has named the client that it comes from, or none.
    pub(crate) fn named_by_proxy(&mut self, key: ConnectionKey, named: Option<SocketAddr>) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let Input::Unknown(peer) = &mut connection.input else { return };
        **peer = named.map_or(Client::unnamed(peer.address), Client::named);
        let ip = peer.address.ip();
        let address = self.env.node.addresses.of(**peer, self.env.now);
        if let Err(why) = connection.tally.come_from(address) {
            self.links.note_crowded(self.env, why, ip);
            self.drop_connection(key);
        }
    }
}
