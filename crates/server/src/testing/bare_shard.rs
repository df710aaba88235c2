//! A shard without sockets and threads, to count what it executes for a message (`make counts`).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Completion, Error, Job, RoomType, Task};
use playfield_wire::ErrorCode;

use crate::auth::{Deciding, Guests};
use crate::background::{Background, Begin, Origin, Underway};
use crate::config::Config;
use crate::entropy::Entropy;
use crate::node::Node;
use crate::pulse::Watch;
use crate::service::{Hosted, Service};
use crate::shard::Shard;
use crate::shard::env::Stopwatch;
use crate::shard::keys::ConnectionKey;

/// The time that the shard believes a turn to take.
const TURN: Duration = Duration::from_micros(100);

/// The only shard of a node, in the caller's hands.
pub struct BareShard {
    shard: Shard,
    now: Duration,
}

/// A connection to a [`BareShard`].
#[derive(Clone, Copy)]
pub struct BareConnection(ConnectionKey);

/// No room of it works in the background.
struct Nowhere;

impl Nowhere {
    fn refuse() -> Error {
        Error::new(ErrorCode::Busy, "a bare shard has no threads for other work")
    }
}

impl Background for Nowhere {
    fn spawn(&self, _: Origin, _: Task) -> Result<(), Error> {
        Err(Self::refuse())
    }

    fn completion(&self, _: Origin) -> Completion {
        // It has no store.
        Completion::new(drop)
    }

    fn compute_later(&self, _: Origin, _: Job) -> Result<Begin, Error> {
        Err(Self::refuse())
    }

    fn decide(&self, _: u16, _: ConnectionKey, _: Deciding) -> Result<Underway, Error> {
        Err(Self::refuse())
    }
}

/// The only shard of a node. To its stopwatch, nothing takes time.
pub(crate) fn bare_shard(config: Config, room_types: Vec<RoomType>) -> Shard {
    let guests = Box::new(Guests { name_bytes_max: config.limits.name_bytes.player });
    let secret = Entropy::System.bytes();
    let node = Arc::new(Node::new(config, 1, room_types, guests, None, secret));
    let (background, watch) = (Arc::new(Nowhere), Watch(Arc::default()));
    let stopwatch = Stopwatch::Held(Arc::default());
    Shard::new(0, node, background, Entropy::System, watch, stopwatch)
}

impl BareShard {
    /// A shard with these room types and one service.
    pub fn new(config: Config, room_types: Vec<RoomType>, service: impl Service) -> Self {
        let mut shard = bare_shard(config, room_types);
        shard.services.host(Box::new(Hosted::new(service)));
        Self { shard, now: Duration::ZERO }
    }

    /// Connects to the rooms; `None` if there are too many connections.
    pub fn connect(&mut self) -> Option<BareConnection> {
        self.shard.begin(self.now);
        let tally =
            self.shard.links.admit_from(&mut self.shard.env, Ipv4Addr::LOCALHOST.into(), false)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Some(BareConnection(self.shard.by_outlet(|out| out.accepted(address, tally))))
    }

    /// Connects to the service; `None` if there are too many connections.
    pub fn connect_to_service(&mut self) -> Option<BareConnection> {
        self.shard.begin(self.now);
        let tally =
            self.shard.links.admit_from(&mut self.shard.env, Ipv4Addr::LOCALHOST.into(), true)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Some(BareConnection(self.shard.accepted_for(0, address, tally)))
    }

    /// One turn, in which these bytes came on a connection. What the shard writes to it is appended
    /// to `out`; what it writes to others is dropped.
    pub fn turn(&mut self, connection: BareConnection, input: &mut [u8], out: &mut Vec<u8>) {
        let BareConnection(key) = connection;
        self.now += TURN;
        self.shard.begin(self.now);
        self.shard.visit(key);
        self.shard.received_behind(key, input, 0);
        while self.shard.visited(key) {
            self.shard.visit(key);
        }
        self.shard.advance();
        while let Some(dirty) = self.shard.next_dirty() {
            let bytes = self.shard.links.unsent(dirty);
            let count = bytes.len();
            if dirty == key {
                out.extend_from_slice(bytes);
            }
            self.shard.wrote(dirty, count);
        }
    }
}
