//! The node's part in a cluster: joins whose room may be at another node, and seats for players
//! of others.
//!
//! ```text
//!  shard ── Seek ──▶ ┌──────────────────────────┐ ── Ask: a seat? ──▶ other node
//!        ◀─ Sought ──│ thread playfield-cluster │ ◀── its reservation ──
//!                    │ (`Host`, NATS)           │
//!  rooms ◀─ reserve ─└──────────────────────────┘ ◀── Ask: a seat? ── other node
//! ```
//!
//! Shards ask the cluster only where they would otherwise answer "not found", or when a room with
//! a key begins or ends. What decides is in the crate `playfield-cluster`.

mod asking;
mod boot_clock;
mod draining;
mod engine;
mod grants;
mod host;
pub(crate) mod keeping;
mod lock;
mod message;
mod moving;
mod receiving;
mod seating;
pub(crate) mod seeking;
mod start;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playfield_cluster::Save;
use playfield_room::Error;
use playfield_wire::ErrorCode;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::counted::add_below;
use crate::handle::NodeHandle;
use crate::room_id::RoomId;
use crate::shard::keys::ConnectionKey;
pub use engine::{ConnectEngine, ConnectedEngine, Connecting};
use seeking::Seek;
pub(crate) use start::{Connected, Member};

/// The most joins of a node that are sought at once.
const SEEKS_MAX: usize = 10_000;

/// The cluster, as the shards of a node know it.
pub(crate) struct Cluster {
    /// The node's slot.
    slot: AtomicU16,
    /// The time by the boot clock until which the node may call the rooms that it serves by claims,
    /// in nanoseconds.
    acts_until: AtomicU64,
    /// The keys of rooms that stand still until they are claimed again.
    frozen: Mutex<HashSet<KeyOf>>,
    /// New rooms come to this node before others.
    takes_next: AtomicBool,
    /// The URLs at which clients reach this node.
    addresses: Vec<String>,
    /// The URLs of the other nodes, by slot.
    others: Mutex<HashMap<u16, Arc<[String]>>>,
    /// The time for which the seat of a player is kept who was sent to another node.
    redirect_wait: Duration,
    orders: UnboundedSender<Order>,
    seeks: AtomicUsize,
    /// The rooms that have come from other nodes: claims say by their ids that they are here.
    strays: Mutex<HashSet<RoomId>>,
    /// The rooms of this node move to others.
    is_draining: AtomicBool,
}

/// An order for the cluster's thread.
pub(crate) enum Order {
    /// The node runs.
    Serve(NodeHandle),
    /// Find the room of a join.
    Seek(Box<Seek>),
    /// Ask all nodes for a session.
    SeekSession(SessionSeek),
    /// A join that was [granted](seeking::Sought::Here) a key has created a room, or has not.
    Settled(KeyOf),
    /// A room with a key has ended.
    Freed(KeyOf),
    /// The rooms of a shard stand still: the node's lease has run out.
    CutOff(u16),
    /// The save of a room was refused: another owner has opened it.
    Fenced(KeyOf),
    /// A save was compared with the room in memory.
    Compared { key: KeyOf, attempt: u64, save: Save },
    /// A room has ended that other nodes find by a claim of its id.
    FreedId(RoomId),
    /// A room is to move to the node of this name.
    Move { room: RoomId, node: String, answer: oneshot::Sender<Result<(), Error>> },
    /// All rooms are to move to other nodes.
    Drain { within: Duration, answer: oneshot::Sender<Drained> },
    /// The node has ended.
    Stop,
}

/// A session that a client wants back, and this node does not have.
pub(crate) struct SessionSeek {
    pub(crate) number: u64,
    /// The shard and the connection of the client.
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
}

/// The outcome of a [drain](crate::NodeHandle::drain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// The number of rooms that have moved to other nodes.
    pub moved: usize,
    /// The number of rooms that are still here.
    pub left: usize,
}

/// A key, by the number of its room type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyOf {
    pub(crate) room_type: u16,
    pub(crate) key: Arc<str>,
}

impl Cluster {
    fn new(
        addresses: Vec<String>,
        redirect_wait: Duration,
        orders: UnboundedSender<Order>,
    ) -> Self {
        let (slot, others, seeks) = (AtomicU16::new(0), Mutex::default(), AtomicUsize::new(0));
        let (takes_next, acts_until) = (AtomicBool::new(true), AtomicU64::new(0));
        let (frozen, strays, is_draining) =
            (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self {
            slot,
            acts_until,
            frozen,
            takes_next,
            addresses,
            others,
            redirect_wait,
            orders,
            seeks,
            strays,
            is_draining,
        }
    }

    /// The node's slot.
    pub(crate) fn slot(&self) -> u16 {
        self.slot.load(Ordering::Relaxed)
    }

    /// Returns whether the node may call the rooms that it serves by claims.
    pub(crate) fn acts(&self) -> bool {
        nanoseconds(boot_clock::now()) < self.acts_until.load(Ordering::Relaxed)
    }

    /// Returns whether a room with this key would stand still until it is claimed again.
    pub(crate) fn is_frozen(&self, key: &KeyOf) -> bool {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    fn set_frozen(&self, key: KeyOf, is_frozen: bool) {
        let mut frozen = self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_frozen {
            frozen.insert(key);
        } else {
            frozen.remove(&key);
        }
    }

    fn set_acts_until(&self, until: Option<Duration>) {
        self.acts_until.store(until.map_or(0, nanoseconds), Ordering::Relaxed);
    }

    /// Returns whether new rooms come to this node before others.
    pub(crate) fn takes_next(&self) -> bool {
        self.takes_next.load(Ordering::Relaxed)
    }

    /// The URLs at which clients reach this node.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The URLs of the node in another slot, if one serves there.
    pub(crate) fn addresses_of(&self, slot: u16) -> Option<Arc<[String]>> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.get(&slot).cloned()
    }

    fn set_others(&self, others: impl Iterator<Item = (u16, Arc<[String]>)>) {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others.collect();
    }

    /// Finds the room of a join; its shard is sent [`Sought`](seeking::Sought). Gives it back if
    /// too many are sought.
    pub(crate) fn seek(&self, seek: Box<Seek>) -> Result<(), Box<Seek>> {
        if !add_below(&self.seeks, SEEKS_MAX) {
            return Err(seek);
        }
        self.order(Order::Seek(seek));
        Ok(())
    }

    /// Asks the other nodes for a session, unless there are none, or too many are sought.
    pub(crate) fn seek_session(&self, session: SessionSeek) -> bool {
        let has_others = !self.others.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let is_sought = has_others && add_below(&self.seeks, SEEKS_MAX);
        if is_sought {
            self.order(Order::SeekSession(session));
        }
        is_sought
    }

    /// A join that was granted a key has created a room, or has not.
    pub(crate) fn settled(&self, key: KeyOf) {
        self.order(Order::Settled(key));
    }

    /// A room with this key has ended.
    pub(crate) fn freed(&self, key: KeyOf) {
        self.order(Order::Freed(key));
    }

    /// The rooms of a shard stand still. The shard is told when the node may call them again.
    pub(crate) fn cut_off(&self, shard: u16) {
        self.order(Order::CutOff(shard));
    }

    /// The save of a room was refused. The room stands still until the key is claimed again.
    pub(crate) fn fenced(&self, key: KeyOf) {
        self.order(Order::Fenced(key));
    }

    /// A save that was opened again was compared with the room in memory.
    pub(crate) fn compared(&self, key: KeyOf, attempt: u64, save: Save) {
        self.order(Order::Compared { key, attempt, save });
    }

    /// A room has come from another node.
    fn add_stray(&self, id: RoomId) {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// A room has moved away: its claims are another node's.
    fn forget_stray(&self, id: RoomId) -> bool {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// A room is not here any more.
    pub(crate) fn removed(&self, id: RoomId) {
        if self.forget_stray(id) {
            self.order(Order::FreedId(id));
        }
    }

    /// Moves a room to the node of this name.
    pub(crate) async fn move_room(&self, room: RoomId, node: String) -> Result<(), Error> {
        let (answer, moved) = oneshot::channel();
        self.order(Order::Move { room, node, answer });
        moved.await.unwrap_or_else(|_| Err(busy("the node is about to end")))
    }

    /// Moves all rooms to other nodes that take them.
    pub(crate) async fn drain(&self, within: Duration) -> Drained {
        let (answer, drained) = oneshot::channel();
        self.order(Order::Drain { within, answer });
        drained.await.unwrap_or_default()
    }

    /// Returns whether the rooms of this node move to others.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    fn order(&self, order: Order) {
        // The thread ends after all others.
        let _ = self.orders.send(order);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Cluster {
    /// A cluster whose orders a test obeys. Its lease lasts.
    pub(crate) fn of_test() -> (Self, tokio::sync::mpsc::UnboundedReceiver<Order>) {
        let (orders, received) = tokio::sync::mpsc::unbounded_channel();
        let cluster = Self::new(Vec::new(), Duration::from_secs(30), orders);
        cluster.set_lease(true);
        (cluster, received)
    }

    pub(crate) fn set_lease(&self, lasts: bool) {
        self.set_acts_until(lasts.then_some(Duration::MAX));
    }
}

/// The error of a join that can't be decided now.
fn busy(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::Busy, text)
}
