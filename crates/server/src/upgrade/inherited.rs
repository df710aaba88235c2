//! The rooms, sessions and sockets that a process takes over from another.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use playfield_room::RoomType;

use super::known::Known;
use crate::clock::BEGIN;
use crate::entropy::Entropy;
use crate::journal::Recovering;
use crate::node::Node;
use crate::shard::Shard;
use crate::shard::frozen::{Frozen, recovered, thaw};
use crate::shard::keys::ConnectionKey;

/// All that a process is given before anything stops in the other. In a process that is the first,
/// that is a new secret.
pub(crate) struct Accepted {
    pub(crate) secret: [u8; 32],
    /// The time since the node started, and when it was that.
    pub(super) now: Duration,
    pub(super) received: Instant,
}

/// All that it takes over then.
#[derive(Default)]
pub(crate) struct Inherited {
    pub(crate) listeners: Vec<InheritedListener>,
    pub(super) node: Vec<u8>,
    pub(super) frozen: Frozen,
    /// The open connections of the sessions that say so, in their order.
    pub(super) connections: Vec<TcpStream>,
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

impl Default for Accepted {
    fn default() -> Self {
        let secret = Entropy::System.bytes();
        Self { secret, now: Duration::ZERO, received: Instant::now() }
    }
}

impl Accepted {
    /// The time since the node started, as the old process would count it now.
    pub(crate) fn now(&self) -> Duration {
        self.now + self.received.elapsed()
    }
}

impl Inherited {
    /// Rooms that were recovered from the journal of an ended process. The node's clock begins late
    /// enough for the oldest of them.
    ///
    /// # Errors
    /// If a room is too large.
    pub(crate) fn recovered(
        rooms: Vec<Recovering>,
        room_types: &[RoomType],
    ) -> io::Result<(Accepted, Self)> {
        let oldest = rooms.iter().map(|room| room.position.at).max().unwrap_or_default();
        let now = oldest.max(BEGIN);
        let mut this = Self::default();
        for room in rooms {
            let of = room_types.iter().find(|of| of.name == room.about.room_type);
            let settings = of.map(|of| of.settings).unwrap_or_default();
            let epoch = (Entropy::System.number() >> 32) + 1;
            let form = recovered(room, &settings, now, epoch).map_err(io::Error::other)?;
            this.frozen.rooms.push(form);
        }
        this.frozen.is_recovered = true;
        Ok((Accepted { now, ..Accepted::default() }, this))
    }

    /// Returns whether rooms or sessions go on here.
    pub(crate) fn has_any(&self) -> bool {
        !self.node.is_empty() || !self.frozen.rooms.is_empty()
    }

    /// Lets the rooms and sessions go on in these shards. Returns the open connections of each.
    ///
    /// # Errors
    /// The text names the room that can't be read, and the field.
    pub(crate) fn thaw(
        self,
        now: Duration,
        node: &Node,
        shards: &mut [Shard],
    ) -> Result<Vec<Vec<PassedOn>>, String> {
        if !self.node.is_empty() {
            Known::restore(&self.node, node, now)?;
        }
        shards.iter_mut().for_each(|shard| shard.begin(now));
        let thawed = thaw(shards, &self.frozen)?;
        log::info!("{} rooms and {} sessions go on here", thawed.rooms, thawed.sessions);
        let mut of_shards: Vec<Vec<PassedOn>> = shards.iter().map(|_| Vec::new()).collect();
        for (socket, (shard, key)) in self.connections.into_iter().zip(thawed.connections) {
            of_shards[usize::from(shard)].push(PassedOn { key, socket });
        }
        Ok(of_shards)
    }
}
