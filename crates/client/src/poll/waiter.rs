//! Waiting for what connections need: their sockets, their times, or a program that wakes them.

use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use mio::event::Event;
use mio::{Events, Poll, Registry, Token, Waker};

use crate::asleep::Asleep;

/// The token of a waiter's waker.
const WAKER: Token = Token(0);

/// The token of the sockets of a waiter's connection.
const SOCKET: Token = Token(1);

/// The side of a [`Connection`](super::Connection) that waits. It is apart from the connection so
/// that other threads can use that meanwhile. A program with a few more waits for them with it, by
/// [other tokens](Registration::with_token); one with many waits by a loop of its own:
/// [`Registration::new`].
#[derive(Debug)]
pub struct Waiter {
    poll: Poll,
    events: Events,
    asleep: Asleep,
    /// The news of other sockets.
    others: Vec<(Token, Readiness)>,
}

/// A connection's place in a loop: that of a [`Waiter`], or the program's own.
#[derive(Clone, Debug)]
pub struct Registration {
    shared: Arc<(Registry, Waker)>,
    /// The token of the connection's sockets.
    pub(super) token: Token,
}

impl Registration {
    /// The place of sockets with this token in the loop of a registry. Events with the token `waker`
    /// only wake the loop.
    ///
    /// # Errors
    /// If the system has no resources.
    pub fn new(registry: &Registry, waker: Token, token: Token) -> io::Result<Self> {
        let waker = Waker::new(registry, waker)?;
        Ok(Self { shared: Arc::new((registry.try_clone()?, waker)), token })
    }

    /// Another place in the same loop. A [`Waiter`] has 0 and 1 for its own.
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        Self { shared: Arc::clone(&self.shared), token }
    }

    /// Wakes the loop, or lets its next wait return at once. Any thread may do it.
    pub fn wake(&self) {
        // This fails only if the system has no resources; the loop then wakes at its time.
        let _ = self.shared.1.wake();
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.shared.0
    }
}

/// The news of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// The time of the news.
    pub(super) now: Instant,
    pub(super) is_readable: bool,
    /// The node has ended its half: the end follows what is there to read.
    pub(super) has_ended: bool,
    /// This process, or the whole device, has slept.
    pub(super) has_slept: bool,
}

impl Readiness {
    /// No news but the time.
    #[must_use]
    pub fn at(now: Instant) -> Self {
        Self { now, is_readable: false, has_ended: false, has_slept: false }
    }

    /// The news of an event of a connection's socket.
    #[must_use]
    pub fn of(event: &Event, now: Instant) -> Self {
        let has_ended = event.is_read_closed() || event.is_error();
        Self { is_readable: event.is_readable() || has_ended, has_ended, ..Self::at(now) }
    }

    /// The news of another socket in the same wait, if it has any among [others](Waiter::others).
    #[must_use]
    pub fn of_other(self, token: Token, others: &[(Token, Self)]) -> Self {
        let mut found = Self { is_readable: false, has_ended: false, ..self };
        for (_, news) in others.iter().filter(|(of, _)| *of == token) {
            found.is_readable |= news.is_readable;
            found.has_ended |= news.has_ended;
        }
        found
    }
}

impl Waiter {
    /// A waiter, and the place of a [`Connection`](super::Connection::open) in it.
    ///
    /// # Errors
    /// If the system has no resources.
    pub fn new() -> io::Result<(Self, Registration)> {
        let poll = Poll::new()?;
        let registration = Registration::new(poll.registry(), WAKER, SOCKET)?;
        let (events, asleep) = (Events::with_capacity(8), Asleep::new());
        Ok((Self { poll, events, asleep, others: Vec::new() }, registration))
    }

    /// Waits for the socket, for a wake, or until a time; `None` waits for as long as it takes. Hand
    /// the result to [`Connection::pump`](super::Connection::pump).
    ///
    /// # Errors
    /// If the system can't wait.
    pub fn wait(&mut self, until: Option<Instant>) -> io::Result<Readiness> {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Readiness::at(Instant::now()));
            }
            polled => polled?,
        }
        let now = Instant::now();
        let has_slept = self.asleep.has_been_at(now, SystemTime::now());
        let mut readiness = Readiness { has_slept, ..Readiness::at(now) };
        for event in &self.events {
            let news = Readiness::of(event, now);
            match event.token() {
                SOCKET => {
                    readiness.is_readable |= news.is_readable;
                    readiness.has_ended |= news.has_ended;
                }
                WAKER => {}
                other => self.others.push((other, news)),
            }
        }
        Ok(readiness)
    }

    /// Takes the news of sockets with other tokens, of all waits since the last call.
    pub fn others(&mut self) -> Vec<(Token, Readiness)> {
        std::mem::take(&mut self.others)
    }
}
