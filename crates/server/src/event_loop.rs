//! The edge of a shard: sockets, the clock, and the turn.

mod accept;
mod behind_proxy;
mod gated;
mod layer;
mod moves;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::SockRef;
use tokio::runtime::Handle;

use accept::Listener;
use layer::{Tls, part};

use crate::clock::{Clock, Eviction, Pace};
use crate::config::Config;
use crate::http::Handover;
use crate::mailbox::{Backlog, Mailbox, Parcel};
use crate::memory::{release, shrink_table};
use crate::pulse::ControlPulse;
use crate::shard::Part;
use crate::shard::Shard;
use crate::shard::SocketChange;
use crate::shard::keys::ConnectionKey;
use crate::stats::Published;
use crate::sys;
use crate::tls::TlsContext;
use crate::upgrade::PassedOn;
use crate::upgrade::gate::{Gate, Stage};

/// State that the shards' threads share.
pub(crate) struct SharedRuntime {
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) clock: Clock,
    pub(crate) pace: Pace,
    /// The node is to stop.
    pub(crate) stops: AtomicBool,
    /// The gate at which the shards stop for an upgrade.
    pub(crate) gate: Gate,
    /// No other process touches the connections that it has passed on.
    pub(crate) is_alone: AtomicBool,
    /// During a shutdown, the shards whose rooms have ended.
    pub(crate) closed: Vec<AtomicBool>,
    /// Connections of all shards.
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_max: usize,
    pub(crate) shutdown_timeout: Duration,
    /// The address that clients of rooms connect to.
    pub(crate) rooms_addr: OnceLock<SocketAddr>,
    pub(crate) tls: Option<Arc<TlsContext>>,
    pub(crate) tls_only: bool,
    /// The descriptor tables, if each shard has its own.
    pub(crate) tables: Option<Arc<sys::Tables>>,
    pub(crate) work: Work,
    /// The runtime of the control thread, once it has one.
    pub(crate) control: OnceLock<Handle>,
    pub(crate) control_pulse: ControlPulse,
    /// The queue for connections that speak HTTP.
    pub(crate) handover: Handover,
}

/// The amount of background work.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) tasks: Arc<AtomicUsize>,
    /// Computations that wait for a thread.
    pub(crate) computations: AtomicUsize,
    /// Clients whose authentication waits.
    pub(crate) authentications: Arc<AtomicUsize>,
}

impl SharedRuntime {
    /// The state for shards with these mailboxes and the descriptor table of the process, without
    /// TLS.
    pub(crate) fn new(
        config: &Config,
        pace: Pace,
        mailboxes: Vec<Mailbox>,
        handover: Handover,
    ) -> Self {
        Self {
            closed: mailboxes.iter().map(|_| AtomicBool::new(false)).collect(),
            mailboxes,
            clock: Clock::start(pace, Duration::ZERO),
            pace,
            stops: AtomicBool::new(false),
            gate: Gate::default(),
            is_alone: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            connections_max: config.limits.connections.total,
            shutdown_timeout: config.timeouts.shutdown,
            rooms_addr: OnceLock::new(),
            tls: None,
            tls_only: config.tls.only,
            tables: None,
            work: Work::default(),
            control: OnceLock::new(),
            control_pulse: ControlPulse::default(),
            handover,
        }
    }

    /// The rooms of a shard have ended, or the shard has.
    pub(crate) fn close(&self, shard: usize) {
        self.closed[shard].store(true, Ordering::Release);
        self.wake_all();
    }

    /// Returns whether no shard has rooms any more.
    fn has_closed(&self) -> bool {
        self.closed.iter().all(|closed| closed.load(Ordering::Acquire))
    }

    /// Counts a connection in the descriptor table of a shard, if there is space.
    fn takes(&self, shard: usize) -> bool {
        self.tables.as_deref().is_none_or(|tables| tables.takes(shard))
    }

    /// Counts a connection of the control thread, if there may be one more.
    pub(crate) fn counts_connection(&self) -> bool {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let has_space = before < self.connections_max && self.takes(self.mailboxes.len());
        if !has_space {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
        has_space
    }

    /// A connection has left the descriptor table of a shard.
    pub(crate) fn gives_back(&self, shard: usize) {
        if let Some(tables) = &self.tables {
            tables.gives_back(shard);
        }
    }

    /// Begins a turn of each shard.
    pub(crate) fn wake_all(&self) {
        for mailbox in &self.mailboxes {
            if let Err(error) = mailbox.wake() {
                log::warn!("a shard could not be woken: {error}");
            }
        }
    }
}

pub(crate) use accept::{Listening, Sockets};
pub(crate) use layer::Layer;

pub(crate) const WAKER: Token = Token(0);
/// The token of the first listener.
const LISTENERS: usize = 1;

/// The most bytes that are read from a connection at once.
const READ_BYTES: usize = 64 << 10;
/// The most bytes that are read from a connection, one read after another, before others are
/// served. To switch after each read costs half as much again in the system.
const READ_AT_ONCE_BYTES: usize = 256 << 10;
/// The space before that, for the beginning of a message of which the end is read.
const KEPT_BYTES: usize = READ_BYTES;
const EVENTS: usize = 1024;

/// The bytes that the system keeps of what a client with a session has not acknowledged, before
/// bytes wait in the connection's outbox. Linux takes twice as much, for its own data.
const SEND_BUFFER_BYTES: usize = 128 << 10;
/// The most time that it takes to ask what has happened, without waiting for it.
const POLL: Duration = Duration::from_micros(50);
/// When connections have been answered this much, the answers are written before more is read: as
/// long as all of it lies in the processor's cache.
const EARLY_WRITE_BYTES: usize = 64 << 10;
/// A shorter answer from a room waits for what others cause, so that all leaves in one write: a
/// write costs as much as handling some messages.
const EARLY_WRITE_MIN: usize = 1 << 10;

/// The longest wait at the gate of an upgrade, where whatever there is to do wakes the shard.
const GATE_LOOK: Duration = Duration::from_millis(5);

/// A room that is late by more than this comes before output: what is half written is better
/// finished.
const ROOM_BEFORE_OUTPUT: Duration = Duration::from_millis(4);
/// The time for which output is written in one turn even if rooms are late.
const OUTPUT_PER_TURN: Duration = Duration::from_millis(5);

/// A shard's thread: the state machine, and the sockets around it.
pub(crate) struct EventLoop {
    index: usize,
    shard: Shard,
    shared: Arc<SharedRuntime>,
    published: Arc<Published>,
    poll: Poll,
    listeners: Vec<Listener>,
    /// The token of the connection in place 0.
    first_connection: usize,
    /// The listeners of this shard are the only ones, and deal connections to all.
    deals: bool,
    /// By the connections' places.
    sockets: Vec<Option<Socket>>,
    /// Parcels of other threads that there was no time for.
    backlog: Backlog,
    /// Whether some of it may be left for the next turn.
    mail_waits: bool,
    /// Sockets without a connection, which are closed as long as there is time: the system takes
    /// tens of microseconds for each.
    closing: VecDeque<Socket>,
    /// Connections whose sockets have space again.
    writable: VecDeque<ConnectionKey>,
    /// Connections that were served since answers were last written, and have any. Kept for its
    /// memory.
    answered: Vec<ConnectionKey>,
    /// The number of bytes in these answers.
    answered_bytes: usize,
    /// Whether some output was left for the next turn.
    writes_on: bool,
    /// The buffer that all connections are read into, from [`KEPT_BYTES`].
    buffer: Box<[u8]>,
    tls: Tls,
    eviction: Option<Eviction>,
    eviction_ns: u64,
    refused: u64,
    /// The stage that this shard has reached on the way to an upgrade.
    gate_stage: Stage,
    /// The connections that another process is handed.
    passed: Vec<ConnectionKey>,
    /// The connections whose output that process writes.
    held_back: Vec<ConnectionKey>,
    /// The connections of another process that go on here, until it lets go of them.
    passed_on: Vec<PassedOn>,
    /// The number of parcels that were handled since this was reported.
    mail_taken: u64,
    /// When a shutdown ends.
    ends_at: Option<Duration>,
    /// This shard's rooms have ended, and the others know.
    has_closed: bool,
    said_goodbye: bool,
}

struct Socket {
    stream: TcpStream,
    layer: Layer,
    key: ConnectionKey,
    /// There may be something to read.
    readable: bool,
    /// Its connection waits to be served.
    queued: bool,
    /// The client has closed its half.
    ends: bool,
    /// The connection was reset, or both ends have closed their halves.
    is_gone: bool,
}

impl EventLoop {
    pub(crate) fn new(
        index: usize,
        shard: Shard,
        shared: Arc<SharedRuntime>,
        published: Arc<Published>,
        poll: Poll,
        sockets: Sockets,
    ) -> io::Result<Self> {
        let Sockets { listening, deals, passed_on } = sockets;
        let mut listeners = Vec::new();
        for (number, listening) in listening.into_iter().enumerate() {
            let mut listener = Listener::new(listening, index);
            poll.registry().register(
                &mut listener.socket,
                Token(LISTENERS + number),
                Interest::READABLE,
            )?;
            listeners.push(listener);
        }
        let eviction = Eviction::new(shared.pace.evict_bytes)?;
        Ok(Self {
            index,
            shard,
            tls: Tls::new(shared.tls.clone(), shared.tls_only),
            shared,
            published,
            poll,
            first_connection: LISTENERS + listeners.len(),
            listeners,
            deals,
            sockets: Vec::new(),
            closing: VecDeque::new(),
            backlog: Backlog::default(),
            mail_waits: false,
            writable: VecDeque::new(),
            answered: Vec::new(),
            answered_bytes: 0,
            writes_on: false,
            buffer: vec![0; KEPT_BYTES + READ_BYTES].into_boxed_slice(),
            eviction,
            eviction_ns: 0,
            refused: 0,
            gate_stage: Stage::Open,
            passed: Vec::new(),
            held_back: Vec::new(),
            passed_on,
            mail_taken: 0,
            ends_at: None,
            has_closed: false,
            said_goodbye: false,
        })
    }

    /// Lets rooms of another process go on, if there are any.
    pub(crate) fn go_on(&mut self) {
        self.shard.go_on_thawed(self.now());
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.is_over() {
            let timeout = self.timeout();
            let began = self.now();
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let waited = self.now().saturating_sub(began);
            self.evict()?;
            if self.turn(&events, waited) {
                self.close_for_successor(&mut events);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes a measured node's caches cold.
    fn evict(&mut self) -> io::Result<()> {
        let Some(eviction) = &mut self.eviction else { return Ok(()) };
        self.eviction_ns += eviction.run()?.as_nanos() as u64;
        Ok(())
    }

    /// One turn: everything that came in, everything that is due, and then everything that is owed,
    /// at once.
    ///
    /// The thread has waited for events for this long. Returns whether another process has taken
    /// over.
    fn turn(&mut self, events: &Events, waited: Duration) -> bool {
        let now = self.now();
        self.shard.env.waited(waited);
        self.published.pulse.turn_began_ms.store(now.as_millis() as u64 + 1, Ordering::Relaxed);
        self.shard.begin(now);
        self.tls.begin();
        self.stop_if_told();
        // An upgrade has failed, and another may have begun since.
        if self.shared.gate.stage() < self.gate_stage {
            self.leave_gate();
        }
        if self.shared.gate.stage() != Stage::Open {
            let is_over = self.gated_turn(events);
            self.published.pulse.rest();
            if is_over || self.shared.gate.stage() != Stage::Open {
                return is_over;
            }
            self.leave_gate();
        }
        if !self.passed_on.is_empty() && self.shared.is_alone.load(Ordering::Acquire) {
            self.take_passed_on();
        }
        // The last output of rooms elsewhere is in the mailbox when they have ended.
        let is_last = self.has_to_part();
        self.take_mail(is_last);
        if is_last {
            self.said_goodbye = true;
            self.shard.say_goodbye();
        }
        self.note(events);
        self.accept();
        self.read();
        self.shard.advance();
        self.change_sockets();
        let began = self.shard.env.stopwatch();
        self.write();
        self.shard.wrote_since(began);
        self.hand_over();
        self.post();
        self.change_sockets();
        self.close_sockets();
        shrink_table(&mut self.sockets);
        if !self.has_closed && self.shard.has_closed_rooms() {
            self.has_closed = true;
            self.shared.close(self.index);
        }

        let mut counters = crate::stats::Counters {
            connections_refused: self.refused,
            eviction_ns: self.eviction_ns,
            ..self.shard.counters()
        };
        self.tls.count(&mut counters);
        self.published.publish(&counters);
        self.published.pulse.rest();
        false
    }

    /// Handles what other threads sent: all of it if it is the last.
    fn take_mail(&mut self, is_last: bool) {
        let mut backlog = std::mem::take(&mut self.backlog);
        let shared = Arc::clone(&self.shared);
        self.shard.pacing.begin_part(&self.shard.env, Part::Mail);
        let mailbox = &shared.mailboxes[self.index];
        let is_over = |this: &mut Self| !is_last && this.shard.is_part_over();
        self.mail_waits = backlog.work_off(mailbox, self, is_over, |this, parcel| {
            this.mail_taken += 1;
            match parcel {
                Parcel::Mail(mail) => this.shard.mail(mail),
                Parcel::Moved { socket, layer, moving } => this.take_over(socket, layer, moving),
                Parcel::Returned { socket, layer, http } => this.take_back(socket, layer, http),
                Parcel::Accepted(newcomer) => this.welcome(newcomer),
            }
        });
        self.shard.pacing.end_part(&self.shard.env);
        self.backlog = backlog;
    }

    /// Notes what the system says can be read and written.
    fn note(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                WAKER => {}
                // After the shutdown began there are no listeners.
                Token(token) if token < self.first_connection => {
                    if let Some(listener) = self.listeners.get_mut(token - LISTENERS) {
                        listener.accepts_at = Some(Duration::ZERO);
                    }
                }
                Token(token) => {
                    let place = token - self.first_connection;
                    let Some(Some(socket)) = self.sockets.get_mut(place) else { continue };
                    let key = socket.key;
                    let is_gone = event.is_error() || event.is_write_closed();
                    socket.ends |= event.is_read_closed();
                    socket.is_gone |= is_gone;
                    if event.is_readable() || event.is_read_closed() || is_gone {
                        socket.readable = true;
                        self.queue(key);
                    }
                    if event.is_writable() {
                        self.writable.push_back(key);
                    }
                }
            }
        }
    }

    /// Puts a socket in the place of its connection, and registers it.
    fn place(&mut self, key: ConnectionKey, mut stream: TcpStream, layer: Layer) {
        let place = key.index();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(
            &mut stream,
            Token(place + self.first_connection),
            interest,
        );
        let [readable, queued, ends, is_gone] = [false; 4];
        self.put(key, Socket { stream, layer, key, readable, queued, ends, is_gone });
        if let Err(error) = registered {
            log::warn!("a connection can't be watched: {error}");
            self.shard.by_outlet(|out| out.drop_connection(key));
        }
    }

    fn socket(&mut self, key: ConnectionKey) -> Option<&mut Socket> {
        self.sockets.get_mut(key.index())?.as_mut().filter(|socket| socket.key == key)
    }

    /// Lets a connection wait to be served, unless it does already.
    fn queue(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key)
            && !socket.queued
        {
            socket.queued = true;
            self.shard.links.queue_input(key, self.shard.env.now);
        }
    }

    /// Serves each waiting connection once, as long as there is time.
    fn read(&mut self) {
        self.queue_resumed();
        self.answered.clear();
        self.answered_bytes = 0;
        self.shard.begin_work();
        while let Some(key) = self.shard.next_input() {
            // A session that was resumed since the last one has another socket.
            self.change_sockets();
            let before = self.shard.links.unsent(key).len();
            self.serve(key);
            let bytes = self.shard.links.unsent(key).len().saturating_sub(before);
            if bytes >= EARLY_WRITE_MIN || bytes > 0 && self.shard.links.is_served(key) {
                self.answered.push(key);
                self.answered_bytes += bytes;
                if self.answered_bytes > EARLY_WRITE_BYTES {
                    self.write_answers();
                }
            }
        }
        self.shard.end_input();
    }

    /// Returns whether a room is late by more than this.
    fn is_room_late(&self, now: Duration, by: Duration) -> bool {
        self.shard.host.due_at().is_some_and(|at| at + by <= now)
    }

    /// Writes the answers to connections that were served in this turn, before it is over: the
    /// newest first, which are in the nearest cache.
    fn write_answers(&mut self) {
        while let Some(key) = self.answered.pop() {
            if !self.shard.links.is_blocked(key) {
                self.flush(key);
            }
        }
        self.answered_bytes = 0;
        // Who had too much unsent is read again in this turn, if it is written now.
        self.queue_resumed();
    }

    /// Lets connections wait to be served that are read again.
    fn queue_resumed(&mut self) {
        while let Some(key) = self.shard.links.next_resumed() {
            self.queue(key);
        }
    }

    /// Handles what came from a connection, for as long as it is its turn.
    fn serve(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key) {
            socket.queued = false;
            self.shard.visit(key);
            self.read_one(key);
            if self.shard.visited(key) {
                return self.queue(key);
            }
            self.follow_up(key);
        }
    }

    /// Reads from a connection until nothing is left, it was read enough for now, or the shard
    /// takes no more. What is not read now stays where it is.
    fn read_one(&mut self, key: ConnectionKey) {
        let mut read = 0;
        while read < READ_AT_ONCE_BYTES {
            let bytes = self.read_piece(key);
            read += bytes;
            if bytes < READ_BYTES {
                return;
            }
            // Answers that pile up are written between reads: the connection's part of the system
            // is in the cache now, and the client can go on.
            if !self.shard.links.reads(key) && !self.shard.links.is_blocked(key) {
                self.flush(key);
            }
        }
    }

    /// Reads once from a connection, if it may be read. Returns how many bytes came.
    fn read_piece(&mut self, key: ConnectionKey) -> usize {
        let Some(Some(socket)) = self.sockets.get_mut(key.index()) else { return 0 };
        if socket.key != key {
            return 0;
        }
        while socket.readable && self.shard.links.reads(key) && self.tls.reads(socket) {
            let read = if socket.layer.is_ended() {
                Ok(0)
            } else {
                socket.stream.read(&mut self.buffer[KEPT_BYTES..])
            };
            match read {
                Ok(0) => {
                    socket.readable = false;
                    self.shard.by_outlet(|out| out.hung_up(key));
                }
                Ok(bytes) => {
                    let buffer = &mut self.buffer[..KEPT_BYTES + bytes];
                    if matches!(socket.layer, Layer::Plain) {
                        self.shard.received_behind(key, buffer, KEPT_BYTES);
                    } else {
                        self.tls.received(socket, &mut self.shard, &mut buffer[KEPT_BYTES..]);
                    }
                    if bytes == READ_BYTES {
                        return bytes;
                    }
                    socket.readable = socket.ends || !sys::SHORT_READ_EMPTIES;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => socket.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    socket.readable = false;
                    self.shard.by_outlet(|out| out.drop_connection(key));
                }
            }
        }
        0
    }

    /// Decides what follows for a connection that was served and is not read for now.
    fn follow_up(&mut self, key: ConnectionKey) {
        let Some(Some(socket)) = self.sockets.get(key.index()) else { return };
        if socket.key != key {
            return;
        }
        if socket.readable && self.shard.links.reads(key) {
            self.queue(key);
        } else if socket.is_gone {
            self.shard.by_outlet(|out| out.vanished(key));
        } else if socket.ends {
            self.shard.by_outlet(|out| out.half_closed(key));
        }
    }

    /// Writes what every connection is owed.
    fn write(&mut self) {
        let began = self.now();
        // What drained connections have missed meanwhile follows.
        self.writes_on =
            !(self.write_new(began) && self.write_where_space(began) && self.write_new(began));
        while let Some(key) = self.shard.links.next_written() {
            if let Some(socket) = self.socket(key) {
                part(socket);
            }
        }
    }

    /// Writes what is new, the newest first: that is the output of rooms that were late. `false` if
    /// a room is late again.
    fn write_new(&mut self, began: Duration) -> bool {
        while let Some(key) = self.shard.next_dirty() {
            let waits = self.gate_stage > Stage::Draining && self.holds_back(key);
            if !waits && !self.shard.links.is_blocked(key) {
                self.flush(key);
                if self.is_output_over(began) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether it is time for rooms again, after output was written since `began`.
    fn is_output_over(&self, began: Duration) -> bool {
        // At the gate none runs, however late it is.
        if self.gate_stage > Stage::Draining || self.shard.host.due_at().is_none() {
            return false; // Without asking for the time after each write.
        }
        let now = self.now();
        self.is_room_late(now, ROOM_BEFORE_OUTPUT) && now.saturating_sub(began) >= OUTPUT_PER_TURN
    }

    /// Writes where a socket was full and has space again. `false` if a room is late.
    fn write_where_space(&mut self, began: Duration) -> bool {
        while let Some(key) = self.writable.pop_front() {
            self.flush(key);
            if self.is_output_over(began) {
                return false;
            }
        }
        true
    }

    /// Writes to one connection as much as its socket takes.
    fn flush(&mut self, key: ConnectionKey) {
        let Some(Some(socket)) = self.sockets.get_mut(key.index()) else { return };
        if matches!(socket.layer, Layer::Tls(_)) {
            if socket.key == key {
                self.tls.flush(socket, &mut self.shard);
            }
            return;
        }
        loop {
            let bytes = self.shard.links.unsent(key);
            if bytes.is_empty() || socket.key != key {
                return;
            }
            match socket.stream.write(bytes) {
                Ok(written) => self.shard.wrote(key, written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.shard.wrote(key, 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.shard.by_outlet(|out| out.drop_connection(key)),
            }
        }
    }

    /// Puts mail into the mailboxes of other shards.
    fn post(&mut self) {
        for target in 0..self.shared.mailboxes.len() {
            let mail = self.shard.outbound.outgoing(target as u16);
            self.shared.mailboxes[target].push_all(mail);
            let all = mail.is_empty();
            self.shard.by_outlet(|out| out.posted(target as u16, all));
        }
    }

    /// Drops sockets, and moves them to other places, in the order in which the shard decided so.
    fn change_sockets(&mut self) {
        while let Some(change) = self.shard.links.next_socket_change() {
            match change {
                SocketChange::Greeted(key) => self.limit_send_buffer(key),
                SocketChange::Moved { from, to } => self.move_socket(from, to),
                SocketChange::HandedOver(key, http) => self.hand_to_control(key, *http),
                SocketChange::Dropped(key) => {
                    let place = self.sockets.get_mut(key.index());
                    let socket = place.and_then(|place| place.take_if(|socket| socket.key == key));
                    self.retire(socket);
                }
            }
        }
    }

    /// Limits what the system keeps for a client that reads slowly. Its own limit is megabytes, and
    /// a thousand such clients would take so much of the memory for sockets that all others are
    /// served late.
    fn limit_send_buffer(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key)
            && let Err(error) =
                SockRef::from(&socket.stream).set_send_buffer_size(SEND_BUFFER_BYTES)
        {
            log::debug!("a connection keeps the system's send buffer: {error}");
        }
    }

    fn move_socket(&mut self, from: ConnectionKey, to: ConnectionKey) {
        if self.socket(from).is_none() {
            return;
        }
        let Some(mut socket) = self.sockets[from.index()].take() else { return };
        (socket.key, socket.queued) = (to, false);
        let token = Token(to.index() + self.first_connection);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().reregister(&mut socket.stream, token, interest);
        let is_readable = socket.readable;
        self.put(to, socket);
        if let Err(error) = registered {
            log::warn!("a connection can't be watched: {error}");
            self.shard.by_outlet(|out| out.drop_connection(to));
        } else if is_readable {
            self.queue(to);
        }
    }

    /// Puts a socket in the place of its connection.
    fn put(&mut self, key: ConnectionKey, socket: Socket) {
        self.shard.links.layer_holds(key, socket.layer.bytes());
        let place = key.index();
        if place >= self.sockets.len() {
            self.sockets.resize_with(place + 1, || None);
        }
        // The connection of the socket in this place was dropped in this very turn.
        let before = self.sockets[place].replace(socket);
        self.retire(before);
    }

    /// Lets a socket wait to be closed. Its token may be another's from now on.
    fn retire(&mut self, socket: Option<Socket>) {
        if let Some(mut socket) = socket {
            // It fails if the socket was never watched.
            let _ = self.poll.registry().deregister(&mut socket.stream);
            self.closing.push_back(socket);
        }
    }

    /// Closes sockets that have no connection any more, as long as there is time.
    fn close_sockets(&mut self) {
        self.shard.pacing.begin_part(&self.shard.env, Part::Closes);
        while !self.closing.is_empty() && !self.shard.is_part_over() {
            if let Some(mut socket) = self.closing.pop_front() {
                self.tls.drops(&mut socket);
                drop(socket);
                self.shared.connections.fetch_sub(1, Ordering::Relaxed);
                self.shared.gives_back(self.index);
            }
        }
        self.shard.pacing.end_part(&self.shard.env);
        release(&mut self.closing);
    }

    fn stop_if_told(&mut self) {
        // An upgrade that is under way gives up first, and needs the rooms as they are.
        let may_stop = self.shared.gate.stage() == Stage::Open;
        if self.ends_at.is_none() && may_stop && self.shared.stops.load(Ordering::Acquire) {
            self.ends_at = Some(self.now() + self.shared.shutdown_timeout);
            self.listeners.clear();
            self.shard.close_rooms();
        }
    }

    /// Returns whether it is time for the goodbye: no shard has rooms any more, or it can't wait
    /// longer.
    fn has_to_part(&self) -> bool {
        !self.said_goodbye
            && self.ends_at.is_some_and(|at| at <= self.now() || self.shared.has_closed())
    }

    fn is_over(&self) -> bool {
        self.said_goodbye
            && self.ends_at.is_some_and(|at| {
                self.shard.links.is_empty() && self.closing.is_empty() || at <= self.now()
            })
    }

    /// Returns the time to wait for something to happen.
    fn timeout(&mut self) -> Option<Duration> {
        if self.gate_stage > Stage::Draining {
            return Some(GATE_LOOK);
        }
        if self.shard.links.has_work()
            || self.mail_waits
            || self.writes_on
            || !self.closing.is_empty()
        {
            self.shard.host.is_awake_until(Duration::MAX);
            return Some(Duration::ZERO);
        }
        let accepts_at = self.listeners.iter().filter_map(|listener| listener.accepts_at).min();
        let deadlines = [self.shard.next_deadline(), accepts_at, self.ends_at];
        let now = self.now();
        self.shard.host.is_awake_until(now + POLL);
        let next = deadlines.into_iter().flatten().min()?;
        Some(self.shared.clock.real(next.saturating_sub(now)))
    }

    fn now(&self) -> Duration {
        self.shared.clock.now()
    }
}

#[cfg(test)]
mod tests;
