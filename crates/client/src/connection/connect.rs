//! Connects to a URL.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::Connection;
use super::command::{Handles, Line, Signals};
use super::commands::Commands;
use super::nodes::Nodes;
use super::reconnect::Reconnect;
use super::registry::Registry;
use super::status::Status;
use super::task::Task;
use super::token::Token;
use crate::Error;
use crate::dial::Dialer;
use crate::ending::Fate;
use crate::queue::QueueLimits;
use crate::session::{ClientConfig, NODE_IDLE, Patience, Reach, Session, Url};

/// The most commands that may be queued: methods wait while the queue is full.
const COMMANDS_MAX: usize = 1024;

/// Connects to a node: `tcp://host:port` for native framing, over TLS `tls://host:port` (default
/// port 7350 for both); `ws://host:port/path` for WebSocket, over TLS `wss://host:port/path`
/// (default ports 80 and 443). Await the result to connect.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// use playfield_client::connect;
///
/// let connection = connect("ws://127.0.0.1:7350")
///     .name("Ann")
///     .token(b"from the account service")
///     .deflate(true)
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn connect(url: &str) -> Connect {
    Connect {
        url: url.to_owned(),
        name: String::new(),
        token: Token::Text(Vec::new()),
        deflate: false,
        message_bytes_max: 16 << 20,
        queue_limits: QueueLimits::default(),
        schemas: Vec::new(),
        patience: Patience::default(),
        root_certificates: Vec::new(),
        node_idle: NODE_IDLE,
    }
}

/// The settings of a connection, made by [`connect`]. Await it to connect.
///
/// # Errors
/// Awaiting it fails if the URL is invalid, the node can't be reached or does not answer within the
/// [time limit](Self::timeout), or the node [refuses](Error::is_refused), for example because the
/// token is wrong.
///
/// If the connection is lost later, the client [reconnects by itself](Self::reconnect_timeout), and
/// the session goes on: nothing is missed, and nothing is done twice. [`Connection::events`]
/// reports it. If the node is in a cluster, the URL may lead to any of its nodes: the client goes
/// back to the node that has its session.
///
/// # Cancel safety
/// If it is dropped while connecting, the connection is closed.
#[derive(Clone, Debug)]
#[must_use = "nothing is connected until this is awaited"]
pub struct Connect {
    url: String,
    name: String,
    token: Token,
    deflate: bool,
    message_bytes_max: usize,
    queue_limits: QueueLimits,
    /// Room types, and the fingerprints of what this client was built with.
    pub(crate) schemas: Vec<(String, u64)>,
    patience: Patience,
    root_certificates: Vec<Vec<u8>>,
    pub(super) node_idle: Duration,
}

impl Connect {
    /// Sets the player's display name. Default: empty.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the token for the node's authenticator. It is sent on each connection, so it must stay
    /// valid for as long as the session may have to be resumed; see [`token_by`](Self::token_by).
    /// Default: empty.
    pub fn token(mut self, token: &[u8]) -> Self {
        self.token = Token::Text(token.to_vec());
        self
    }

    /// Sets a function that gives the token for the node's authenticator. It is called for
    /// the first connection, and later only when the node has refused the token, or shortly before
    /// the `exp` of a JSON Web Token: an outage of the node is none of the login service. In a
    /// cluster, it is called for each connection to another node too. All tokens must name the same
    /// user.
    ///
    /// The function may take as long as an attempt to connect ([`timeout`](Self::timeout)). If it
    /// fails at first, so does connecting, with an error that
    /// [`is_token_missing`](Error::is_token_missing). Later the client tries again, as if the node
    /// could not be reached.
    ///
    /// ```no_run
    /// # async fn log_in() -> std::io::Result<String> { Ok(String::new()) }
    /// # async fn example() -> Result<(), playfield_client::Error> {
    /// let connect = playfield_client::connect("wss://play.example.com");
    /// let connection = connect.token_by(|| async { log_in().await }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn token_by<F, G, T, E>(mut self, function: F) -> Self
    where
        F: Fn() -> G + Send + Sync + 'static,
        G: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<Vec<u8>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.token = Token::by(function);
        self
    }

    /// Over `ws://`, offers compression (RFC 7692), which the node may decline. It is worthwhile for
    /// snapshots with long texts. Default: `false`.
    pub fn deflate(mut self, deflate: bool) -> Self {
        self.deflate = deflate;
        self
    }

    /// Sets the longest message accepted from the node, in bytes. A longer one ends the connection.
    /// Default: 16 MiB.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Sets how much rooms, channels and devices keep until it is taken out. Past that the oldest
    /// are dropped, which [`Room::next_event`](crate::Room::next_event),
    /// [`Changes::next`](crate::Changes::next), [`Channel::next`](crate::Channel::next) and
    /// [`Device::next`](crate::Device::next) report.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), playfield_client::Error> {
    /// use playfield_client::{QueueLimits, connect};
    ///
    /// let limits = QueueLimits { events_max: 100_000, ..Default::default() };
    /// let connection = connect("ws://127.0.0.1:7350").queue_limits(limits).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue_limits(mut self, limits: QueueLimits) -> Self {
        self.queue_limits = QueueLimits { events_max: limits.events_max.max(1), ..limits };
        self
    }

    /// Sets the time limit for connecting, from the name lookup to the node's welcome, that for the
    /// [token](Self::token_by), and that for the schema of a room, if entering the room needs it:
    /// past it, entering fails with an error that [`is_timed_out`](Error::is_timed_out). An attempt
    /// to restore a lost connection has less, but at least 3 seconds, while the node still keeps
    /// the session. Default: 10 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.patience.timeout = timeout;
        self
    }

    /// For `tls://` and `wss://`, trusts these certificates, in PEM or DER, instead of the
    /// system's: that of the node's issuer, or the node's own, such as from `--tls.self_signed`.
    /// May be called more than once. The node's certificate must still be valid for the URL's host.
    pub fn root_certificate(mut self, certificate: &[u8]) -> Self {
        self.root_certificates.push(certificate.to_vec());
        self
    }

    /// Sets how long the client tries to restore a lost connection before it gives up. Zero: it
    /// does not try, and the session ends with the connection. Time that this process slept does
    /// not count. Default: 60 seconds.
    pub fn reconnect_timeout(mut self, duration: Duration) -> Self {
        self.patience.reconnect_timeout = duration;
        self
    }

    /// Sets the wait before the first attempt to restore a lost connection, which doubles with each
    /// attempt up to `most`. The client waits for a random part of it, and less while the node
    /// still keeps the session, so that several attempts fall within that time. Default: 100
    /// milliseconds, and 5 seconds.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        (self.patience.backoff_first, self.patience.backoff_most) = (first, most);
        self
    }

    /// Sets the time for which a connection to another node is kept that is in no room. Default: 10
    /// seconds. For tests.
    #[doc(hidden)]
    pub fn node_idle(mut self, duration: Duration) -> Self {
        self.node_idle = duration;
        self
    }

    /// The same settings for the node at another address.
    pub(super) fn to(mut self, address: &Url) -> Self {
        self.url = address.to_string();
        self
    }

    /// Connects.
    pub(super) async fn line(self) -> Result<Line, Error> {
        let (url, limit) = (self.url.clone(), self.patience.timeout);
        let token = self.token.give(limit).await?;
        let opened = timeout(limit, self.open(token)).await;
        opened.unwrap_or_else(|_| Err(Error::no_answer(&url, limit)))
    }

    async fn open(self, token: Vec<u8>) -> Result<Line, Error> {
        let url: Url = self.url.parse()?;
        let redirects = Some(Reach::by(&url, cfg!(feature = "tls")));
        let dialer = Dialer::to(url, &self.root_certificates)?;
        let mut seed = [0; 16];
        // Without random numbers the waits are only less random.
        let _ = getrandom::fill(&mut seed);
        let config = ClientConfig {
            name: self.name,
            token,
            deflate: self.deflate,
            message_bytes_max: self.message_bytes_max,
            schemas: self.schemas,
            schema_timeout: self.patience.timeout,
            resumable: !self.patience.reconnect_timeout.is_zero(),
            patience: self.patience,
            renews_token: matches!(self.token, Token::By(_)),
            redirects,
            seed,
            ..ClientConfig::new(dialer.transport()?)
        };
        let client = Session::new(config)?;
        let stream = dialer.dial().await?;

        let (commands, taken) = mpsc::channel(COMMANDS_MAX);
        let signals = Arc::new(Signals::default());
        let (welcomed, welcome) = oneshot::channel();
        let ending = Arc::new(OnceLock::new());
        let started = Instant::now();
        let status = Status::new(started);
        let registry = Registry::new(
            welcomed,
            Commands::new(taken),
            Arc::clone(&signals),
            commands.downgrade(),
            Arc::clone(&ending),
            Arc::clone(&status),
            Fate::of(&dialer.authority),
        );
        let reconnect = Reconnect::new(dialer, self.token, self.root_certificates);
        let task = Task {
            client,
            registry,
            signals: Arc::clone(&signals),
            status: Arc::clone(&status),
            started,
            reconnect,
            is_leaving: false,
            is_closing: false,
            farewell_ends: None,
            clock: None,
            addresses: [].into(),
        };
        tokio::spawn(task.run(stream));
        let handles = Arc::new(Handles(signals));
        let line = Line { commands, ending, handles, status };
        welcome.await.unwrap_or_else(|_| Err(line.closed()))?;
        Ok(line)
    }
}

impl IntoFuture for Connect {
    type Output = Result<Connection, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (queue_limits, settings) = (self.queue_limits, self.clone());
            let line = self.line().await?;
            let nodes = Nodes::new(settings, Arc::clone(&line.status));
            Ok(Connection { line, queue_limits, nodes, first: None })
        })
    }
}
