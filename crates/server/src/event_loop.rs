//! The edge of a shard: sockets and the clock. One turn: wait, read, handle, run what is due, write.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::mailbox::Mailboxes;
use crate::shard::{Action, Shard, ShardMail};
use crate::slab::Key;
use crate::stats::Published;
use crate::sys::Spread;
use crate::watchdog::Watchdog;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const EVENTS_PER_TURN: usize = 1_024;
const READ_BYTES: usize = 256 << 10;
/// Reads of one connection in one turn: one that sends without end does not hold up the others.
const READS_PER_TURN: usize = 8;
/// Connections accepted in one turn.
const ACCEPTS_PER_TURN: usize = 256;

/// A shard, its sockets and its clock.
pub(crate) struct EventLoop {
    index: usize,
    poll: Poll,
    listener: Option<TcpListener>,
    spread: Spread,
    /// For dealing out connections, which shard is next.
    next_shard: usize,
    shard: Shard,
    mailboxes: Arc<Mailboxes>,
    sockets: Vec<Option<Socket>>,
    /// One buffer for all reads: a connection owns none.
    buffer: Vec<u8>,
    /// Sockets with more to read than their turn allowed.
    unread: Vec<Key>,
    dirty: Vec<Key>,
    accepting: bool,
    published: Arc<Published>,
    watchdog: Arc<Watchdog>,
}

struct Socket {
    key: Key,
    stream: TcpStream,
    /// There may be bytes to read; epoll says so only once.
    readable: bool,
    /// The peer has said all it will say, and epoll does not say so again.
    over: bool,
    /// It is on the list `unread`.
    queued: bool,
}

impl EventLoop {
    pub(crate) fn new(
        index: usize,
        listener: Option<std::net::TcpListener>,
        spread: Spread,
        shard: Shard,
        mailboxes: Arc<Mailboxes>,
        published: Arc<Published>,
        watchdog: Arc<Watchdog>,
    ) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = listener.map(TcpListener::from_std);
        if let Some(listener) = &mut listener {
            poll.registry().register(listener, LISTENER, Interest::READABLE)?;
        }
        mailboxes.set_waker(index, Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            index,
            poll,
            listener,
            spread,
            next_shard: index,
            shard,
            mailboxes,
            sockets: Vec::new(),
            buffer: vec![0; READ_BYTES],
            unread: Vec::new(),
            dirty: Vec::new(),
            accepting: false,
            published,
            watchdog,
        })
    }

    /// Turns until the node has ended.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut ends_by: Option<Duration> = None;
        let started = self.watchdog.started;
        while !self.shard.has_ended() && ends_by.is_none_or(|end| started.elapsed() < end) {
            let wait = self.wait(started, ends_by);
            match self.poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    log::error!("shard {} can't wait for its sockets, and ends: {error}", self.index);
                    return;
                }
            }
            let now = started.elapsed();
            self.watchdog.pulses[self.index].begin(now);
            self.shard.set_now(now);
            if let Some(timeout) = self.turn(&events) {
                ends_by = Some(now + timeout);
            }
            self.watchdog.pulses[self.index].end();
        }
    }

    fn wait(&self, started: Instant, ends_by: Option<Duration>) -> Option<Duration> {
        if !self.unread.is_empty() || self.accepting {
            return Some(Duration::ZERO);
        }
        let due = self.shard.next_deadline().into_iter().chain(ends_by).min()?;
        Some(due.saturating_sub(started.elapsed()))
    }

    /// One turn. Says how long the node takes to end, when it begins to.
    fn turn(&mut self, events: &Events) -> Option<Duration> {
        let mut ends = None;
        let mut mail = false;
        for event in events {
            match event.token() {
                LISTENER => self.accepting = true,
                WAKER => mail = true,
                Token(place) => {
                    let over = event.is_read_closed() || event.is_error();
                    if event.is_readable() || over {
                        self.readable(place, over);
                    }
                    if event.is_writable() {
                        self.writable(place);
                    }
                }
            }
        }
        if self.accepting {
            self.accept();
        }
        for key in std::mem::take(&mut self.unread) {
            if let Some(Some(socket)) = self.sockets.get_mut(key.index()) {
                socket.queued = false;
            }
            self.read(key);
        }
        if mail {
            for letter in self.mailboxes.take(self.index) {
                match letter {
                    ShardMail::Accepted(stream) => self.connect(stream),
                    ShardMail::Arrival(arrival, stream) => {
                        let key = self.shard.arrived(*arrival);
                        self.adopt(key, stream);
                    }
                    letter => {
                        if matches!(letter, ShardMail::End) {
                            self.listener = None;
                            self.accepting = false;
                            ends = Some(self.shard.shutdown_timeout());
                        }
                        self.shard.handle_mail(letter);
                    }
                }
            }
        }
        self.shard.advance();
        self.shard.settle();
        self.flush();
        self.act();
        self.published.publish(self.shard.stats());
        ends
    }

    // Connections come.

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.listener else { break };
            match listener.accept() {
                Ok((stream, _)) => match self.spread {
                    Spread::BySystem => self.connect(stream),
                    Spread::ByDealing => {
                        self.next_shard = (self.next_shard + 1) % self.mailboxes.shards();
                        if self.next_shard == self.index {
                            self.connect(stream);
                        } else {
                            self.mailboxes.post(self.next_shard, [ShardMail::Accepted(stream)]);
                        }
                    }
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accepting = false;
                    return;
                }
                // The one that was to be accepted is gone; the next may be there.
                Err(error)
                    if error.kind() == ErrorKind::ConnectionAborted
                        || error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // Most likely there are too many open files. The listener says again when someone else comes.
                    log::warn!("shard {} can't accept a connection: {error}", self.index);
                    self.accepting = false;
                    return;
                }
            }
        }
    }

    fn connect(&mut self, stream: TcpStream) {
        // Without it, small messages wait for the acknowledgement of earlier ones (RFC 896).
        if let Err(error) = stream.set_nodelay(true) {
            log::debug!("a connection ended before it was taken: {error}");
            return;
        }
        // One connection too many is closed at once: dropped here.
        if let Some(key) = self.shard.accepted() {
            self.adopt(key, stream);
        }
    }

    fn adopt(&mut self, key: Key, mut stream: TcpStream) {
        let place = key.index();
        if let Err(error) =
            self.poll.registry().register(&mut stream, Token(place), Interest::READABLE | Interest::WRITABLE)
        {
            log::warn!("shard {} can't watch a connection: {error}", self.index);
            self.shard.closed(key);
            return;
        }
        if self.sockets.len() <= place {
            self.sockets.resize_with(place + 1, || None);
        }
        self.sockets[place] = Some(Socket { key, stream, readable: true, over: false, queued: false });
        self.read(key);
    }

    // Bytes come.

    fn readable(&mut self, place: usize, over: bool) {
        if let Some(Some(socket)) = self.sockets.get_mut(place) {
            socket.readable = true;
            socket.over |= over;
            let key = socket.key;
            self.read(key);
        }
    }

    fn read(&mut self, key: Key) {
        for _ in 0..READS_PER_TURN {
            let Some(socket) = self.sockets.get_mut(key.index()).and_then(Option::as_mut) else { return };
            if socket.key != key || !socket.readable || !self.shard.takes_input(key) {
                return;
            }
            match socket.stream.read(&mut self.buffer) {
                Ok(0) => {
                    socket.readable = false;
                    return self.shard.hung_up(key);
                }
                Ok(count) => {
                    self.shard.received(key, &mut self.buffer[..count]);
                    // There was no more, and if there is by now, epoll says so: but it may have said already that the peer's
                    // end is there, which is read like bytes.
                    if let Some(Some(socket)) = self.sockets.get_mut(key.index())
                        && count < READ_BYTES
                        && !socket.over
                    {
                        socket.readable = false;
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    socket.readable = false;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    socket.readable = false;
                    return self.shard.broken(key);
                }
            }
        }
        if let Some(Some(socket)) = self.sockets.get_mut(key.index())
            && !socket.queued
        {
            socket.queued = true;
            self.unread.push(key);
        }
    }

    // Bytes go.

    fn flush(&mut self) {
        // What is written may let a connection go on, which may make others dirty.
        loop {
            self.shard.take_dirty(&mut self.dirty);
            if self.dirty.is_empty() {
                return;
            }
            let mut dirty = std::mem::take(&mut self.dirty);
            for key in dirty.drain(..) {
                self.write(key);
            }
            self.dirty = dirty;
            self.shard.settle();
        }
    }

    fn writable(&mut self, place: usize) {
        if let Some(Some(socket)) = self.sockets.get(place) {
            let key = socket.key;
            if !self.shard.unsent(key).is_empty() {
                self.write(key);
            }
        }
    }

    /// One write of all that the connection is owed.
    fn write(&mut self, key: Key) {
        let Some(socket) =
            self.sockets.get_mut(key.index()).and_then(Option::as_mut).filter(|socket| socket.key == key)
        else {
            return;
        };
        let bytes = self.shard.unsent(key);
        let written = loop {
            match socket.stream.write(bytes) {
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break 0,
                Err(_) => return self.shard.broken(key),
            }
        };
        let readable = socket.readable;
        self.shard.wrote(key, written);
        // It may have been held up, and is not any more.
        if readable {
            self.read(key);
        }
    }

    // Connections go.

    fn act(&mut self) {
        loop {
            let actions = self.shard.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::ShutDown(key) => {
                        if let Some(Some(socket)) =
                            self.sockets.get(key.index()).filter(|socket| is(socket, key))
                        {
                            // An error means that it is closed already, which its end will say.
                            let _ = socket.stream.shutdown(Shutdown::Write);
                        }
                    }
                    Action::Close(key) => {
                        self.release(key);
                        self.shard.closed(key);
                    }
                    Action::Move(key) => self.hand_on(key),
                    Action::Read(key) => self.read(key),
                }
            }
            self.shard.settle();
            self.flush();
        }
    }

    fn release(&mut self, key: Key) -> Option<TcpStream> {
        let socket = self.sockets.get_mut(key.index()).filter(|socket| is(socket, key))?.take()?;
        let mut stream = socket.stream;
        if let Err(error) = self.poll.registry().deregister(&mut stream) {
            log::debug!("a connection could not be given up: {error}");
        }
        Some(stream)
    }

    fn hand_on(&mut self, key: Key) {
        let Some(stream) = self.release(key) else { return };
        if let Some((shard, arrival)) = self.shard.depart(key) {
            self.mailboxes.post(shard, [ShardMail::Arrival(Box::new(arrival), stream)]);
        } else {
            self.shard.closed(key);
        }
    }
}

fn is(socket: &Option<Socket>, key: Key) -> bool {
    socket.as_ref().is_some_and(|socket| socket.key == key)
}
