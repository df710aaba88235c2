//! The client on tokio, over real sockets: against a scripted node, and against a real one.
#![cfg(feature = "tokio")]

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod channels;
mod connection;
mod deflate;
mod dynamic_rooms;
mod reconnecting;
mod redirects;
mod refusals;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod typed_rooms;
