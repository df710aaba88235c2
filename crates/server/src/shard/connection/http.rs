//! The first request of a connection: a shard answers it only if it asks for a WebSocket.

use std::time::Duration;

use playfield_websocket::handshake::Request;

use crate::addresses::{Crowded, Tally};
use crate::node::Node;
use crate::proxy::{Client, forwarded};

/// A connection whose first head is coming in.
pub(crate) struct Http {
    pub(crate) peer: Client,
    /// Since when.
    pub(crate) since: Duration,
}

/// A connection that goes to the control thread, because it speaks HTTP.
pub(crate) struct HandedOver {
    pub(crate) peer: Client,
    pub(crate) tally: Tally,
    /// The bytes that were read.
    pub(crate) input: Vec<u8>,
}

/// The answer to a WebSocket handshake that is refused because of a limit.
pub(in crate::shard) fn crowded(why: Crowded) -> &'static str {
    match why {
        Crowded::Connections => {
            "limits.connections.per_address: too many connections of your address\n"
        }
        Crowded::Handshakes => {
            "limits.handshakes.per_address: too many clients of your address have not said hello\n"
        }
        Crowded::AllHandshakes => "limits.handshakes.total: too many clients have not said hello\n",
    }
}

/// The client that sent a request: the one that a trusted proxy names, or else the peer.
pub(in crate::shard) fn client_of(node: &Node, peer: Client, request: &Request<'_>) -> Client {
    if !node.addresses.is_proxy(peer.address.ip()) {
        return peer;
    }
    let headers: Vec<&[u8]> = request.values("X-Forwarded-For").collect();
    forwarded(peer, headers.into_iter(), |ip| node.addresses.is_proxy(ip))
}
