//! The sockets of a node, which are opened before it runs.

use std::io;
use std::net::SocketAddr;

use super::Server;
use crate::config::Descriptors;
use crate::shard_thread::Listeners;
use crate::upgrade::InheritedListener;

/// The sockets and addresses that the node listens at.
pub(super) struct Open {
    pub(super) listeners: Listeners,
    pub(super) rooms_addr: Option<SocketAddr>,
    pub(super) service_addrs: Vec<SocketAddr>,
    /// That for rooms, or else the first of a service.
    pub(super) local_addr: SocketAddr,
}

impl Open {
    pub(super) fn new(
        server: &Server,
        serves_rooms: bool,
        shards: usize,
        inherited: &mut Vec<InheritedListener>,
    ) -> io::Result<Self> {
        let config = &server.config;
        let mut listeners =
            Listeners::new(shards, config.threads.descriptors == Descriptors::PerShard);
        let rooms_addr = match serves_rooms {
            true => Some(listeners.listen(
                config.listen,
                None,
                &format!("listen = {}", config.listen),
                inherited,
            )?),
            false => None,
        };
        let mut service_addrs = Vec::new();
        for (number, service) in server.services.iter().enumerate() {
            if let Some(address) = service.address {
                let name = format!("service {number} at {address}");
                service_addrs.push(listeners.listen(
                    address,
                    Some(number as u16),
                    &name,
                    inherited,
                )?);
            }
        }
        match rooms_addr.or(service_addrs.first().copied()) {
            Some(local_addr) => Ok(Self { listeners, rooms_addr, service_addrs, local_addr }),
            None => Err(io::Error::other("nothing listens")),
        }
    }
}
