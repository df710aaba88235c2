//! HTTP beside the rooms: pages in memory, files of folders, and the program's own handlers.
//!
//! ```text
//!  shard: first bytes ──▶ head ──▶ WebSocket, stays there
//!                          │
//!                          └──▶ handover ──▶ connection (hyper) ──▶ limits ──▶ site (axum)
//! ```
//!
//! A shard reads the first head of a connection. Unless it asks for a WebSocket, the connection
//! goes to the control thread: its socket, its TLS and the bytes that were read. There, requests
//! and slow handlers delay no room.

mod answer;
mod chunks;
mod coding;
mod connection;
mod extract;
mod failure;
mod folder;
mod handover;
mod limits;
mod pages;
mod path;
mod private;
mod progress;
mod requests;
mod serve;
mod site;
mod stream;

pub use failure::Failure;
pub use path::percent_decoded;

pub(crate) use handover::{Handed, Handover, OpenConnection};
pub(crate) use private::PrivateHttp;
pub(crate) use requests::{Full, Requests};
pub(crate) use serve::{HttpServer, serve};
pub(crate) use site::Site;
