//! Connects to a URL.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_wire::Format;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::Connection;
use super::command::{Line, Signals};
use super::dial::Dial;
use super::dispatch::Dispatch;
use super::task::Task;
use crate::Error;
use crate::core::{Client, ClientConfig, Masks, Transport};

/// The default port of `tcp` URLs.
const PORT: u16 = 7350;

/// Connects to a node: `tcp://host:port` for native framing, over TLS `tls://host:port` (default port
/// 7350 for both); `ws://host:port/path` for WebSocket, over TLS `wss://host:port/path` (default ports
/// 80 and 443). Await the result to connect.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// use playfield_client::{Format, connect};
///
/// let connection = connect("ws://127.0.0.1:7350")
///     .name("Ann")
///     .token(b"from the account service")
///     .format(Format::Json)
///     .deflate(true)
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn connect(url: &str) -> Connect {
    Connect {
        url: url.to_owned(),
        name: String::new(),
        token: Vec::new(),
        format: Format::Packed,
        deflate: false,
        message_bytes_max: 16 << 20,
        commands_max: 1024,
        events_max: 1024,
        schemas: Vec::new(),
        timeout: Duration::from_secs(10),
        schema_timeout: Duration::from_secs(10),
        root_certificates: Vec::new(),
    }
}

/// The settings of a connection, made by [`connect`]. Await it to connect.
///
/// # Errors
/// Awaiting it fails if the URL is invalid, the node can't be reached or does not answer within the
/// [time limit](Self::timeout), or the node [refuses](Error::is_refused), for example because the
/// token is wrong.
///
/// # Cancel safety
/// If it is dropped while connecting, the connection is closed.
#[derive(Clone, Debug)]
#[must_use = "nothing is connected until this is awaited"]
pub struct Connect {
    url: String,
    name: String,
    token: Vec<u8>,
    format: Format,
    deflate: bool,
    message_bytes_max: usize,
    commands_max: usize,
    events_max: usize,
    /// Room types, and the fingerprints of what this client was built with.
    pub(crate) schemas: Vec<(String, u64)>,
    timeout: Duration,
    schema_timeout: Duration,
    root_certificates: Vec<Vec<u8>>,
}

impl Connect {
    /// Sets the player's display name. Default: empty.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the token for the node's authenticator. Default: empty.
    pub fn token(mut self, token: &[u8]) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// Sets the format of all messages. Typed rooms need `packed`; [`Dynamic`](crate::Dynamic)
    /// rooms work with any. Default: `packed`.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Over `ws://`, offers compression (RFC 7692), which the node may decline. It is worthwhile in
    /// `json` and `msgpack`. Default: `false`.
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

    /// Sets the most commands that may be queued, at least 1. Methods wait while the queue is full.
    /// Default: 1024.
    pub fn commands_max(mut self, commands: usize) -> Self {
        self.commands_max = commands.max(1);
        self
    }

    /// Sets the most events that a room keeps until they are taken out, and the most changes for
    /// each listener, at least 1. Past it the oldest are dropped, which
    /// [`Room::next_event`](crate::Room::next_event) and [`Changes::next`](crate::Changes::next)
    /// report. Default: 1024.
    pub fn events_max(mut self, events: usize) -> Self {
        self.events_max = events.max(1);
        self
    }

    /// Sets the time limit for connecting, from the name lookup to the node's welcome. Default: 10
    /// seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time limit for the schema of a room, if entering the room needs it. Past it,
    /// entering fails with an error that [`is_timed_out`](Error::is_timed_out). If the node answers
    /// that it was asked too often, the client asks again by itself. Default: 10 seconds.
    pub fn schema_timeout(mut self, timeout: Duration) -> Self {
        self.schema_timeout = timeout;
        self
    }

    /// For `tls://` and `wss://`, trusts these certificates, in PEM or DER, instead of the system's:
    /// those that issued the node's, or the node's own, such as that of `--tls-self-signed`. May be
    /// called more than once. The node's certificate must still be valid for the URL's host.
    pub fn root_certificate(mut self, certificate: &[u8]) -> Self {
        self.root_certificates.push(certificate.to_vec());
        self
    }

    async fn open(self) -> Result<Connection, Error> {
        let Address { authority, transport, is_secure } = parse(&self.url)?;
        let is_web_socket = matches!(transport, Transport::WebSocket { .. });
        // Native framing has no name there.
        let alpn = is_web_socket.then_some(&b"http/1.1"[..]);
        let dial = Dial::new(authority, is_secure, &self.root_certificates, alpn)?;
        let config = ClientConfig {
            name: self.name,
            token: self.token,
            deflate: self.deflate,
            message_bytes_max: self.message_bytes_max,
            schemas: self.schemas.clone(),
            ..ClientConfig::new(self.format, transport)
        };
        let client = Client::new(config)?;
        let stream = dial.connect().await?;

        let (commands, taken) = mpsc::channel(self.commands_max);
        let signals = Arc::new(Signals::default());
        let (welcomed, welcome) = oneshot::channel();
        let ending = Arc::new(OnceLock::new());
        let named = self.schemas.into_iter().map(|(room_type, _)| room_type);
        let task = Task {
            client,
            dispatch: Dispatch::new(
                welcomed,
                Arc::clone(&signals),
                Arc::clone(&ending),
                named,
                self.schema_timeout,
            ),
            commands: taken,
            signals,
            started: Instant::now(),
            is_web_socket,
            is_leaving: false,
            farewell_ends: None,
        };
        tokio::spawn(task.run(stream));
        let line = Line { commands, ending, format: self.format };
        welcome.await.unwrap_or_else(|_| Err(line.closed()))?;
        Ok(Connection { line, events_max: self.events_max })
    }
}

impl IntoFuture for Connect {
    type Output = Result<Connection, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (url, limit) = (self.url.clone(), self.timeout);
            timeout(limit, self.open()).await.unwrap_or_else(|_| {
                let error = std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    format!("the node did not answer within {limit:?}"),
                );
                Err(Error::unreachable(&url, error))
            })
        })
    }
}

/// A parsed URL.
struct Address {
    /// Host and port.
    authority: String,
    transport: Transport,
    /// Over TLS.
    is_secure: bool,
}

fn parse(url: &str) -> Result<Address, Error> {
    let refuse = |why: &str| Error::usage(format!("{url:?} {why}"));
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(refuse("is not a URL such as tcp://host:7350 or ws://host:7350"));
    };
    let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.is_empty() || authority.starts_with(':') || authority.contains('@') {
        return Err(refuse("must name a host, or a host and a port"));
    }
    // The colons of an IPv6 address are within brackets.
    let has_port = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let with_port =
        |port: u16| if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    match scheme {
        "tcp" | "tls" if matches!(target, "" | "/") => Ok(Address {
            authority: with_port(PORT),
            transport: Transport::Native,
            is_secure: scheme == "tls",
        }),
        "tcp" | "tls" => Err(refuse("has a path, which tcp:// and tls:// do not support")),
        "ws" | "wss" => {
            let target =
                if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
            let (mut key, mut seed) = ([0; 16], [0; 16]);
            for random in [&mut key, &mut seed] {
                getrandom::fill(random).map_err(|error| {
                    Error::usage(format!(
                        "the system has no random numbers, which WebSocket needs: {error}"
                    ))
                })?;
            }
            let (host, masks) = (authority.to_owned(), Masks::seeded(seed));
            let transport = Transport::WebSocket { host, target, key, masks };
            let is_secure = scheme == "wss";
            let authority = with_port(if is_secure { 443 } else { 80 });
            Ok(Address { authority, transport, is_secure })
        }
        _ => Err(refuse("is none of tcp://, tls://, ws:// and wss://")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Transport, parse};

    #[test]
    fn urls_name_a_transport_and_an_address() {
        let cases = [
            ("tcp://node", "node:7350", None),
            ("tcp://node:1/", "node:1", None),
            ("tcp://[::1]", "[::1]:7350", None),
            ("tcp://[::1]:9", "[::1]:9", None),
            ("ws://node", "node:80", Some(("node", "/"))),
            ("ws://node:7350/play?x=1", "node:7350", Some(("node:7350", "/play?x=1"))),
            ("ws://node?x=1", "node:80", Some(("node", "/?x=1"))),
            ("tls://node", "node:7350", None),
            ("tls://[::1]:9/", "[::1]:9", None),
            ("wss://node/play", "node:443", Some(("node", "/play"))),
            ("wss://node:7350", "node:7350", Some(("node:7350", "/"))),
        ];
        for (url, expected, http) in cases {
            let Address { authority, transport, is_secure } = parse(url).unwrap();
            assert_eq!(is_secure, url.starts_with("tls") || url.starts_with("wss"));
            assert_eq!(authority, expected, "{url}");
            match transport {
                Transport::Native => assert_eq!(http, None, "{url}"),
                Transport::WebSocket { host, target, .. } => {
                    assert_eq!(http, Some((&*host, &*target)), "{url}");
                }
            }
        }
    }

    #[test]
    fn an_invalid_url_is_named_in_the_error() {
        for url in [
            "",
            "node:7350",
            "tcp://",
            "tcp://:1",
            "ws://a@b",
            "wss://",
            "http://node",
            "https://node",
            "tcp://node/x",
            "tls://node/x",
        ] {
            let error = parse(url).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("{url:?}")), "{error}");
        }
    }
}
