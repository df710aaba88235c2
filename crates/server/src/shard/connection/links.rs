//! The connections of a shard.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::ErrorCode;

use crate::config::Config;
use crate::shard::connection::address::{TurnedAway, Unnamed};
use crate::shard::connection::buffers::Buffers;
use crate::shard::connection::input_queue::InputQueue;
use crate::shard::connection::share::Visit;
use crate::shard::connection::timeouts::{NO_SLOT, Timeout, Timeouts};
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, SocketChange};
use crate::shard::env::Env;
use crate::shard::keys::{ConnectionKey, OfConnection};
use crate::shard::slab::Slab;
use crate::shard::work::{Host, WorkQueue, work_queue};

/// The links to clients: connections, what comes in on them, and what they are owed.
pub(crate) struct Links {
    pub(in crate::shard) slab: Slab<OfConnection, Connection>,
    pub(super) buffers: Buffers,
    /// Connections that have something to be written.
    pub(super) dirty: VecDeque<ConnectionKey>,
    pub(in crate::shard) timeouts: Timeouts,
    pub(in crate::shard) input: InputQueue,
    /// The work that waits, by address.
    pub(in crate::shard) work: WorkQueue,
    /// The time of the connection that is served.
    pub(in crate::shard) visit: Visit,
    /// The connection that is served: it is charged for all that takes time meanwhile.
    pub(in crate::shard) visited: Option<ConnectionKey>,
    /// Connections that were read whose timeouts were put off until then.
    pub(in crate::shard) read_late: Vec<ConnectionKey>,
    /// Connections that are read again.
    pub(in crate::shard) resumed: Vec<ConnectionKey>,
    /// Connections that skipped patches while they were blocked, and have drained.
    pub(in crate::shard) drained: Vec<ConnectionKey>,
    /// Connections that are not read while the mailbox of a shard is full.
    pub(in crate::shard) waiting_for_mailbox: Vec<(u16, ConnectionKey)>,
    /// Connections to which everything is written; the socket may say so.
    pub(in crate::shard) all_written: Vec<ConnectionKey>,
    /// Connections to be closed once the rooms have had their turn.
    pub(in crate::shard) doomed: Vec<(ConnectionKey, ErrorCode, String)>,
    /// Changes to sockets, in this order.
    pub(in crate::shard) socket_changes: VecDeque<SocketChange>,
    /// A connection holds more than before, and its address more than it may, or all together do.
    pub(in crate::shard) is_over_budget: bool,
    pub(in crate::shard) unnamed: Unnamed,
    pub(in crate::shard) turned_away: TurnedAway,
    /// Kept for its memory.
    pub(in crate::shard) due: Vec<Timeout>,
    /// Counts those that were taken out to be written.
    pub(super) written: u32,
    /// With more bytes unsent than this, patches and snapshots wait.
    pub(super) high_bytes: usize,
    /// The number of messages appended.
    pub(crate) messages_out: u64,
}

impl Links {
    /// No connections, for a node with these settings. No timeout is shorter than `shortest`.
    pub(crate) fn new(config: &Config, shortest: Duration) -> Self {
        Self {
            slab: Slab::new(),
            buffers: Buffers::default(),
            dirty: VecDeque::new(),
            timeouts: Timeouts::new(shortest / 16),
            input: InputQueue::default(),
            work: work_queue(),
            visit: Visit::default(),
            visited: None,
            read_late: Vec::new(),
            resumed: Vec::new(),
            drained: Vec::new(),
            waiting_for_mailbox: Vec::new(),
            all_written: Vec::new(),
            doomed: Vec::new(),
            socket_changes: VecDeque::new(),
            is_over_budget: false,
            unnamed: Unnamed::default(),
            turned_away: TurnedAway::default(),
            due: Vec::new(),
            written: 0,
            high_bytes: config.limits.session.outbox_bytes.high,
            messages_out: 0,
        }
    }

    pub(crate) fn insert(&mut self, mut connection: Connection) -> ConnectionKey {
        let is_dirty = connection.unsent() > 0;
        connection.dirty = is_dirty;
        // The wheel and the queue of this shard do not know it yet.
        connection.slot = NO_SLOT;
        (connection.unread, connection.put_off) = (false, false);
        let key = self.slab.insert(connection);
        if is_dirty {
            self.dirty.push_back(key);
        }
        key
    }

    pub(crate) fn remove(&mut self, key: ConnectionKey) -> Option<Connection> {
        self.slab.remove(key)
    }

    #[inline]
    pub(crate) fn get(&self, key: ConnectionKey) -> Option<&Connection> {
        self.slab.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        self.slab.get_mut(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns whether there is nobody left.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of the connection in a place of the slab.
    pub(crate) fn key_at(&self, place: usize) -> Option<ConnectionKey> {
        self.slab.key_at(place)
    }

    pub(crate) fn keys(&self) -> Vec<ConnectionKey> {
        self.slab.keys()
    }

    /// Returns the number of bytes of publications that wait for a connection.
    pub(crate) fn waiting_bytes(&self, key: ConnectionKey) -> usize {
        self.get(key).map_or(0, |connection| connection.waiting_bytes as usize)
    }

    /// More or less waits for a connection outside of its outbox, which counts for its budget.
    pub(crate) fn waits(&mut self, key: ConnectionKey, before: usize, after: usize) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        let bytes = (connection.waiting_bytes as usize + after).saturating_sub(before);
        connection.waiting_bytes = narrowed(bytes);
        if !std::mem::replace(&mut connection.dirty, true) {
            self.dirty.push_back(key);
        }
    }

    /// Returns whether bytes that came in would be handled now. If not, they may wait where they
    /// are.
    pub(crate) fn reads(&self, key: ConnectionKey) -> bool {
        let connection = self.get(key);
        connection.is_some_and(|connection| connection.is_closing() || connection.takes_input())
    }

    /// A connection that can be read again.
    pub(crate) fn next_resumed(&mut self) -> Option<ConnectionKey> {
        self.resumed.pop()
    }

    /// The next connection to which everything is written that it will ever get.
    pub(crate) fn next_written(&mut self) -> Option<ConnectionKey> {
        self.all_written.pop()
    }

    /// The next change to a socket.
    pub(crate) fn next_socket_change(&mut self) -> Option<SocketChange> {
        self.socket_changes.pop_front()
    }

    /// Returns whether the connection belongs to a service.
    pub(crate) fn is_served(&self, key: ConnectionKey) -> bool {
        self.get(key).is_some_and(|connection| matches!(connection.input, Input::Service(..)))
    }

    /// Returns whether the connection belongs to a service, by WebSocket.
    pub(crate) fn is_in_messages(&self, key: ConnectionKey) -> bool {
        self.get(key).is_some_and(Connection::is_in_messages)
    }

    /// Charges a connection and its address for work that was done for it alone.
    pub(crate) fn charge(&mut self, key: ConnectionKey, now: Duration, time: Duration) {
        if self.visited != Some(key)
            && let Some(connection) = self.slab.get_mut(key)
        {
            connection.taken.add(now, time);
            if !self.work.is_empty() {
                self.work.charge(&Host(Arc::clone(connection.tally.address())), time);
            }
        }
    }

    /// Gives up a connection: too much waits for it.
    pub(in crate::shard) fn doom_unread(&mut self, env: &mut Env, key: ConnectionKey) {
        let (code, text) = unread(&env.node.config);
        self.doom(env, key, code, text);
    }

    /// Gives up a connection.
    pub(in crate::shard) fn doom(
        &mut self,
        env: &mut Env,
        key: ConnectionKey,
        code: ErrorCode,
        text: String,
    ) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        if !connection.doomed && !connection.is_closing() {
            connection.doomed = true;
            env.counters.closed_too_slow += u64::from(code == ErrorCode::TooSlow);
            self.doomed.push((key, code, text));
        }
    }

    /// Moves the transport of a connection to another, which has none or gives it up.
    pub(crate) fn move_transport(&mut self, from: ConnectionKey, to: ConnectionKey) {
        let Some(source) = self.slab.get_mut(from) else { return };
        let mut moving = Connection::new(Duration::ZERO, Input::InUse, source.tally.of_nobody());
        moving.take_transport(source);
        let Some(target) = self.slab.get_mut(to) else { return };
        let old = target.outbox.take();
        target.take_transport(&mut moving);
        if target.unsent() > 0 && !target.dirty {
            target.dirty = true;
            self.dirty.push_back(to);
        }
        self.buffers.give_outbox(old);
    }

    /// Drops what waits to be read and to be written.
    pub(crate) fn drop_transport(&mut self, key: ConnectionKey) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        let tally = connection.tally.of_nobody();
        let mut none = Connection::new(Duration::ZERO, Input::InUse, tally);
        let outbox = connection.outbox.take();
        connection.take_transport(&mut none);
        self.buffers.give_outbox(outbox);
    }
}

/// Why a connection is given up for which too much waits.
pub(crate) fn unread(config: &Config) -> (ErrorCode, String) {
    let bytes_max = config.limits.session.outbox_bytes.max;
    let text = format!("limits.session.outbox_bytes.max: more than {bytes_max} bytes are unsent");
    (ErrorCode::TooSlow, text)
}

/// A number of bytes as a connection keeps it: of more than 4 GiB, no budget asks how much more.
pub(crate) fn narrowed(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
