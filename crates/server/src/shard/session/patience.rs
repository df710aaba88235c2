//! The time that the connection of a session may be silent.

use crate::shard::connection::patience::Patience;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// Returns the time that this connection may be silent now.
    pub(in crate::shard) fn patience(&self, key: ConnectionKey) -> Patience {
        let node = Patience::of_node(&self.env.node.config);
        let rooms = self.sessions.get(key).into_iter().flat_map(|session| &session.rooms);
        let patience = rooms.fold(node, |patience, room| patience.min(room.patience));
        let fleet = self
            .env
            .node
            .fleet
            .as_ref()
            .filter(|_| self.links.get(key).is_some_and(|of| of.is_device));
        match fleet.and_then(|fleet| fleet.silent) {
            // Only then is it known to be silent; closing it is another matter.
            Some(silent) => Patience { ask: patience.ask.min(silent / 2), ..patience },
            None => patience,
        }
    }
}
