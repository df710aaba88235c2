//! Checks of a node in a cluster: its addresses for clients, and a store that all nodes share.

use std::io;
use std::net::SocketAddr;

use playfield_room::{RoomType, Store};

use super::Server;
use crate::config::ClientUrl;

impl Server {
    /// The URLs at which clients reach this node: those of the settings, or the address that it
    /// listens at.
    pub(super) fn client_urls(
        &self,
        listens_at: Option<SocketAddr>,
        has_tls: bool,
    ) -> io::Result<Vec<String>> {
        let set = &self.config.cluster.addresses;
        if !set.is_empty() {
            return Ok(set.iter().map(ClientUrl::to_string).collect());
        }
        let Some(address) = listens_at else {
            return invalid("cluster.engine is set, but the node has no rooms".into());
        };
        if address.ip().is_unspecified() {
            return invalid(format!(
                "cluster.addresses is empty, and listen = {address} names no address that clients \
                 can be sent to: set cluster.addresses to the URLs at which clients reach this \
                 very node, such as wss://n3.play.example.com"
            ));
        }
        let schemes = if has_tls { ["tls", "wss"] } else { ["tcp", "ws"] };
        Ok(schemes.iter().map(|scheme| format!("{scheme}://{address}")).collect())
    }

    /// Refuses a cluster whose nodes would each keep their own saves.
    pub(super) fn check_store(&self, store: Option<&dyn Store>) -> io::Result<()> {
        let persistent = self.room_types.iter().find(|of| of.settings.persist_s > 0);
        match (persistent, store) {
            (Some(RoomType { name, .. }), Some(store))
                if self.config.cluster.is_on() && !store.is_shared() =>
            {
                invalid(format!(
                    "rooms of the type {name:?} are persistent (persist), and the nodes of a \
                     cluster must share their store, which this one can't: use PostgresStore"
                ))
            }
            _ => Ok(()),
        }
    }
}

fn invalid<T>(text: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}
