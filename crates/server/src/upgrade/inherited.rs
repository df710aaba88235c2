//! The rooms, sessions and sockets that a process takes over from another.

use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::known::Known;
use crate::entropy::Entropy;
use crate::node::Node;
use crate::shard::Shard;
use crate::shard::frozen::{Frozen, thaw};
use crate::shard::keys::ConnectionKey;

/// All that it takes over; nothing, in a process that is the first.
pub(crate) struct Inherited {
    pub(super) node: Vec<u8>,
    pub(super) frozen: Frozen,
    pub(crate) secret: [u8; 32],
    pub(crate) listeners: Vec<InheritedListener>,
    /// The open connections of the sessions that say so, in their order.
    pub(super) connections: Vec<TcpStream>,
    /// The time since the node started, and when it was that.
    pub(super) now: Duration,
    pub(super) received: Instant,
}

/// An open connection of another process.
pub(crate) struct PassedOn {
    pub(crate) key: ConnectionKey,
    pub(crate) socket: TcpStream,
}

/// A socket that listens.
pub(crate) struct InheritedListener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) service: Option<u16>,
}

impl Default for Inherited {
    fn default() -> Self {
        Self {
            node: Vec::new(),
            frozen: Frozen::default(),
            secret: Entropy::System.bytes(),
            listeners: Vec::new(),
            connections: Vec::new(),
            now: Duration::ZERO,
            received: Instant::now(),
        }
    }
}

impl Inherited {
    /// Lets the rooms and sessions go on in these shards. Returns the open connections of each.
    ///
    /// # Errors
    /// The text names the room that can't be read, and the field.
    pub(crate) fn thaw(
        &mut self,
        node: &Node,
        shards: &mut [Shard],
    ) -> Result<Vec<Vec<PassedOn>>, String> {
        let frozen = mem::take(&mut self.frozen);
        let now = self.now();
        Known::restore(&self.node, node, now)?;
        shards.iter_mut().for_each(|shard| shard.begin(now));
        let thawed = thaw(shards, &frozen)?;
        log::info!("{} rooms and {} sessions go on here", thawed.rooms, thawed.sessions);
        let mut of_shards: Vec<Vec<PassedOn>> = shards.iter().map(|_| Vec::new()).collect();
        let sockets = mem::take(&mut self.connections).into_iter();
        for (socket, (shard, key)) in sockets.zip(thawed.connections) {
            of_shards[usize::from(shard)].push(PassedOn { key, socket });
        }
        Ok(of_shards)
    }

    /// The time since the node started, as the old process would count it now.
    pub(crate) fn now(&self) -> Duration {
        self.now + self.received.elapsed()
    }
}
