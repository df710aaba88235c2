//! A shard: connections, sessions and rooms that share nothing with others.
//!
//! It is a state machine over events and time, with no sockets and no clock. The event loop, or a
//! test, passes in the time and the input, and takes out what is to be written, closed and sent to
//! other shards. A turn is:
//!
//! 1. [`begin`](Shard::begin) with the time, then [`mail`](Shard::mail),
//!    [`accepted`](Shard::accepted), [`accepted_for`](Shard::accepted_for),
//!    [`received`](Shard::received), [`hung_up`](Shard::hung_up) as they happen;
//! 2. [`advance`](Shard::advance): ticks, syncs, timers and timeouts that are due;
//! 3. writing: [`next_dirty`](Shard::next_dirty), [`unsent`](Shard::unsent),
//!    [`wrote`](Shard::wrote);
//! 4. taking what else came of it: connections that leave, mail, sockets that change hands or go.

pub(crate) mod channels;
pub(crate) mod connection;
mod delivery;
pub(crate) mod devices;
mod held_events;
mod input_queue;
pub(crate) mod keys;
mod lines;
mod log_limit;
pub(crate) mod mail;
mod moment;
mod pacing;
mod parcels;
mod remote;
mod room_places;
pub(crate) mod rooms;
mod services;
pub(crate) mod session;
mod slab;
mod snapshots;
mod turns;

/// A time as counters have it.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::EndReason;
use playfield_wire::ErrorCode;

use crate::addresses::Tally;
use crate::background::Background;
use crate::entropy::Entropy;
use crate::founding::Founding;
use crate::handle::NodeHandle;
use crate::memory::release;
use crate::node::Node;
use crate::proxy::Client;
use crate::room_id::RoomId;
use crate::service::{Closed, Leave};
use crate::stats::{Counters, Watch};
use channels::ShardChannels;
use connection::address::{TurnedAway, Unnamed};
use connection::http::period;
use connection::patience::Patience;
use connection::share::Visit;
use connection::timeouts::{Timeout, Timeouts};
use connection::transport::Input;
use connection::{Connection, Connections};
use delivery::Delivery;
use devices::ShardDevices;
use input_queue::InputQueue;
use keys::{ConnectionKey, RoomKey};
use lines::Lines;
use log_limit::LogLimit;
use mail::ShardMail;
use pacing::Pacing;
pub(crate) use pacing::Part;
use room_places::RoomPlaces;
use rooms::Rooms;
use rooms::busy::Busy;
use rooms::join::{JoinRequest, Joiner};
pub(crate) use rooms::lateness::Stopwatch;
use rooms::lateness::{Lateness, ShardLateness};
use rooms::schedule::Schedule;
use rooms::traffic::Traffic;
use services::HostedService;
use session::by_number::ByNumber;
use session::ending::UserMail;
use session::rates::Rates;
use session::round_trips;
use snapshots::Snapshots;

/// How often to look for a room that a waiting join needs.
const PARKED_RETRY: Duration = Duration::from_millis(5);
/// How long to wait before trying a full mailbox again.
const CONGESTED_RETRY: Duration = Duration::from_millis(1);

/// The text that clients are sent at the node's shutdown.
const SHUTTING_DOWN: &str = "the node is shutting down";

/// A change to the socket of a connection.
pub(crate) enum SocketChange {
    /// The socket has a session.
    Greeted(ConnectionKey),
    /// The socket now belongs to another connection, which has none or has lost its own.
    Moved { from: ConnectionKey, to: ConnectionKey },
    /// The socket is dropped.
    Dropped(ConnectionKey),
}

/// The state machine of one shard.
pub(crate) struct Shard {
    now: Duration,
    /// Counts the turns.
    turn: u64,
    rooms: Rooms,
    by_id: HashMap<RoomId, RoomKey>,
    /// The sessions that can be resumed, by number.
    by_session: ByNumber,
    services: Vec<HostedService>,
    /// By which services reach rooms; `None` in tests of the shard alone.
    handle: Option<NodeHandle>,
    schedule: Schedule,
    delivery: Delivery,
    timeouts: Timeouts,
    rates: Rates,
    entropy: Entropy,
    watch: Watch,
    stopwatch: Stopwatch,
    pacing: Pacing,
    /// The stopwatch when the turn began to read.
    input_began: Duration,
    input: InputQueue,
    /// The connection that is served.
    visit: Visit,
    lateness: Lateness,
    shard_lateness: ShardLateness,
    busy: Busy,
    snapshots: Snapshots,
    /// How long the last turn took to write to sockets.
    writing: Duration,
    sessions: u64,
    /// How many of them are away.
    sessions_away: u64,
    is_shutting_down: bool,
    said_goodbye: bool,
    /// Rooms to follow up at the end of the turn.
    touched: Vec<RoomKey>,
    /// Joins that wait for a room that is about to be created.
    parked: Vec<(Joiner, JoinRequest)>,
    /// Searches for rooms that wait for a room to be created, or to end.
    parked_foundings: Vec<Founding>,
    /// Connections that leave for another shard.
    departing: Vec<ConnectionKey>,
    /// Connections whose clients want a session of this shard back.
    coming_back: Vec<ConnectionKey>,
    /// Connections that want a session back and that a turn had no time for.
    coming_back_lines: Lines<ConnectionKey>,
    /// Connections that were read whose timeouts were put off until then.
    read_late: Vec<ConnectionKey>,
    /// Connections that are read again.
    resumed: Vec<ConnectionKey>,
    /// Connections that skipped patches while they were blocked, and have drained.
    drained: Vec<ConnectionKey>,
    /// Connections that are not read while the mailbox of a shard is full.
    waiting_for_mailbox: Vec<(u16, ConnectionKey)>,
    /// Connections to which everything is written; the socket may say so.
    written: Vec<ConnectionKey>,
    /// Changes to sockets, in this order.
    socket_changes: VecDeque<SocketChange>,
    /// Connections that services have given up, and why.
    leaving: Vec<Leave>,
    /// Mail about sessions of users, for this and other shards.
    user_posts: VecDeque<(u16, UserMail)>,
    /// A connection holds more than before, and its address more than it may, or all together do.
    is_over_budget: bool,
    unnamed: Unnamed,
    turned_away: TurnedAway,
    /// Kept for its memory.
    due: Vec<Timeout>,
}

impl Shard {
    pub(crate) fn new(
        index: u16,
        node: Arc<Node>,
        background: Arc<dyn Background>,
        mut entropy: Entropy,
        watch: Watch,
        stopwatch: Stopwatch,
    ) -> Self {
        let shards = node.shards;
        let patience = node.room_types.iter().map(|room_type| Patience::of(room_type.settings));
        let shortest = patience
            .chain([Patience::of_node(&node.config)])
            .fold(node.config.hello_timeout(), |shortest, patience| shortest.min(patience.ask))
            .min(period(&node.config))
            .min(node.config.message_timeout());
        let silent = node.fleet.as_ref().and_then(|fleet| fleet.silent);
        let shortest = silent.map_or(shortest, |silent| shortest.min(silent / 2));
        let periods = node.room_types.iter().filter_map(|of| round_trips::period(of.settings));
        let shortest = periods.fold(shortest, Duration::min);
        let rates = Rates::new(&node.config);
        let busy = Busy::new(node.room_types.len());
        let config = &node.config;
        let connections = Connections::new(config.resume_bytes_max, config.outbox_high_bytes);
        let channels = ShardChannels::new(&node, index, entropy.number(), entropy.hasher());
        let delivery = Delivery {
            node,
            shard: index,
            connections,
            channels,
            devices: ShardDevices::default(),
            outgoing: (0..shards).map(|_| VecDeque::new()).collect(),
            local_foundings: Vec::new(),
            room_places: RoomPlaces::default(),
            local_mail: VecDeque::new(),
            remote_dirty: Vec::new(),
            doomed: Vec::new(),
            given_up: Vec::new(),
            refusals: VecDeque::new(),
            congested: vec![false; shards],
            background,
            counters: Counters::default(),
            publications_logged: LogLimit::default(),
            pushes_logged: LogLimit::default(),
            visited: None,
            traffic: Traffic::default(),
        };
        Self {
            now: Duration::ZERO,
            turn: 0,
            rooms: Rooms::new(),
            by_id: HashMap::new(),
            by_session: ByNumber::default(),
            services: Vec::new(),
            handle: None,
            schedule: Schedule::default(),
            delivery,
            timeouts: Timeouts::new(shortest / 16),
            rates,
            entropy,
            watch,
            stopwatch,
            pacing: Pacing::default(),
            input_began: Duration::ZERO,
            input: InputQueue::default(),
            visit: Visit::default(),
            lateness: Lateness::default(),
            shard_lateness: ShardLateness::default(),
            busy,
            snapshots: Snapshots::default(),
            writing: Duration::ZERO,
            sessions: 0,
            sessions_away: 0,
            is_shutting_down: false,
            said_goodbye: false,
            touched: Vec::new(),
            parked: Vec::new(),
            parked_foundings: Vec::new(),
            departing: Vec::new(),
            coming_back: Vec::new(),
            coming_back_lines: Lines::default(),
            read_late: Vec::new(),
            resumed: Vec::new(),
            drained: Vec::new(),
            waiting_for_mailbox: Vec::new(),
            written: Vec::new(),
            socket_changes: VecDeque::new(),
            leaving: Vec::new(),
            user_posts: VecDeque::new(),
            is_over_budget: false,
            unnamed: Unnamed::default(),
            turned_away: TurnedAway::default(),
            due: Vec::new(),
        }
    }

    /// Lets services reach the node's rooms.
    pub(crate) fn reach_by(&mut self, handle: NodeHandle) {
        self.handle = Some(handle);
    }

    /// A turn begins. `now` is the time since the node started, and never goes back.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.delivery.channels.now = self.now;
        self.turn += 1;
        self.schedule.begin(self.now);
        self.pacing.begin(self.stopwatch.read());
        self.delivery.outgoing.iter_mut().for_each(release);
        release(&mut self.delivery.local_mail);
    }

    /// A client connected.
    pub(crate) fn accepted(&mut self, address: SocketAddr, tally: Tally) -> ConnectionKey {
        let input = Input::Unknown(Box::new(Client::named(address)));
        let connection = Connection::new(self.now, input, tally);
        let key = self.delivery.connections.insert(connection);
        self.look_at(key, self.now + self.delivery.node.config.hello_timeout());
        if self.is_shutting_down {
            self.go_away(key, SHUTTING_DOWN);
        }
        key
    }

    /// Whether bytes that came in would be handled now. If not, they may wait where they are.
    pub(crate) fn reads(&self, key: ConnectionKey) -> bool {
        let connection = self.delivery.connections.get(key);
        connection.is_some_and(|connection| connection.is_closing() || connection.takes_input())
    }

    /// A connection that can be read again.
    pub(crate) fn next_resumed(&mut self) -> Option<ConnectionKey> {
        self.resumed.pop()
    }

    /// Begins to serve a connection: what was kept of its input is handled.
    pub(crate) fn visit(&mut self, key: ConnectionKey) {
        self.visit.begin(self.stopwatch.read());
        self.delivery.visited = Some(key);
        if let Some(connection) = self.delivery.connections.get_mut(key) {
            connection.pause.turn = false;
            self.handle_kept(key);
        }
    }

    /// The visit is over. Whether the connection has to be served again, because it has input left.
    pub(crate) fn visited(&mut self, key: ConnectionKey) -> bool {
        self.delivery.visited = None;
        let time = self.stopwatch.read().saturating_sub(self.visit.began());
        let Some(connection) = self.delivery.connections.get_mut(key) else { return false };
        connection.taken.add(self.now, time);
        self.input.lines.took(time);
        let comes_back = connection.pause.turn;
        if std::mem::take(&mut connection.put_off) {
            if connection.greeting.is_some() {
                // The hello has come just now. To decide about it, there is the whole time.
                connection.heard = self.now.into();
            }
            self.read_late.push(key);
        }
        self.count_bytes(key);
        comes_back
    }

    /// Whether a connection took much of the shard's time lately, so that others come first.
    pub(crate) fn takes_much(&self, key: ConnectionKey) -> bool {
        let connection = self.delivery.connections.get(key);
        connection.is_some_and(|connection| connection.taken.is_much(self.now))
    }

    /// The thread works at least until then. If the next turn begins later, it has waited.
    pub(crate) fn is_awake_until(&mut self, at: Duration) {
        self.schedule.is_awake_until(at);
    }

    /// When the next room is due; that may be long past.
    pub(crate) fn room_due_at(&self) -> Option<Duration> {
        self.schedule.next()
    }

    /// Does all that is due by now.
    pub(crate) fn advance(&mut self) {
        if !self.parked.is_empty() {
            self.retry_parked();
        }
        if !self.parked_foundings.is_empty() {
            self.retry_parked_foundings();
        }
        if !(self.coming_back.is_empty() && self.coming_back_lines.is_empty()) {
            self.resume_sessions();
        }
        self.deliver_local_mail();
        self.run_due_rooms();
        self.wake_services();
        self.delivery.channels.home.expire(self.now);
        self.expire_commands();
        self.expire_connections();
        self.keep_to_budget();
        self.write_snapshots();
        self.settle();
    }

    /// When [`advance`](Self::advance) has something to do, even if nothing comes in.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let at_once = !self.resumed.is_empty()
            || !self.coming_back_lines.is_empty()
            || self.is_over_budget
            || !self.delivery.local_mail.is_empty()
            || !self.delivery.devices.posts.is_empty()
            || !self.user_posts.is_empty()
            || !self.delivery.local_foundings.is_empty()
            || !self.touched.is_empty()
            || !self.leaving.is_empty();
        let soon = |waits: bool, after: Duration| waits.then(|| self.now + after);
        let candidates = [
            soon(at_once, Duration::ZERO),
            soon(!(self.parked.is_empty() && self.parked_foundings.is_empty()), PARKED_RETRY),
            soon(!self.coming_back.is_empty(), PARKED_RETRY),
            soon(self.delivery.congested.contains(&true), CONGESTED_RETRY),
            self.schedule.next(),
            self.shard_lateness.next(),
            self.busy.next(),
            self.snapshots.deadline(),
            self.next_service_wake(),
            self.delivery.channels.home.next(),
            self.delivery.devices.next(),
            self.timeouts.next(),
        ];
        candidates.into_iter().flatten().min()
    }

    /// The next connection that has something to write.
    pub(crate) fn next_dirty(&mut self) -> Option<ConnectionKey> {
        loop {
            if let Some(key) = self.delivery.connections.next_dirty() {
                // Nothing is written to it now, so what it holds is not counted there.
                let connection = self.delivery.connections.get(key);
                if connection.is_some_and(|connection| {
                    connection.blocked || connection.held || connection.waiting_bytes > 0
                }) {
                    self.count_bytes(key);
                }
                return Some(key);
            }
            // What a connection missed while it was blocked may be due now that it has drained.
            let drained = self.drained.pop()?;
            self.catch_up_all(drained);
        }
    }

    fn catch_up_all(&mut self, key: ConnectionKey) {
        if self.go_on_returning(key) {
            return;
        }
        self.delivery.catch_up_channels(key);
        let shard = self.delivery.shard;
        let Some(session) = self.delivery.connections.session_mut(key) else { return };
        let seats: Vec<_> = session.rooms.iter().filter_map(|room| room.seat).collect();
        for seat in seats.into_iter().filter(|seat| seat.shard == shard) {
            self.catch_up(seat.room, seat.member);
        }
    }

    /// The bytes to write to a connection.
    pub(crate) fn unsent(&self, key: ConnectionKey) -> &[u8] {
        self.delivery.connections.unsent(key)
    }

    /// The members of this shard's rooms.
    #[cfg(test)]
    pub(crate) fn members(&self) -> usize {
        let rooms = self.rooms.keys().into_iter().filter_map(|key| self.rooms.get(key));
        rooms.map(|hosted| hosted.members.len()).sum()
    }

    /// The node's rooms, and their taken and reserved seats.
    #[cfg(test)]
    pub(crate) fn load(&self) -> usize {
        self.delivery.node.directory.load()
    }

    /// How much memory a connection's buffers take.
    #[cfg(test)]
    pub(crate) fn buffered(&self, key: ConnectionKey) -> usize {
        self.delivery.connections.get(key).map_or(0, Connection::buffered)
    }

    /// How many bytes of events wait for a session to be in their rooms.
    #[cfg(test)]
    pub(crate) fn entering_bytes(&self, key: ConnectionKey) -> usize {
        self.delivery.connections.entering_bytes(key)
    }

    /// Whether a snapshot that waits would be written now.
    #[cfg(test)]
    pub(crate) fn has_snapshots_due(&self) -> bool {
        self.snapshots.deadline().is_some_and(|at| at <= self.now)
    }

    /// How many bytes of publications wait for a connection.
    #[cfg(test)]
    pub(crate) fn waiting_bytes(&self, key: ConnectionKey) -> usize {
        self.delivery.connections.waiting_bytes(key)
    }

    /// How many bytes wait to be written to a connection.
    pub(crate) fn unsent_bytes(&self, key: ConnectionKey) -> usize {
        self.delivery.connections.get(key).map_or(0, Connection::unsent)
    }

    /// Whether the last write left bytes behind, so that another is of no use until the socket says
    /// so.
    pub(crate) fn is_blocked(&self, key: ConnectionKey) -> bool {
        self.delivery.connections.get(key).is_some_and(|connection| connection.blocked)
    }

    /// The socket took this many bytes.
    pub(crate) fn wrote(&mut self, key: ConnectionKey, bytes: usize) {
        self.delivery.counters.bytes_out += bytes as u64;
        // Space in a full buffer is a sign of life: the client reads, if slowly.
        if bytes > 0
            && let Some(connection) = self.delivery.connections.get_mut(key)
            && connection.blocked
        {
            connection.heard = self.now.into();
            connection.pinged = false;
        }
        if self.delivery.connections.wrote(key, bytes) {
            self.flushed(key);
        } else if bytes > 0
            && let Some(connection) = self.delivery.connections.get_mut(key)
            && let Input::Http(http) = &mut connection.input
        {
            http.wrote(self.now);
        }
        self.count_bytes(key);
    }

    /// The thread waited this long for something to do.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.delivery.counters.waits_ns += nanoseconds(time);
    }

    /// The time by the shard's stopwatch.
    pub(crate) fn stopwatch(&self) -> Duration {
        self.stopwatch.read()
    }

    /// Accounts for the writes to sockets between this time on the stopwatch and now.
    pub(crate) fn wrote_since(&mut self, began: Duration) {
        self.writing = self.stopwatch.read().saturating_sub(began);
        self.delivery.counters.writes_ns += nanoseconds(self.writing);
    }

    /// The next connection to which everything is written that it will ever get.
    pub(crate) fn next_written(&mut self) -> Option<ConnectionKey> {
        self.written.pop()
    }

    /// The next change to a socket.
    pub(crate) fn next_socket_change(&mut self) -> Option<SocketChange> {
        self.socket_changes.pop_front()
    }

    /// Mail to another shard, oldest first. What can't be sent stays there.
    pub(crate) fn outgoing(&mut self, shard: u16) -> &mut VecDeque<ShardMail> {
        &mut self.delivery.outgoing[usize::from(shard)]
    }

    /// The turn's last word: output for members elsewhere goes into the mail, after whatever was
    /// written in the turn.
    pub(crate) fn finish(&mut self) {
        self.ship_remote_output();
    }

    /// Begins the shutdown: the rooms end, and no players come in. Clients stay for now.
    pub(crate) fn close_rooms(&mut self) {
        if std::mem::replace(&mut self.is_shutting_down, true) {
            return;
        }
        for key in self.rooms.keys() {
            self.call(key, |room, at, out| {
                room.close(at, EndReason::ShuttingDown, SHUTTING_DOWN, out);
            });
        }
        // They are refused now.
        self.retry_parked();
        self.retry_parked_foundings();
        self.settle();
    }

    /// Whether all rooms have ended, and what they sent elsewhere has left.
    pub(crate) fn has_closed_rooms(&self) -> bool {
        self.is_shutting_down
            && self.rooms.len() == 0
            && self.delivery.outgoing.iter().all(VecDeque::is_empty)
    }

    /// Says goodbye to everyone. Rooms that have not ended are dropped.
    pub(crate) fn say_goodbye(&mut self) {
        if std::mem::replace(&mut self.said_goodbye, true) {
            return;
        }
        for key in self.rooms.keys() {
            self.call(key, |room, at, out| room.abandon(at, out));
        }
        self.settle();
        for key in self.delivery.connections.keys() {
            let connection = self.delivery.connections.get(key);
            if connection.is_some_and(|connection| connection.session.is_some()) {
                self.goodbye(key, ErrorCode::ShuttingDown, SHUTTING_DOWN, None);
            } else if !self.end_http(key) {
                self.end_service(key, &Closed::ShuttingDown);
                self.go_away(key, SHUTTING_DOWN);
            }
        }
        self.settle();
    }

    /// Whether there is nobody left.
    pub(crate) fn is_empty(&self) -> bool {
        self.delivery.connections.len() == 0
    }

    /// The counters so far, and the present gauges.
    pub(crate) fn counters(&mut self) -> Counters {
        let lateness_us_max = std::mem::take(&mut self.delivery.counters.lateness_us_max);
        let evicted = self.delivery.channels.home.evicted();
        Counters {
            turns: self.turn,
            connections: self.delivery.connections.len() as u64 - self.sessions_away,
            sessions: self.sessions,
            sessions_away: self.sessions_away,
            rooms: self.rooms.len() as u64,
            channels: self.delivery.channels.home.len() as u64,
            subscriptions: self.delivery.channels.subscriptions,
            history_evicted: evicted.by_node,
            history_evicted_by_address: evicted.by_creator,
            devices: self.delivery.devices.count,
            devices_silent: self.delivery.devices.silent,
            devices_taken_over: self.delivery.devices.taken_over,
            messages_out: self.delivery.connections.messages_out,
            lateness_us_max,
            clients_unnamed: self.unnamed.count,
            ..self.delivery.counters
        }
    }
}
