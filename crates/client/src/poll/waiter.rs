//! Waiting for what a connection needs: its socket, its time, or a program that wakes it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use mio::{Events, Poll, Registry, Token, Waker};

/// The token of a waker.
const WAKER: Token = Token(0);

/// The side of a [`Connection`](super::Connection) that waits. It is apart from the connection so
/// that other threads can use that meanwhile.
#[derive(Debug)]
pub struct Waiter {
    poll: Poll,
    events: Events,
}

/// The side of a [`Waiter`] that is woken.
#[derive(Debug)]
pub struct Registration {
    pub(super) waker: Arc<Waker>,
    pub(super) registry: Registry,
}

impl Registration {
    /// Wakes the waiter, or lets its next wait return at once. Any thread may do it.
    pub fn wake(&self) {
        // It fails only if the system has no resources; the waiter then wakes at its time.
        let _ = self.waker.wake();
    }

    /// Another for the same waiter.
    ///
    /// # Errors
    /// If the system has no resources.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { waker: Arc::clone(&self.waker), registry: self.registry.try_clone()? })
    }
}

/// The news of a wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readiness {
    /// Which of the connection's sockets they are about.
    pub(super) socket: usize,
    pub(super) is_readable: bool,
    /// The node has ended its half: the end follows what is there to read.
    pub(super) is_ended: bool,
    pub(super) is_writable: bool,
}

impl Waiter {
    /// A waiter, to be given to a [`Connection`](super::Connection::open).
    ///
    /// # Errors
    /// If the system has no resources.
    pub fn new() -> io::Result<(Self, Registration)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let registry = poll.registry().try_clone()?;
        let registration = Registration { waker: Arc::new(waker), registry };
        Ok((Self { poll, events: Events::with_capacity(8) }, registration))
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
                return Ok(Readiness::default());
            }
            polled => polled?,
        }
        let mut readiness = Readiness::default();
        for event in self.events.iter().filter(|event| event.token() != WAKER) {
            if event.token().0 > readiness.socket {
                readiness = Readiness { socket: event.token().0, ..Readiness::default() };
            }
            readiness.is_readable |=
                event.is_readable() || event.is_read_closed() || event.is_error();
            readiness.is_ended |= event.is_read_closed() || event.is_error();
            readiness.is_writable |= event.is_writable() || event.is_error();
        }
        Ok(readiness)
    }
}
