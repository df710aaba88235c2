//! The opening handshake (RFC 6455, 4): HTTP upgrades, for servers and clients.
//!
//! A server calls [`parse_request`] whenever bytes arrive until the head is
//! [`Complete`](Head::Complete). It then answers with [`accept`], [`reject`], or, for a plain HTTP
//! request, with its own HTTP response. A client creates a [`ClientHandshake`], sends its request
//! and parses the response. Both are strict wherever two parsers could interpret the same head
//! differently: line ends, repeated headers, bodies.

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
