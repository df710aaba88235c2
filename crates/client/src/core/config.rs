//! What a client is made with.

use playfield_wire::Format;

use super::Masks;

/// What a [`Client`](super::Client) is made with.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The format of everything that is said.
    pub format: Format,
    /// The display name; may be empty.
    pub name: String,
    /// For the node's authenticator; may be empty.
    pub token: Vec<u8>,
    /// What carries the messages.
    pub transport: Transport,
    /// Over WebSocket, offers the node to compress messages (RFC 7692); not unless told otherwise.
    /// A node that does not want to is spoken to without.
    pub deflate: bool,
    /// The longest message that is taken from the node, in bytes; 16 MiB unless told otherwise.
    pub message_bytes_max: usize,
    /// The most requests that may wait for their answers; 65536 unless told otherwise. One more is
    /// refused with [`CommandError::Busy`](super::CommandError::Busy).
    pub requests_max: usize,
    /// Room types and the fingerprints of what this client was built with. Right after the welcome
    /// the node tells the schemas of those of which it has another, see
    /// [`Handler::schema`](super::Handler::schema).
    pub schemas: Vec<(String, u64)>,
}

/// What carries the messages.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Frames with their length in front, over any byte stream.
    Native,
    /// WebSocket (RFC 6455).
    WebSocket {
        /// The node's name or address, with the port unless it is 80.
        host: String,
        /// The path that is asked for, beginning with `/`.
        target: String,
        /// Drawn at random for each connection (RFC 6455, 4.1).
        key: [u8; 16],
        /// Where the mask of each frame comes from (RFC 6455, 5.3).
        masks: Masks,
    },
}

impl ClientConfig {
    /// A client without a name, over the given transport.
    #[must_use]
    pub fn new(format: Format, transport: Transport) -> Self {
        Self {
            format,
            name: String::new(),
            token: Vec::new(),
            transport,
            deflate: false,
            message_bytes_max: 16 << 20,
            requests_max: 1 << 16,
            schemas: Vec::new(),
        }
    }
}
