//! A connection that the program polls: no thread and no runtime, so a request and its reply pass
//! nothing but the session. The C ABI stands on it.
//!
//! ```no_run
//! use playfield_client::poll::{Connection, Settings, Waiter};
//! use playfield_client::session::Event;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut waiter, registration) = Waiter::new()?;
//! let settings = Settings::new("tcp://127.0.0.1:7350");
//! let mut connection = Connection::open(settings, registration)?;
//! loop {
//!     let readiness = waiter.wait(connection.due_at())?;
//!     connection.pump(readiness);
//!     while let Some((event, why)) = connection.poll_event() {
//!         match event {
//!             Event::Closed { .. } => return Err(why.into_iter().next().unwrap().into()),
//!             event => println!("{event:?}"),
//!         }
//!     }
//!     connection.settle();
//! }
//! # }
//! ```

mod dialing;
mod room;
mod stream;
mod waiter;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use mio::{Registry, Token, Waker};

pub use crate::queue::{Kept, Next, Queue};
pub use crate::session::NumberMap;
#[cfg(feature = "tls")]
pub use crate::tls::Tls;
pub use room::{EventPayload, Room, RoomNews};
pub use stream::Stream;
pub use waiter::{Readiness, Registration, Waiter};

use crate::Error;
use crate::asleep::Asleep;
use crate::dial::Dialer;
use crate::ending::Fate;
use crate::session::{ClientConfig, ClientError, Event, Patience, Session, Step};
use dialing::Dialing;

/// The size of a read.
const INPUT_BYTES: usize = 64 << 10;

/// The most bytes that are read in one turn, before the events in them are polled.
const TURN_BYTES: usize = 256 << 10;

/// The most bytes that may wait to be sent before no more is read: a node that does not read must
/// not fill this client's memory with answers.
const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// The most bytes that may wait to be sent before commands should wait.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The time limit for the end of a connection: for the rest of the output, the node's goodbye, and
/// the end of the transport.
const FAREWELL: Duration = Duration::from_secs(5);

/// The settings of a [`Connection`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's URL.
    pub url: String,
    /// The certificates, in PEM or DER, to trust instead of the system's.
    pub root_certificates: Vec<Vec<u8>>,
    /// The player's display name.
    pub name: String,
    /// The token for the node's authenticator.
    pub token: Vec<u8>,
    /// Whether the program gives each token: [`Connection::takes_token`]. `token` is not used then.
    pub asks_for_tokens: bool,
    /// Whether to offer compression over WebSocket.
    pub deflate: bool,
    /// The longest message accepted from the node, in bytes.
    pub message_bytes_max: usize,
    /// How long to try to connect, and to restore a lost connection.
    pub patience: Patience,
}

impl Settings {
    /// The default settings.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            root_certificates: Vec::new(),
            name: String::new(),
            token: Vec::new(),
            asks_for_tokens: false,
            deflate: false,
            message_bytes_max: 16 << 20,
            patience: Patience::default(),
        }
    }
}

/// A connection to a node, and its session.
///
/// In a turn the program [waits](Waiter::wait), [pumps](Self::pump), polls [events](Self::poll_event)
/// until there are none, and [settles](Self::settle). Commands are given to the
/// [session](Self::session) at any time, and sent by [`flush`](Self::flush).
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    dialer: Dialer,
    /// `None` before the first connection.
    session: Option<Session>,
    link: Link,
    /// The number of the present socket.
    socket: usize,
    fate: Fate,
    started: Instant,
    asleep: Asleep,
    registry: Registry,
    waker: Arc<Waker>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// More may be there than was read.
    is_readable: bool,
    /// The node has ended its half. No other edge tells of it, so reading goes on until its end.
    is_ended: bool,
    wants_token: bool,
    /// What happened without the session.
    happened: VecDeque<(Event<'static>, Error)>,
    farewell_ends: Option<Instant>,
}

#[derive(Debug)]
enum Link {
    /// The program is asked for a token, until then.
    Token(Instant, Duration),
    Dialing(Box<Dialing>),
    Open(Stream),
    /// There is none, until the session says so.
    Lost,
    Over,
}

impl Connection {
    /// Begins to connect. [`Event::Welcome`] follows, or [`Event::Closed`].
    ///
    /// # Errors
    /// If the URL or a certificate is invalid.
    pub fn open(settings: Settings, registration: Registration) -> Result<Self, Error> {
        let dialer = Dialer::new(&settings.url, &settings.root_certificates)?;
        let Registration { waker, registry } = registration;
        let fate = Fate::of(&dialer.authority);
        let mut connection = Self {
            settings,
            dialer,
            session: None,
            link: Link::Lost,
            socket: 0,
            fate,
            started: Instant::now(),
            asleep: Asleep::new(),
            registry,
            waker,
            input: Vec::new(),
            output: Vec::new(),
            is_readable: false,
            is_ended: false,
            wants_token: false,
            happened: VecDeque::new(),
            farewell_ends: None,
        };
        let limit = connection.settings.patience.timeout;
        if connection.settings.asks_for_tokens {
            connection.ask_for_token(limit);
        } else {
            connection.dial(limit);
        }
        Ok(connection)
    }

    /// The session. `None` until the node is reached for the first time.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// Returns whether a command can be given now: the connection is there, and not too much waits.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        let Link::Open(stream) = &self.link else { return false };
        let session = self.session.as_ref();
        session.is_some_and(|session| {
            session.is_welcomed()
                && !session.is_full()
                && stream.unsent_bytes() + session.output_bytes() < OUTPUT_BYTES_MAX
        })
    }

    /// Returns whether the connection is there: not lost, and not at its end.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_welcomed)
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
        match &mut self.session {
            Some(session) => session.set_token(token),
            None => {
                self.settings.token = token;
                self.dial(self.settings.patience.timeout);
            }
        }
        true
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
        if self.is_readable || self.has_news() {
            return Some(self.started);
        }
        let session = self.session.as_ref().and_then(Session::due_at);
        let session = session.and_then(|due_at| self.started.checked_add(due_at));
        let link = match &self.link {
            Link::Token(until, _) => Some(*until),
            Link::Dialing(dialing) => Some(dialing.until()),
            _ => None,
        };
        [session, link, self.farewell_ends].into_iter().flatten().min()
    }

    /// Reads what has come, and does what is due.
    pub fn pump(&mut self, readiness: Readiness) {
        let now = Instant::now();
        let is_news = readiness.socket == self.socket;
        self.is_readable |= is_news && readiness.is_readable;
        self.is_ended |= is_news && readiness.is_ended;
        if let Some(session) = &mut self.session {
            session.advance(now - self.started);
            if self.asleep.has_been_at(now, SystemTime::now()) {
                session.suspect();
            }
        }
        match &mut self.link {
            Link::Open(_) => self.read(),
            Link::Dialing(dialing) => {
                self.is_readable = false;
                if let Some(dialed) = dialing.go_on(&self.dialer, &self.registry, now) {
                    self.dialed(dialed);
                }
            }
            Link::Token(until, limit) if now >= *until => {
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
    pub fn settle(&mut self) {
        self.flush();
        let Some(session) = &mut self.session else { return };
        if session.is_finished() {
            if self.farewell_ends.is_none() {
                self.begin_farewell();
            }
            return;
        }
        if !session.is_away() {
            return;
        }
        if let Link::Open(stream) = &mut self.link {
            stream.deregister(&self.registry);
            (self.link, self.is_readable) = (Link::Lost, false);
        }
        match session.next_step() {
            Step::Wait => {}
            Step::Token(limit) => self.ask_for_token(limit),
            Step::Dial(limit) => {
                self.fate.begin_attempt();
                self.dial(limit);
            }
        }
    }

    /// Sends what commands have written, as far as the socket takes it.
    pub fn flush(&mut self) {
        let (Link::Open(stream), Some(session)) = (&mut self.link, &mut self.session) else {
            return;
        };
        self.output.clear();
        session.take_output(&mut self.output);
        match stream.write(&self.output) {
            // On WebSocket the node closes the transport, after both close frames (RFC 6455, 7.1.1).
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

    /// Says goodbye. [`Event::Closed`] follows.
    pub fn close(&mut self) {
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
                let why = Error::closed(crate::error::Ending::Here);
                self.happened.push_back((Event::Closed { error: Some(error) }, why));
            }
        }
        self.begin_farewell();
    }

    fn begin_farewell(&mut self) {
        self.farewell_ends.get_or_insert_with(|| Instant::now() + FAREWELL);
        match &self.link {
            Link::Open(_) => self.flush(),
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

    fn read(&mut self) {
        let (Link::Open(stream), Some(session)) = (&mut self.link, &mut self.session) else {
            return;
        };
        if self.input.is_empty() {
            self.input = vec![0; INPUT_BYTES];
        }
        let mut bytes = 0;
        let unsent = stream.unsent_bytes() + session.output_bytes();
        while self.is_readable
            && bytes < TURN_BYTES
            && session.wants_input()
            && unsent < ANSWERS_BYTES_MAX
        {
            match stream.read(&mut self.input) {
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
                    session.received(&self.input[..count]);
                    self.is_readable = self.is_ended || !stream.is_drained(count, self.input.len());
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
        let now = Instant::now();
        self.link = Link::Token(now.checked_add(limit).unwrap_or(now), limit);
        self.wants_token = true;
    }

    fn dial(&mut self, limit: Duration) {
        self.socket += 1;
        self.is_ended = false;
        let (token, now) = (Token(self.socket), Instant::now());
        let dialing = Dialing::begin(&self.dialer, token, limit, now, &self.waker);
        self.link = Link::Dialing(Box::new(dialing));
        // It goes on at once: connecting to an address begins without waiting.
        let Link::Dialing(dialing) = &mut self.link else { return };
        if let Some(dialed) = dialing.go_on(&self.dialer, &self.registry, now) {
            self.dialed(dialed);
        }
    }

    fn dialed(&mut self, dialed: Result<Stream, Error>) {
        self.link = Link::Lost;
        let begun = dialed.and_then(|stream| {
            let transport = self.dialer.transport()?;
            match &mut self.session {
                Some(session) => session.reconnect(transport)?,
                None => self.session = Some(Session::new(self.config(transport))?),
            }
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                // What came meanwhile, with the end of the handshake, was announced before.
                (self.link, self.is_readable) = (Link::Open(stream), true);
                self.flush();
            }
            Err(error) => self.failed(error),
        }
    }

    fn config(&self, transport: crate::session::Transport) -> ClientConfig {
        let mut seed = [0; 16];
        // Without random numbers the waits are only less random.
        let _ = getrandom::fill(&mut seed);
        ClientConfig {
            name: self.settings.name.clone(),
            token: self.settings.token.clone(),
            deflate: self.settings.deflate,
            message_bytes_max: self.settings.message_bytes_max,
            resumable: !self.settings.patience.reconnect_for.is_zero(),
            patience: self.settings.patience,
            renews_token: self.settings.asks_for_tokens,
            seed,
            ..ClientConfig::new(transport)
        }
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
