//! The host of the cluster's state machine: it gives it time, events of the engine, orders of the
//! shards, and carries out its effects. All runs on one thread.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use playfield_cluster::{
    AskError, Choice, Effect, Event, Handed, Key, Load, Node, Peer, Place, claim_key,
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::engine::ConnectedEngine;
use super::grants::Grants;
use super::lock::Lock;
use super::message::encode;
use super::moving::{id_key, is_move};
use super::receiving::Inbox;
use super::seeking::{Seek, Sought};
use super::{Cluster, KeyOf, Order, boot_clock};
use crate::handle::NodeHandle;
use crate::shard::mail::ShardMail;

/// The most orders that are obeyed before the engine is looked at again.
const ORDERS_AT_ONCE: usize = 256;

/// The time between two looks at the load of the node.
const LOAD_EVERY: Duration = Duration::from_millis(250);

/// The time that the end of a node waits for the engine to have its last writes.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// The host of a node's part in the cluster.
pub(super) struct Host {
    pub(super) cluster: Arc<Cluster>,
    pub(super) node: RefCell<Node>,
    handle: OnceCell<NodeHandle>,
    pub(super) state: RefCell<State>,
    pub(super) grants: RefCell<Grants>,
    pub(super) inbox: RefCell<Inbox>,
    /// The time at which the load was last looked at.
    loaded_at: Cell<Duration>,
    /// Notified when there are events, or orders of tasks, for the node.
    work: Notify,
}

/// Requests that wait for an effect.
#[derive(Default)]
pub(super) struct State {
    pub(super) last: u64,
    pub(super) located: HashMap<u64, oneshot::Sender<Located>>,
    pub(super) asked: HashMap<u64, oneshot::Sender<Result<Vec<u8>, AskError>>>,
    pub(super) handed: HashMap<u64, oneshot::Sender<Handed>>,
    /// The keys that were claimed, by the names of their claims.
    pub(super) keys: HashMap<Key, KeyOf>,
    /// The shards whose rooms stand still until the lease is renewed.
    pub(super) cut_off: HashSet<u16>,
    lock: Option<Lock>,
    /// Answered when the node has its slot.
    pub(super) ready: Option<oneshot::Sender<()>>,
}

/// The place of a key.
pub(super) struct Located {
    pub(super) place: Place,
    pub(super) is_code: bool,
}

impl Host {
    /// A host whose `ready` is sent when the node has its slot.
    pub(super) fn new(
        cluster: Arc<Cluster>,
        node: Node,
        lock: Option<Lock>,
        ready: oneshot::Sender<()>,
    ) -> Rc<Self> {
        let state = State { lock, ready: Some(ready), ..State::default() };
        Rc::new(Self {
            cluster,
            node: RefCell::new(node),
            handle: OnceCell::new(),
            state: RefCell::new(state),
            grants: RefCell::default(),
            inbox: RefCell::default(),
            loaded_at: Cell::default(),
            work: Notify::new(),
        })
    }

    /// Runs until the node ends.
    pub(super) async fn run(
        self: Rc<Self>,
        mut engine: Box<dyn ConnectedEngine>,
        mut orders: UnboundedReceiver<Order>,
    ) {
        loop {
            let wait = self.turn(&mut engine);
            tokio::select! {
                () = engine.ready() => {}
                () = self.work.notified() => {}
                order = orders.recv() => {
                    let mut order = order;
                    for _ in 0..ORDERS_AT_ONCE {
                        match order {
                            Some(Order::Stop) | None => return self.leave(&mut engine).await,
                            Some(order) => self.obey(order),
                        }
                        let Ok(next) = orders.try_recv() else { break };
                        order = Some(next);
                    }
                }
                () = sleep(wait) => {}
            }
        }
    }

    /// Exchanges what there is with the engine, and carries out effects. Returns when to come again.
    fn turn(self: &Rc<Self>, engine: &mut Box<dyn ConnectedEngine>) -> Duration {
        let now = boot_clock::now();
        if now >= self.loaded_at.get() + LOAD_EVERY {
            self.loaded_at.set(now);
            let load = self.load();
            self.node.borrow_mut().event(now, Event::Load(load));
        }
        let mut node = self.node.borrow_mut();
        node.exchange(now, engine);
        let next = node.turn(now);
        node.exchange(now, engine);
        let effects: Vec<Effect> = std::iter::from_fn(|| node.next_effect()).collect();
        self.publish(now, &node);
        let acts_until = node.acts_until();
        drop(node);
        for effect in effects {
            self.carry_out(effect);
        }
        // After the effects: rooms that are to be frozen are so before others go on.
        self.renew(now, acts_until);
        next.saturating_sub(now)
    }

    /// Gives the node an event, and has it take its turn.
    pub(super) fn event(&self, event: Event) {
        self.node.borrow_mut().event(boot_clock::now(), event);
        self.work.notify_one();
    }

    /// Shows the shards where the nodes are.
    fn publish(&self, now: Duration, node: &Node) {
        self.cluster.takes_next.store(node.takes_next(now), Ordering::Relaxed);
        self.cluster.slot.store(node.slot(), Ordering::Relaxed);
        let peers = node.peers().map(|peer| (peer.slot, Arc::clone(&peer.addresses)));
        self.cluster.set_others(peers);
    }

    fn obey(self: &Rc<Self>, order: Order) {
        match order {
            Order::Serve(handle) => drop(self.handle.set(handle)),
            Order::Seek(mut seek) => {
                let host = Rc::clone(self);
                spawn_local(async move {
                    let sought = host.seek(&mut seek).await;
                    host.sought(seek, sought);
                });
            }
            Order::SeekSession(session) => {
                spawn_local(Rc::clone(self).seek_session(session));
            }
            Order::Settled(key) => self.settle(&key),
            Order::Freed(key) => self.release(&key),
            Order::CutOff(shard) => {
                self.state.borrow_mut().cut_off.insert(shard);
                self.work.notify_one();
            }
            Order::Fenced(key) => self.fenced(key),
            Order::Compared { key, attempt, save } => {
                if let Ok(key) = claim_key(&self.type_name(key.room_type), &key.key) {
                    self.event(Event::Opened { key, attempt, save: Some(save) });
                }
            }
            Order::FreedId(id) => self.event(Event::Released { key: id_key(id) }),
            Order::Move { room, node, answer } => {
                let host = Rc::clone(self);
                spawn_local(async move {
                    let moved = match host.peer_named(&node) {
                        Ok(peer) => host.move_room(room, &peer).await,
                        Err(error) => Err(error),
                    };
                    // The one who asked may have gone.
                    let _ = answer.send(moved);
                });
            }
            Order::Drain { within, answer } => {
                let host = Rc::clone(self);
                spawn_local(async move {
                    let _ = answer.send(host.drain(within).await);
                });
            }
            Order::Stop => {}
        }
    }

    /// Tells a shard where the room of a join is.
    fn sought(&self, seek: Box<Seek>, sought: Sought) {
        self.tell_shard(seek.shard, ShardMail::Sought { seek, sought });
    }

    fn carry_out(self: &Rc<Self>, effect: Effect) {
        match effect {
            Effect::Ready { slot, incarnation } => {
                log::info!("the node has the slot {slot} of the cluster, as {incarnation:?}");
                if let Some(lock) = &mut self.state.borrow_mut().lock {
                    lock.note(slot);
                }
            }
            Effect::Found { request, place, is_code } => {
                if let Some(located) = self.state.borrow_mut().located.remove(&request) {
                    let _ = located.send(Located { place, is_code });
                }
            }
            Effect::Open { key, attempt } => self.open(key, attempt),
            Effect::Serve { key } | Effect::Thaw { key } => self.thaw(&key),
            Effect::Freeze { key } => self.freeze(&key),
            Effect::Asked { from, number, body, .. } => {
                let host = Rc::clone(self);
                spawn_local(async move {
                    let body = match is_move(&body) {
                        true => host.moved(from, &body).await,
                        false => encode(&host.seat(&body).await),
                    };
                    host.event(Event::Answer { to: from.slot, number, body });
                });
            }
            Effect::Answered { ask, result } => {
                if let Some(asked) = self.state.borrow_mut().asked.remove(&ask) {
                    let _ = asked.send(result);
                }
            }
            Effect::Noted(notice) => log::warn!("cluster: {notice}"),
            Effect::End { key } => self.end(&key),
            Effect::HandedOver { request, handed } => {
                if let Some(waiting) = self.state.borrow_mut().handed.remove(&request) {
                    let _ = waiting.send(handed);
                }
            }
            Effect::Told { from, body } if is_move(&body) => {
                let host = Rc::clone(self);
                spawn_local(async move { drop(host.moved(from, &body).await) });
            }
            Effect::Told { .. } | Effect::LinkReset { .. } => {}
        }
    }

    /// A join that was granted a key has created its room, or has not.
    pub(super) fn settle(&self, key: &KeyOf) {
        self.grants.borrow_mut().take_back(key);
        self.release(key);
    }

    /// Gives up the claim of a key that no room has, and no join is about to use.
    fn release(&self, key: &KeyOf) {
        let Some(handle) = self.handle.get() else { return };
        let is_used = self.grants.borrow().has(key)
            || handle.node().directory.has_key(key.room_type, &key.key);
        if !is_used && let Ok(key) = claim_key(&self.type_name(key.room_type), &key.key) {
            self.state.borrow_mut().keys.remove(&key);
            self.event(Event::Released { key });
        }
    }

    /// The node for a new room of a type, if that is not this one.
    pub(super) fn choose(&self, room_type: u16) -> Option<Peer> {
        let handle = self.handle.get()?;
        let of = handle.node().room_types.get(usize::from(room_type))?;
        let is_same = |fingerprint| fingerprint == of.fingerprint;
        match self.choose_by(boot_clock::now(), &of.name, is_same) {
            Some(Choice::At(peer)) => Some(peer),
            Some(Choice::Here) | None => None,
        }
    }

    /// The node for a new room of a type whose fingerprint that node `can_read`.
    pub(super) fn choose_by(
        &self,
        now: Duration,
        room_type: &str,
        can_read: impl Fn(u64) -> bool,
    ) -> Option<Choice> {
        self.node.borrow_mut().choose(now, room_type, can_read)
    }

    /// The load of this node, for the choice of others.
    pub(super) fn load(&self) -> Load {
        let Some(handle) = self.handle.get() else { return Load::default() };
        let directory = &handle.node().directory;
        Load {
            rooms: u32::try_from(directory.count()).unwrap_or(u32::MAX),
            busy_percent: directory.busy_percent().min(100) as u8,
            takes_rooms: !handle.shared().stops.load(Ordering::Relaxed)
                && !self.cluster.is_draining(),
        }
    }

    /// The node in another slot, if one serves there.
    pub(super) fn peer(&self, slot: u16) -> Option<Peer> {
        self.node.borrow().peers().find(|peer| peer.slot == slot).cloned()
    }

    /// Tells a shard the outcome of a search.
    pub(super) fn tell_shard(&self, shard: u16, mail: ShardMail) {
        self.cluster.seeks.fetch_sub(1, Ordering::Relaxed);
        let Some(handle) = self.handle.get() else { return };
        handle.shared().mailboxes[usize::from(shard)].push_promised(mail);
    }

    pub(super) fn handle(&self) -> Option<NodeHandle> {
        self.handle.get().cloned()
    }

    pub(super) fn type_name(&self, room_type: u16) -> String {
        let name = |handle: &NodeHandle| {
            handle.node().room_types.get(usize::from(room_type)).map(|of| of.name.clone())
        };
        self.handle.get().and_then(name).unwrap_or_default()
    }

    pub(super) fn is_persistent(&self, room_type: u16) -> bool {
        self.handle.get().is_some_and(|handle| handle.node().is_persistent(room_type))
    }

    /// Leaves the cluster: claims are removed, and others need not wait for the end of the lease.
    async fn leave(self: Rc<Self>, engine: &mut Box<dyn ConnectedEngine>) {
        let by = tokio::time::Instant::now() + LEAVE_MAX;
        self.node.borrow_mut().leave(boot_clock::now());
        loop {
            let wait = self.turn(engine);
            if self.node.borrow().has_left() || tokio::time::Instant::now() >= by {
                return;
            }
            tokio::select! {
                () = engine.ready() => {}
                () = sleep(wait.min(LEAVE_MAX)) => {}
            }
        }
    }
}
