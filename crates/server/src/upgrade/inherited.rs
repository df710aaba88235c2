//! The rooms, sessions and sockets that a process takes over from another.

use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::entropy::Entropy;
use crate::shard::Shard;
use crate::shard::frozen::thaw;

/// All that it takes over; nothing, in a process that is the first.
pub(crate) struct Inherited {
    pub(super) rooms: Vec<Vec<u8>>,
    pub(super) sessions: Vec<Vec<u8>>,
    pub(crate) secret: [u8; 32],
    pub(crate) listeners: Vec<InheritedListener>,
    /// The time since the node started, and when it was that.
    pub(super) now: Duration,
    pub(super) received: Instant,
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
            rooms: Vec::new(),
            sessions: Vec::new(),
            secret: Entropy::System.bytes(),
            listeners: Vec::new(),
            now: Duration::ZERO,
            received: Instant::now(),
        }
    }
}

impl Inherited {
    /// Lets the rooms and sessions go on in these shards.
    ///
    /// # Errors
    /// The text names the room that can't be read, and the field.
    pub(crate) fn thaw(&mut self, shards: &mut [Shard]) -> Result<(), String> {
        let (rooms, sessions) = (mem::take(&mut self.rooms), mem::take(&mut self.sessions));
        let now = self.now();
        shards.iter_mut().for_each(|shard| shard.begin(now));
        let thawed = thaw(shards, &rooms, &sessions)?;
        log::info!("{} rooms and {} sessions go on here", thawed.rooms, thawed.sessions);
        Ok(())
    }

    /// The time since the node started, as the old process would count it now.
    pub(crate) fn now(&self) -> Duration {
        self.now + self.received.elapsed()
    }
}
