//! The first request of a connection: a shard answers it only if it asks for a WebSocket.

use std::slice::EscapeAscii;
use std::time::Duration;

use playfield_websocket::handshake::{Head, HeadLimits, Request, parse_request};
use playfield_websocket::{Decoder, Deflate, Role};

use crate::addresses::{Crowded, Tally};
use crate::node::Node;
use crate::proxy::{Client, forwarded};
use crate::shard::connection::carrier::Carrier;
use crate::shard::connection::deflated::Deflated;
use crate::shard::connection::transport::{Framing, Input, websocket_limits};
use crate::shard::connection::{Connection, Links, SocketChange};
use crate::shard::env::Env;
use crate::shard::keys::ConnectionKey;

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

/// The bytes behind the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// A body of this length, then the next head.
    Length(u64),
    /// A body in a transfer coding, which says where it ends.
    Coded,
}

/// Longer bodies are refused whatever may be allowed. Hyper takes the greatest lengths for others.
const BODY_BYTES_MAX: u64 = u64::MAX / 2;

/// Why a request is refused by its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Links {
    /// Gives a connection away, with the bytes that were read of it.
    pub(in crate::shard) fn hand_over(&mut self, key: ConnectionKey, input: &[u8]) {
        let connection = self.get(key).map(|connection| &connection.input);
        let Some(Input::Http(http)) = connection else { return };
        let peer = http.peer;
        if let Some(Connection { tally, .. }) = self.remove(key) {
            let http = HandedOver { peer, tally, input: input.to_vec() };
            self.socket_changes.push_back(SocketChange::HandedOver(key, Box::new(http)));
        }
    }

    /// Makes a connection a WebSocket for a session.
    pub(in crate::shard) fn become_websocket(
        &mut self,
        key: ConnectionKey,
        deflate: Option<&Deflate>,
        env: &Env,
    ) {
        let config = &env.node.config;
        let Some(connection) = self.get_mut(key) else { return };
        let limits = websocket_limits(config, true);
        let decoder = |deflate| Box::new(Decoder::with_deflate(Role::Server, limits, deflate));
        connection.input = Input::WebSocket(deflate.map(decoder));
        let deflated = deflate.map(|agreed| Deflated::new(agreed, config.tuning.deflate_bytes_min));
        connection.dialect.framing = Framing::WebSocket(deflated);
        // A hello has its time from when the client connected, or from here on if the request waited
        // too long to be read.
        if connection.put_off {
            connection.heard = env.now.into();
        }
        let by = connection.heard.time() + config.timeouts.hello;
        self.look_at(key, by);
    }

    /// Makes a connection a WebSocket of a service. Returns the input that was kept of it.
    pub(in crate::shard) fn become_service(
        &mut self,
        key: ConnectionKey,
        service: u16,
        env: &Env,
    ) -> Option<Vec<u8>> {
        let connection = self.get_mut(key)?;
        connection.input = Input::Service(service, Some(Box::new(Carrier::new())));
        connection.dialect.framing = Framing::WebSocket(None);
        connection.tally.settle();
        connection.lives(env.now);
        let kept = std::mem::take(&mut connection.partial).take();
        self.look_at(key, env.now + env.node.config.timeouts.heartbeat / 2);
        Some(kept)
    }
}

/// Reads the head at the front of the input; `None` if more of it is to come. The first head of a
/// connection and later ones are read by this.
pub(crate) fn parse_head(
    input: &[u8],
    head_bytes_max: usize,
) -> Result<Option<(Request<'_>, Behind)>, Refusal> {
    let limits = HeadLimits { head_bytes_max, ..HeadLimits::default() };
    match parse_request(input, &limits) {
        Ok(Head::Partial) => Ok(None),
        Ok(Head::Complete(request)) => {
            check_host(&request)?;
            let behind = behind(&request)?;
            Ok(Some((request, behind)))
        }
        Err(error) => Err(Refusal { status: error.status(), text: error.to_string() }),
    }
}

/// Refuses bytes that no host and port have (RFC 3986, 3.2).
fn check_host(request: &Request<'_>) -> Result<(), Refusal> {
    let may_be = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(byte);
    match request.values("Host").find(|host| !host.iter().all(may_be)) {
        Some(host) => Err(invalid("Host", host)),
        None => Ok(()),
    }
}

/// Refuses what two readers could take for bodies of different lengths (RFC 9112, 6.1 and 6.3).
fn behind(request: &Request<'_>) -> Result<Behind, Refusal> {
    let is_coded = request.values("Transfer-Encoding").next().is_some();
    let lengths: Vec<&[u8]> = request.values("Content-Length").collect();
    match lengths[..] {
        [] if is_coded => Ok(Behind::Coded),
        _ if is_coded => Err(bad("the request has Content-Length beside Transfer-Encoding".into())),
        [] => Ok(Behind::Length(0)),
        [length] => {
            let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let digits = std::str::from_utf8(length).ok().filter(|_| is_number);
            let digits = digits.ok_or_else(|| invalid("Content-Length", length))?;
            let bytes = digits.parse().ok().filter(|bytes| *bytes <= BODY_BYTES_MAX);
            bytes.map(Behind::Length).ok_or_else(|| {
                let text = format!("Content-Length: {} bytes are too many", start(length));
                Refusal { status: 413, text }
            })
        }
        _ => {
            let count = lengths.len();
            Err(bad(format!("the request has {count} Content-Length headers; send one")))
        }
    }
}

fn bad(text: String) -> Refusal {
    Refusal { status: 400, text }
}

fn invalid(header: &str, value: &[u8]) -> Refusal {
    bad(format!("{header} has the invalid value \"{}\"", start(value)))
}

/// The start of a value, for an error.
fn start(value: &[u8]) -> EscapeAscii<'_> {
    value[..value.len().min(64)].escape_ascii()
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
