//! The opening handshake (RFC 6455, 4): HTTP heads into upgrades, for servers and clients.
//!
//! A server calls [`parse_request`] whenever bytes arrive until the head is
//! [`Complete`](Head::Complete), then answers with [`accept`], [`reject`], or, where the request is
//! no WebSocket request, with whatever it serves over HTTP. A client makes a [`ClientHandshake`],
//! sends its request and parses the response. Both are strict where leniency lets two readers of
//! one head disagree: line ends, repeated headers, bodies.

mod client;
mod error;
pub(crate) mod extension;
mod head;
mod request;
mod response;

pub use client::{ClientHandshake, Response};
pub use error::HandshakeError;
pub use head::HeadLimits;
pub use request::{Head, Request, TARGET_BYTES_MAX, Upgrade, parse_request};
pub use response::{accept, reject};
