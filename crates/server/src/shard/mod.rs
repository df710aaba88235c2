//! A shard: connections, sessions and rooms, as a state machine over bytes, mail and time.
//!
//! It knows no sockets and no clock. The event loop hands it what came and what time it is, and takes what is to be written,
//! closed and moved; tests do the same.

mod connection;
mod join;
mod mail;
mod outlet;
mod receive;
mod rooms;
mod schedule;
mod session;
mod sync;
mod timeouts;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use playfield_room::RoomType;

pub(crate) use connection::Connection;
pub(crate) use mail::{RoomAddress, ShardMail};

use crate::auth::Authenticator;
use crate::background::Background;
use crate::config::Config;
use crate::directory::Directory;
use crate::mailbox::Mailboxes;
use crate::pages::Pages;
use crate::slab::{Key, Slab};
use crate::stats::ShardStats;
use connection::Pool;
use rooms::RoomSlot;
use schedule::Schedule;
use timeouts::Timeouts;

/// What all shards of a node share.
pub(crate) struct Node {
    pub(crate) config: Config,
    pub(crate) types: BTreeMap<String, RoomType>,
    pub(crate) directory: Directory,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) background: Box<dyn Background>,
    pub(crate) authenticator: Box<dyn Authenticator>,
    pub(crate) pages: Pages,
}

/// What the event loop is to do with a connection's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing more will be written: tell the peer, and wait for its end.
    ShutDown(Key),
    /// Close it; the connection is gone.
    Close(Key),
    /// Hand it to the shard that [`Shard::depart`] names.
    Move(Key),
    /// It was held up, and takes input again: read what came meanwhile.
    Read(Key),
}

/// One shard.
pub(crate) struct Shard {
    index: usize,
    node: Arc<Node>,
    now: Duration,
    net: Net,
    rooms: Slab<RoomSlot>,
    by_id: HashMap<String, Key>,
    schedule: Schedule,
    /// Rooms whose code ran since they were last looked after.
    touched: Vec<Key>,
    /// Connections that wait for another shard's mailbox.
    waiting: Vec<Key>,
    /// Rooms created here so far: each begins its beat at another point of the period.
    created: u64,
    ending: bool,
}

/// The connections, and what leaves by them. Apart from the rooms, so that a room may write while it acts.
pub(crate) struct Net {
    shard: usize,
    connections: Slab<Connection>,
    /// Connections with something new to write.
    dirty: Vec<Key>,
    actions: Vec<Action>,
    timeouts: Timeouts,
    pool: Pool,
    /// Letters to other shards (and to this one), by shard, posted at the end of the turn.
    letters: Vec<Vec<ShardMail>>,
    stats: ShardStats,
    sessions: u64,
    now: Duration,
    outbox_bytes_max: usize,
}

impl Shard {
    pub(crate) fn new(index: usize, node: Arc<Node>) -> Self {
        let net = Net {
            shard: index,
            connections: Slab::default(),
            dirty: Vec::new(),
            actions: Vec::new(),
            timeouts: Timeouts::default(),
            pool: Pool::default(),
            letters: (0..node.mailboxes.shards()).map(|_| Vec::new()).collect(),
            stats: ShardStats::default(),
            sessions: 0,
            now: Duration::ZERO,
            outbox_bytes_max: node.config.outbox_bytes_max,
        };
        Self {
            index,
            node,
            now: Duration::ZERO,
            net,
            rooms: Slab::default(),
            by_id: HashMap::new(),
            schedule: Schedule::default(),
            touched: Vec::new(),
            waiting: Vec::new(),
            created: 0,
            ending: false,
        }
    }

    /// Sets the time, which never goes back.
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.net.now = self.now;
    }

    /// When something is next due.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let retry = (!self.waiting.is_empty()).then(|| self.now + MAILBOX_RETRY);
        self.schedule.next().into_iter().chain(self.net.timeouts.next()).chain(retry).min()
    }

    /// Does what is due: timers, ticks, syncs, timeouts.
    pub(crate) fn advance(&mut self) {
        while let Some((at, room)) = self.schedule.take_due(self.now) {
            self.run_due(at, room);
        }
        self.check_timeouts();
    }

    /// Looks after the rooms whose code ran, and posts the letters. To be called at the end of a turn, before what is to be written is
    /// taken.
    pub(crate) fn settle(&mut self) {
        while let Some(room) = self.touched.pop() {
            self.look_after(room);
        }
        self.end_waits();
        for (shard, letters) in self.net.letters.iter_mut().enumerate() {
            if !letters.is_empty() {
                self.node.mailboxes.post(shard, letters.drain(..));
            }
        }
    }

    /// Connections that waited for another shard's mailbox go on if it takes letters again.
    fn end_waits(&mut self) {
        for key in std::mem::take(&mut self.waiting) {
            let Some(connection) = self.net.connections.get_mut(key) else { continue };
            let Some(shard) = connection.waits_for else { continue };
            if self.node.mailboxes.is_full(shard, self.net.letters[shard].len()) {
                self.waiting.push(key);
            } else {
                connection.waits_for = None;
                self.net.actions.push(Action::Read(key));
                self.pump(key);
            }
        }
    }

    /// A copy of what was counted.
    pub(crate) fn stats(&self) -> ShardStats {
        ShardStats {
            connections: self.net.connections.len() as u64,
            sessions: self.net.sessions,
            rooms: self.rooms.len() as u64,
            ..self.net.stats
        }
    }

    /// Takes the connections with something new to write.
    pub(crate) fn take_dirty(&mut self, into: &mut Vec<Key>) {
        into.append(&mut self.net.dirty);
    }

    /// Takes what is to be done with sockets.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.net.actions)
    }
}

/// How soon a full mailbox is looked at again.
const MAILBOX_RETRY: Duration = Duration::from_millis(1);

/// Random bytes from the system.
fn entropy<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness, ids and tokens could be guessed; there is no safe way to go on.
    getrandom::fill(&mut bytes).expect("the system gives no random bytes");
    bytes
}
