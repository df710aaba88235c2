//! A connection that the program polls: no thread and no runtime, so a request and its reply pass
//! nothing but the session. The C ABI and the load generator stand on it.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use playfield_client::poll::{Buffers, Connection, Dialer, Settings, Waiter};
//! use playfield_client::session::Event;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut waiter, registration) = Waiter::new()?;
//! let mut buffers = Buffers::default();
//! let dialer = Arc::new(Dialer::new("tcp://127.0.0.1:7350", &[])?);
//! let mut connection = Connection::open(dialer, Settings::default(), registration);
//! loop {
//!     let readiness = waiter.wait(connection.due_at())?;
//!     connection.pump(readiness, &mut buffers);
//!     while let Some((event, why)) = connection.poll_event() {
//!         match event {
//!             Event::Closed { .. } => return Err(why.into_iter().next().unwrap().into()),
//!             event => println!("{event:?}"),
//!         }
//!     }
//!     connection.settle(&mut buffers);
//! }
//! # }
//! ```

mod dialing;
mod room;
mod stream;
#[cfg(test)]
mod tests;
mod waiter;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use crate::dial::Dialer;
pub use crate::queue::{Next, Queue, QueueLimits};
pub use crate::session::NumberMap;
#[cfg(feature = "tls")]
pub use crate::tls::Tls;
pub use mio::Token;
pub use room::{EventPayload, Room, RoomNews};
pub use stream::Stream;
pub use waiter::{Readiness, Registration, Waiter};

use crate::Error;
use crate::ending::Fate;
use crate::limits::{FAREWELL, INPUT_BYTES};
use crate::session::{
    ClientConfig, ClientError, Event, Patience, Reach, Session, Step, Transport, Url,
};
use dialing::Dialing;

/// The most bytes that are read in one turn, before the events in them are polled.
const TURN_BYTES: usize = 256 << 10;

/// The settings of a [`Connection`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The player's display name.
    pub name: String,
    /// The token for the node's authenticator.
    pub token: Vec<u8>,
    /// Says whether the program gives each token: [`Connection::takes_token`]. `token` is not used
    /// then.
    pub asks_for_tokens: bool,
    /// Says whether to offer compression over WebSocket.
    pub deflate: bool,
    /// The longest message accepted from the node, in bytes.
    pub message_bytes_max: usize,
    /// Says whether the node is asked to keep the session of a lost connection.
    pub is_resumable: bool,
    /// Says whether the program takes redirects of joins further
    /// ([`Event::Redirected`]). Those of the session itself are followed then. Default: `false`.
    pub redirects: bool,
    /// The time limits for connecting, and for restoring a lost connection. A session that is not
    /// resumable is not restored.
    pub patience: Patience,
    /// The address to connect from. `None`: the system chooses.
    pub source: Option<IpAddr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: String::new(),
            token: Vec::new(),
            asks_for_tokens: false,
            deflate: false,
            message_bytes_max: 16 << 20,
            is_resumable: true,
            redirects: false,
            patience: Patience::default(),
            source: None,
        }
    }
}

/// Memory that connections share while one of them reads or writes: a connection that waits has
/// none.
#[derive(Debug, Default)]
pub struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
    /// The bytes that the connections have received.
    pub received: u64,
    /// The bytes that their sessions have written.
    pub sent: u64,
}

/// A connection to a node, and its session.
///
/// In a turn the program [waits](Waiter::wait), [pumps](Self::pump), polls
/// [events](Self::poll_event) until there are none, and [settles](Self::settle). Commands are given
/// to the [session](Self::session) at any time, and sent by [`flush`](Self::flush).
#[derive(Debug)]
pub struct Connection {
    /// The node that the program has named.
    first: Arc<Dialer>,
    /// The node of the present connection, or of the last.
    dialer: Arc<Dialer>,
    source: Option<IpAddr>,
    registration: Registration,
    /// Until there is a session.
    settings: Option<Box<Settings>>,
    /// `None` before the first connection.
    session: Option<Session>,
    link: Link,
    fate: Fate,
    started: Instant,
    /// More may be there than was read.
    is_readable: bool,
    /// The node has ended its half. No other edge tells of it, so reading goes on until its end.
    has_ended: bool,
    wants_token: bool,
    /// Events that came about without the session.
    happened: VecDeque<(Event<'static>, Error)>,
    farewell_ends: Option<Instant>,
}

#[derive(Debug)]
enum Link {
    /// The program is asked for a token, until then. `None`: without a limit.
    Token(Option<Instant>, Duration),
    Dialing(Box<Dialing>),
    Open(Stream),
    /// There is none, until the session says so.
    Lost,
    Over,
}

impl Connection {
    /// Begins to connect. [`Event::Welcome`] follows, or [`Event::Closed`].
    #[must_use]
    pub fn open(dialer: Arc<Dialer>, settings: Settings, registration: Registration) -> Self {
        let fate = Fate::of(&dialer.authority);
        let (limit, asks) = (settings.patience.timeout, settings.asks_for_tokens);
        let mut connection = Self {
            first: Arc::clone(&dialer),
            dialer,
            source: settings.source,
            registration,
            settings: Some(Box::new(settings)),
            session: None,
            link: Link::Lost,
            fate,
            started: Instant::now(),
            is_readable: false,
            has_ended: false,
            wants_token: false,
            happened: VecDeque::new(),
            farewell_ends: None,
        };
        if asks {
            connection.ask_for_token(limit);
        } else {
            connection.dial(limit);
        }
        connection
    }

    /// The session. `None` until the node is reached for the first time.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// Returns whether a command can be given now: the connection is there, and not too much waits.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        let (Link::Open(stream), Some(session)) = (&self.link, &self.session) else { return false };
        session.takes_commands(stream.unsent_bytes())
    }

    /// Returns whether the connection is there: not lost, and not at its end.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_welcomed)
    }

    /// Returns whether the first hello was sent, and is not answered: commands that are given to
    /// the session follow it.
    #[must_use]
    pub fn is_greeting(&self) -> bool {
        matches!(self.link, Link::Open(_)) && self.session.is_some() && !self.fate.is_welcomed()
    }

    /// The way of the present connection, or of the last.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.dialer.reach()
    }

    /// Returns whether this connection is to the node that has this address, as far as is known.
    #[must_use]
    pub fn is_at(&self, url: &Url) -> bool {
        let is_told = |session: &Session| session.addresses().contains(url);
        *url == self.dialer.url || self.session.as_ref().is_some_and(is_told)
    }

    /// Returns whether nothing more happens.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.link, Link::Over)
    }

    /// Returns whether the program is to give a token. `true` once for each.
    pub fn takes_token(&mut self) -> bool {
        std::mem::take(&mut self.wants_token)
    }

    /// Gives the token that was asked for. Returns whether one was wanted still.
    pub fn give_token(&mut self, token: Vec<u8>) -> bool {
        let Link::Token(..) = self.link else { return false };
        self.link = Link::Lost;
        if let Some(session) = &mut self.session {
            session.set_token(token);
        } else if let Some(settings) = &mut self.settings {
            settings.token = token;
            let limit = settings.patience.timeout;
            self.dial(limit);
        }
        true
    }

    /// Returns whether something waits for the socket.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        matches!(&self.link, Link::Open(stream) if stream.is_blocked())
    }

    /// Returns whether there are events that came about without the socket.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let session = self.session.as_ref().is_some_and(Session::has_events);
        session || !self.happened.is_empty() || self.wants_token
    }

    /// When to [pump](Self::pump) again, if nothing comes before.
    #[must_use]
    pub fn due_at(&self) -> Option<Instant> {
        if self.is_readable && self.reads() || self.has_news() {
            return Some(self.started);
        }
        let session = self.session.as_ref().and_then(Session::due_at);
        let session = session.and_then(|due_at| self.started.checked_add(due_at));
        let link = match &self.link {
            Link::Token(until, _) => *until,
            Link::Dialing(dialing) => Some(dialing.until()),
            _ => None,
        };
        [session, link, self.farewell_ends].into_iter().flatten().min()
    }

    /// Reads what has come, and does what is due.
    pub fn pump(&mut self, readiness: Readiness, buffers: &mut Buffers) {
        let now = readiness.now;
        if let Some(session) = &mut self.session {
            session.advance(now.saturating_duration_since(self.started));
            if readiness.has_slept {
                session.suspect();
            }
        }
        match &mut self.link {
            Link::Open(_) | Link::Dialing(_) => {
                self.is_readable |= readiness.is_readable;
                self.has_ended |= readiness.has_ended;
                self.go_on(now, readiness.has_ended);
                self.read(buffers);
            }
            Link::Token(Some(until), limit) if now >= *until => {
                let error = Error::no_token(format!("it gave none within {limit:?}").into());
                self.failed(error);
            }
            Link::Token(..) | Link::Lost | Link::Over => {}
        }
        if self.farewell_ends.is_some_and(|ends| now >= ends) {
            self.end();
        }
    }

    /// The next event. With it comes why, if it is the loss of the connection, a failed attempt to
    /// restore it, or the end.
    pub fn poll_event(&mut self) -> Option<(Event<'_>, Option<Error>)> {
        if let Some((event, error)) = self.happened.pop_front() {
            return Some((event, Some(error)));
        }
        let session = self.session.as_mut()?;
        self.fate.tried = session.tried();
        let event = session.poll_event()?;
        let mut why = self.fate.note(&event);
        if let (Event::Closed { .. }, false, Some(error)) = (&event, self.fate.is_welcomed(), &why)
        {
            why = error.clone().into_ending().map(|ending| ending.unwelcome());
        }
        Some((event, why))
    }

    /// Sends what is to be sent, and takes the next step: all events are polled.
    pub fn settle(&mut self, buffers: &mut Buffers) {
        self.flush(buffers);
        let Some(session) = &mut self.session else { return };
        if session.is_finished() {
            if self.farewell_ends.is_none() {
                self.begin_farewell(buffers);
            }
            return;
        }
        if !session.is_away() {
            return;
        }
        if let Link::Open(stream) = &mut self.link {
            stream.deregister(self.registration.registry());
            (self.link, self.is_readable) = (Link::Lost, false);
        }
        match session.next_step() {
            Step::Wait => {}
            Step::Token(limit) => self.ask_for_token(limit),
            Step::Dial(limit) => {
                self.fate.begin_attempt();
                let url = session.dial_to().cloned();
                match self.dialer_of(url) {
                    Ok(dialer) => {
                        self.fate.authority = Arc::clone(&dialer.authority);
                        self.dialer = dialer;
                        self.dial(limit);
                        self.flush(buffers);
                    }
                    Err(error) => self.failed(error),
                }
            }
        }
    }

    /// The dialer of a node. `None`: the one that the program has named.
    fn dialer_of(&self, url: Option<Url>) -> Result<Arc<Dialer>, Error> {
        match url {
            None => Ok(Arc::clone(&self.first)),
            Some(url) if url == self.dialer.url => Ok(Arc::clone(&self.dialer)),
            Some(url) => self.first.another(url).map(Arc::new),
        }
    }

    /// Sends what commands have written, as far as the socket takes it.
    pub fn flush(&mut self, buffers: &mut Buffers) {
        let (Link::Open(stream), Some(session)) = (&mut self.link, &mut self.session) else {
            return;
        };
        buffers.output.clear();
        session.take_output(&mut buffers.output);
        buffers.sent += buffers.output.len() as u64;
        match stream.write(&buffers.output) {
            // On WebSocket the node closes the transport, after both close frames (RFC 6455,
            // 7.1.1).
            Ok(true) if self.farewell_ends.is_some() && !self.dialer.is_web_socket() => {
                stream.shut_down();
            }
            Ok(_) => {}
            Err(error) => {
                self.fate.socket_error = Some(error);
                stream.discard();
                session.ended();
            }
        }
    }

    /// The shortest round trip of the last pings, and the node's clock, if they are known.
    #[must_use]
    pub fn clock(&self) -> Option<(Duration, Duration)> {
        let clock = self.session.as_ref()?.clock()?;
        Some((clock.round_trip, clock.node_time(self.started.elapsed())))
    }

    /// The connection may be dead: checks it.
    pub fn suspect(&mut self) {
        if let Some(session) = &mut self.session {
            session.suspect();
        }
    }

    /// Says goodbye. [`Event::Closed`] follows, once.
    pub fn close(&mut self, buffers: &mut Buffers) {
        if self.is_over() {
            return;
        }
        match &mut self.session {
            Some(session) => {
                let was_away = !session.is_welcomed();
                session.goodbye();
                if was_away {
                    session.ended();
                }
            }
            None => {
                self.link = Link::Over;
                let error = ClientError::Ended { close_code: None };
                let why = Error::closed(crate::ending::Ending::Here);
                self.happened.push_back((Event::Closed { error: Some(error) }, why));
            }
        }
        self.begin_farewell(buffers);
    }

    fn begin_farewell(&mut self, buffers: &mut Buffers) {
        self.farewell_ends.get_or_insert_with(|| Instant::now() + FAREWELL);
        match &self.link {
            Link::Open(_) => self.flush(buffers),
            _ => self.link = Link::Over,
        }
    }

    /// The transport is over.
    fn end(&mut self) {
        if let Some(session) = &mut self.session {
            session.ended();
        }
        (self.link, self.is_readable, self.farewell_ends) = (Link::Over, false, None);
    }

    /// Returns whether more may be read now.
    fn reads(&self) -> bool {
        let (Link::Open(stream), Some(session)) = (&self.link, &self.session) else { return false };
        session.reads(stream.unsent_bytes())
    }

    fn read(&mut self, buffers: &mut Buffers) {
        let mut bytes = 0;
        while self.is_readable && bytes < TURN_BYTES && self.reads() {
            let (Link::Open(stream), Some(session)) = (&mut self.link, &mut self.session) else {
                return;
            };
            if buffers.input.is_empty() {
                buffers.input = vec![0; INPUT_BYTES];
            }
            match stream.read(&mut buffers.input) {
                Ok(0) => {
                    self.is_readable = false;
                    session.ended();
                    if session.is_finished() {
                        self.end();
                    }
                    return;
                }
                Ok(count) => {
                    bytes += count;
                    buffers.received += count as u64;
                    session.received(&buffers.input[..count]);
                    self.is_readable =
                        self.has_ended || !stream.is_drained(count, buffers.input.len());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_readable = false;
                    self.fate.socket_error = Some(error);
                    session.ended();
                    return;
                }
            }
        }
    }

    fn ask_for_token(&mut self, limit: Duration) {
        self.link = Link::Token(Instant::now().checked_add(limit), limit);
        self.wants_token = true;
    }

    fn dial(&mut self, limit: Duration) {
        (self.is_readable, self.has_ended) = (false, false);
        let now = Instant::now();
        let dialing = Dialing::begin(&self.dialer, self.source, limit, now, &self.registration);
        self.link = Link::Dialing(Box::new(dialing));
        // The first step is taken at once: connecting to an address begins without waiting.
        self.go_on(now, false);
    }

    fn go_on(&mut self, now: Instant, has_ended: bool) {
        let Link::Dialing(dialing) = &mut self.link else { return };
        let dialed = dialing.go_on(&self.dialer, &self.registration, now, has_ended);
        let Some(dialed) = dialed else { return };
        self.link = Link::Lost;
        match dialed.and_then(|stream| self.begin(stream)) {
            Ok(stream) => {
                self.is_readable |= stream.may_hold_input();
                self.link = Link::Open(stream);
            }
            Err(error) => self.failed(error),
        }
    }

    /// Has the session begin on a socket, or go on.
    fn begin(&mut self, stream: Stream) -> Result<Stream, Error> {
        let transport = self.dialer.transport()?;
        if let Some(session) = &mut self.session {
            session.reconnect(transport)?;
        } else if let Some(settings) = self.settings.take() {
            let reach = settings.redirects.then(|| self.reach());
            self.session = Some(Session::new(config(*settings, reach, transport))?);
        }
        Ok(stream)
    }

    /// An attempt to connect came to no connection.
    fn failed(&mut self, error: Error) {
        self.link = Link::Lost;
        let because = ClientError::Ended { close_code: None };
        let Some(session) = &mut self.session else {
            self.link = Link::Over;
            self.happened.push_back((Event::Closed { error: Some(because) }, error));
            return;
        };
        self.fate.attempt_failed(error.clone());
        if !session.attempt_failed() {
            let event = Event::AttemptFailed { error: because, is_last: false };
            self.happened.push_back((event, error));
        }
    }
}

fn config(settings: Settings, redirects: Option<Reach>, transport: Transport) -> ClientConfig {
    let mut seed = [0; 16];
    // Without random numbers the waits are only less random.
    let _ = getrandom::fill(&mut seed);
    ClientConfig {
        name: settings.name,
        token: settings.token,
        deflate: settings.deflate,
        message_bytes_max: settings.message_bytes_max,
        resumable: settings.is_resumable && !settings.patience.reconnect_timeout.is_zero(),
        patience: settings.patience,
        renews_token: settings.asks_for_tokens,
        redirects,
        seed,
        ..ClientConfig::new(transport)
    }
}
