//! The settings of a client.

use std::time::Duration;

use super::{Masks, Patience, Reach};

/// The settings of a [`Session`](super::Session).
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The player's display name; may be empty.
    pub name: String,
    /// The token for the node's authenticator; may be empty.
    pub token: Vec<u8>,
    /// The transport.
    pub transport: Transport,
    /// Over WebSocket, offers compression (RFC 7692), which the node may decline. Default: `false`.
    pub deflate: bool,
    /// The longest message accepted from the node, in bytes. Default: 16 MiB.
    pub message_bytes_max: usize,
    /// The most requests that may wait for an answer; one more fails with
    /// [`CommandError::Busy`](super::CommandError::Busy). Default: 65536.
    pub requests_max: usize,
    /// Says whether the session outlives a lost connection: the client keeps what it has sent until
    /// the node has confirmed it, and [`reconnect`](super::Session::reconnect) goes on where the
    /// connection was lost. Default: `true`.
    pub resumable: bool,
    /// The most bytes of messages that may wait to be confirmed by the node, before a command fails
    /// with [`CommandError::Unconfirmed`](super::CommandError::Unconfirmed). The message that
    /// reaches it is still taken. Default: 1 MiB.
    pub unconfirmed_bytes_max: usize,
    /// Room types, and the fingerprints of the schemas that this client was built with. Right after
    /// the welcome the node sends its schema of each room type whose fingerprint differs; see
    /// [`Event::Schema`](super::Event::Schema).
    pub schemas: Vec<(String, u64)>,
    /// The time limit for the schema of a room, if [entering](super::Session::enter) the room needs
    /// it. Default: 10 seconds.
    pub schema_timeout: Duration,
    /// The time limits and the frequency of attempts to restore a lost connection:
    /// [`Session::next_step`](super::Session::next_step).
    pub patience: Patience,
    /// Says whether the program can give another token when one is refused, or about to expire.
    /// Default: `false`.
    pub renews_token: bool,
    /// The connection by which the session begins, if the edge follows redirects: it dials where
    /// [`Session::dial_to`](super::Session::dial_to) says, and takes an
    /// [`Event::Redirected`](super::Event::Redirected) further by a [`Route`](super::Route).
    /// Default: `None`, and nodes send no redirects.
    pub redirects: Option<Reach>,
    /// Random bytes, by which clients that lose their connections at once don't all come back at
    /// once. Default: zeros.
    pub seed: [u8; 16],
}

/// The transport that carries the messages.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Length-prefixed frames over any byte stream.
    Native,
    /// WebSocket (RFC 6455).
    WebSocket {
        /// The `Host` header: the node's name or address, with the port unless it is 80.
        host: String,
        /// The path of the request, which starts with `/`.
        target: String,
        /// Random bytes, new for each connection (RFC 6455, 4.1).
        key: [u8; 16],
        /// The source of frame masks (RFC 6455, 5.3).
        masks: Masks,
    },
}

impl ClientConfig {
    /// The default settings, for this transport.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        Self {
            name: String::new(),
            token: Vec::new(),
            transport,
            deflate: false,
            message_bytes_max: 16 << 20,
            requests_max: 1 << 16,
            resumable: true,
            unconfirmed_bytes_max: 1 << 20,
            schemas: Vec::new(),
            schema_timeout: Duration::from_secs(10),
            patience: Patience::default(),
            renews_token: false,
            redirects: None,
            seed: [0; 16],
        }
    }
}
