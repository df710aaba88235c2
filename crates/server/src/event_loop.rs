//! The edge of a shard: sockets, the clock, and the turn.

mod accept;
mod behind_proxy;
mod gated;
mod layer;
mod moves;
mod reading;
mod shared;
mod sockets;
mod writing;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use accept::Listener;
pub(crate) use accept::{Listening, Sockets};
pub(crate) use layer::Layer;
use layer::Tls;
use reading::{KEPT_BYTES, READ_BYTES};
pub(crate) use shared::SharedRuntime;
use sockets::Socket;

use crate::clock::Eviction;
use crate::mailbox::{Backlog, Parcel};
use crate::memory::shrink_table;
use crate::shard::keys::ConnectionKey;
use crate::shard::{Part, Shard};
use crate::stats::Published;
use crate::upgrade::PassedOn;
use crate::upgrade::gate::Stage;

pub(crate) const WAKER: Token = Token(0);
/// The token of the first listener.
const LISTENERS: usize = 1;

const EVENTS: usize = 1024;

/// The most time that it takes to ask what has happened, without waiting for it.
const POLL: Duration = Duration::from_micros(50);
/// The longest wait at the gate of an upgrade, where whatever there is to do wakes the shard.
const GATE_LOOK: Duration = Duration::from_millis(5);

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

    /// Puts mail into the mailboxes of other shards.
    fn post(&mut self) {
        for target in 0..self.shared.mailboxes.len() {
            let mail = self.shard.outbound.outgoing(target as u16);
            self.shared.mailboxes[target].push_all(mail);
            let all = mail.is_empty();
            self.shard.by_outlet(|out| out.posted(target as u16, all));
        }
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
