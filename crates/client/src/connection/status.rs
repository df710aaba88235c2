//! The state of a connection: its events, and what is measured on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_wire::ErrorCode;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::Error;
use crate::session::{Clock, Lost, Url};

/// The most events that wait for one listener. Past it the oldest are dropped.
const EVENTS_MAX: usize = 64;

/// Longer texts of refusals are truncated to this many bytes: `EVENTS_MAX` of them may wait.
const TEXT_BYTES_MAX: usize = 4096;

/// An event of a connection. Returned by [`ConnectionEvents::next`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The connection was lost. The client connects again by itself. Rooms stay as they are, and
    /// what is sent meanwhile waits.
    Lost {
        /// Why.
        error: Error,
    },
    /// An attempt to restore the connection failed, such as because the node can't be reached, or
    /// because the [token](crate::Connect::token_by) could not be had. Another follows.
    AttemptFailed {
        /// Why.
        error: Error,
    },
    /// The connection is restored, and the session continues.
    Resumed {
        /// The time for which the connection was lost.
        away: Duration,
        /// Losses of the node meanwhile, by room: events, which the
        /// [room](crate::Room::next_event) reports as missed, and answers, whose requests fail with
        /// an error that [`is_lost`](Error::is_lost). Empty if nothing is missing.
        lost: Vec<Lost>,
    },
    /// The connection is weak: a room with ticks, and all else, was not heard for about a second.
    /// If it stays so, the connection is [lost](Self::Lost) some seconds later.
    Weak,
    /// The connection is no longer [weak](Self::Weak).
    Back,
    /// The connection is restored, but the node no longer had the session, and opened a new one.
    /// All rooms have ended, and all requests failed. Join the rooms again.
    NewSession {
        /// The time for which the connection was lost.
        away: Duration,
        /// The number of sends, which have no answer, that the node has not confirmed: those that
        /// were sent and may or may not have been carried out, and those that waited here.
        unconfirmed: u64,
    },
    /// The node refused what has no answer and is about no room: reports and publications that are
    /// [unconfirmed](crate::Device::report_unconfirmed). If they came faster than a rate of the node
    /// allows, `code` is `too_fast`, and the text says which rate it is and how many messages were
    /// refused since the event before; that is at most ten times a second.
    Refused {
        /// Why.
        code: ErrorCode,
        /// The same in words, at most 4 KiB.
        text: String,
    },
    /// The connection has ended for good. This is the last event.
    Ended {
        /// Why.
        error: Error,
        /// The number of sends that the node has not confirmed, as in
        /// [`NewSession`](Self::NewSession). The node confirms what came before the client's
        /// goodbye.
        unconfirmed: u64,
    },
}

/// The events of a connection from now on. Returned by
/// [`Connection::events`](crate::Connection::events).
///
/// ```no_run
/// # async fn example(connection: playfield_client::Connection) {
/// use playfield_client::ConnectionEvent;
///
/// let mut events = connection.events();
/// while let Some(event) = events.next().await {
///     match event {
///         ConnectionEvent::Lost { error } => println!("{error}; connecting again"),
///         ConnectionEvent::Resumed { away, .. } => println!("back after {away:?}"),
///         ConnectionEvent::NewSession { .. } => println!("back; join the rooms again"),
///         _ => {}
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct ConnectionEvents {
    /// `None` once the connection has ended.
    events: Option<broadcast::Receiver<ConnectionEvent>>,
}

impl ConnectionEvents {
    /// Waits for the next event. `None` after the end of the connection. If this is called too
    /// rarely, the oldest events are dropped.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<ConnectionEvent> {
        loop {
            match self.events.as_mut()?.recv().await {
                Ok(event) => {
                    if matches!(event, ConnectionEvent::Ended { .. }) {
                        self.events = None;
                    }
                    return Some(event);
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => self.events = None,
            }
        }
    }
}

/// News of the connection's task for its handles.
#[derive(Debug)]
pub(crate) struct Status {
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `None` once the connection has ended.
    events: Option<broadcast::Sender<ConnectionEvent>>,
    is_connected: bool,
    clock: Option<Clock>,
    /// The addresses of the node.
    addresses: Arc<[Url]>,
}

impl Status {
    pub(super) fn new(started: Instant) -> Arc<Self> {
        let events = Some(broadcast::channel(EVENTS_MAX).0);
        let inner = Inner { events, is_connected: false, clock: None, addresses: [].into() };
        let inner = Mutex::new(inner);
        Arc::new(Self { started, inner })
    }

    pub(super) fn events(&self) -> ConnectionEvents {
        ConnectionEvents { events: self.lock().events.as_ref().map(broadcast::Sender::subscribe) }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.lock().is_connected
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.lock().clock.map(|clock| clock.round_trip)
    }

    pub(super) fn node_time(&self) -> Option<Duration> {
        self.lock().clock.map(|clock| clock.node_time(self.started.elapsed()))
    }

    pub(super) fn set_clock(&self, clock: Option<Clock>) {
        self.lock().clock = clock;
    }

    /// Returns whether the node calls itself by this address.
    pub(super) fn is_at(&self, address: &Url) -> bool {
        self.lock().addresses.contains(address)
    }

    pub(super) fn set_addresses(&self, addresses: Arc<[Url]>) {
        self.lock().addresses = addresses;
    }

    /// Waits until the connection has ended.
    pub(super) async fn until_end(&self) {
        let mut events = self.events();
        while events.next().await.is_some() {}
    }

    pub(super) fn connected(&self) {
        self.lock().is_connected = true;
    }

    /// The node refused what is about no room.
    pub(super) fn refused(&self, code: ErrorCode, text: &str) {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.report(ConnectionEvent::Refused { code, text: text[..end].to_owned() });
    }

    /// Tells the listeners.
    pub(super) fn report(&self, event: ConnectionEvent) {
        let mut inner = self.lock();
        match event {
            ConnectionEvent::Resumed { .. } | ConnectionEvent::NewSession { .. } => {
                inner.is_connected = true;
            }
            ConnectionEvent::Weak | ConnectionEvent::Back | ConnectionEvent::Refused { .. } => {}
            ConnectionEvent::Lost { .. }
            | ConnectionEvent::AttemptFailed { .. }
            | ConnectionEvent::Ended { .. } => inner.is_connected = false,
        }
        let is_last = matches!(event, ConnectionEvent::Ended { .. });
        if let Some(events) = &inner.events {
            // Sending fails only if nobody listens.
            let _ = events.send(event);
        }
        if is_last {
            inner.events = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
