//! Services: protocols of your own, on the same loop as the rooms.
//!
//! A [`Service`] has an address of its own, and speaks whatever its [`FrameCodec`] and its handlers
//! make of the bytes that come there. The shards hold its connections as they hold those of the
//! rooms: the same turn, so that all replies to what came in leave in one write; the same limits,
//! back-pressure and orderly end.
//!
//! There is one value of the service for each shard, made by the factory that was given to the
//! server. It is shared with nobody, so handlers work on it with plain `&mut self`, and no lock.
//! Where connections of all shards have to reach each other, run one shard, or share an `Arc` among
//! the values.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use playfield_server::service::{Frame, NativeFrames, Peer, Result, Service};
//! use playfield_server::{Config, Server};
//!
//! /// Sends back what it hears.
//! struct Echo;
//!
//! impl Service for Echo {
//!     type Connection = ();
//!     type Codec = NativeFrames;
//!
//!     fn codec(&self) -> NativeFrames {
//!         NativeFrames::new()
//!     }
//!
//!     fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}
//!
//!     fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
//!         Ok(peer.reply(frame.body)?)
//!     }
//! }
//!
//! let server = Server::new(Config::default()).service(([127, 0, 0, 1], 7400).into(), |_shard|
//! Echo); server.start()?.wait();
//! # Ok::<(), std::io::Error>(())
//! ```

mod context;
mod hosted;

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

pub use playfield_wire::framing::{
    FixedSize, Frame, FrameCodec, FrameError, Length, LengthPrefixed, NativeFrames,
};
pub use playfield_wire::packet::{Big, Little};

pub use context::{ConnectionId, Context, Peer};
pub(crate) use context::{Leave, Reach};
pub(crate) use hosted::{AnyService, Hosted, Served};

/// What a handler ends with. An error closes the connection, after what was written to it.
pub type Result<T = (), E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// A protocol of your own on the same loop as the rooms; [the module](self) says how it is run.
///
/// Its limits are settings of the node: `max_message_bytes` for a frame's body, `outbox_bytes_max`
/// and `outbox_high_bytes` for what waits to be written, `connections_max`, and `heartbeat_ms` for
/// silence.
///
/// A panic in a handler closes the connection that it was called for, and is logged. The value of
/// the service goes on as the panic left it, with all its other connections: one client must not be
/// able to take away those of all others. So what belongs together should change together, after
/// what may fail; or in the connection's own state, which [`closed`](Self::closed) gets for the
/// last time.
pub trait Service: Sized + Send + 'static {
    /// What is kept for each connection.
    type Connection: Send + 'static;

    /// How the byte stream is cut into frames.
    type Codec: FrameCodec;

    /// The codec, asked for once.
    fn codec(&self) -> Self::Codec;

    /// A client has connected, from this address.
    fn connected(&mut self, address: SocketAddr, peer: &mut Peer<Self>) -> Self::Connection;

    /// A frame arrived. It lies in the read buffer, and is gone after the call.
    /// This is called in a loop over all frames of a read; where nanoseconds count, mark it
    /// `#[inline]`.
    ///
    /// # Errors
    /// Whatever makes it impossible to go on with this client: its connection is closed.
    fn received(
        &mut self,
        connection: &mut Self::Connection,
        frame: Frame<'_>,
        peer: &mut Peer<Self>,
    ) -> Result;

    /// A connection is over: nothing more comes from it, and nothing more can be written to it.
    /// What was written before still leaves.
    fn closed(
        &mut self,
        connection: Self::Connection,
        id: ConnectionId,
        why: &Closed,
        cx: &mut Context<Self>,
    ) {
        let _ = (connection, id, why, cx);
    }

    /// A client has been silent for half of `heartbeat_ms`: time to ask for a sign of life,
    /// if the protocol has one. After twice `heartbeat_ms` the connection is closed.
    fn silent(&mut self, connection: &mut Self::Connection, peer: &mut Peer<Self>) {
        let _ = (connection, peer);
    }

    /// The time that [`Context::wake_in`] set has passed.
    fn woken(&mut self, cx: &mut Context<Self>) {
        let _ = cx;
    }
}

/// Why a connection is over.
#[derive(Debug)]
#[non_exhaustive]
pub enum Closed {
    /// The client closed it, or the connection broke.
    HungUp,
    /// The service closed it.
    Told,
    /// The client sent what is no frame, or one past `max_message_bytes`.
    Frame(FrameError),
    /// A handler ended with an error.
    Failed(Box<dyn Error + Send + Sync>),
    /// A handler panicked.
    Panicked,
    /// More than `outbox_bytes_max` bytes would have waited for the client to read them.
    TooSlow,
    /// Nothing came from the client for twice `heartbeat_ms`.
    Silent,
    /// The node is shutting down.
    ShuttingDown,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HungUp => f.write_str("the client is gone"),
            Self::Told => f.write_str("the service closed the connection"),
            Self::Frame(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Panicked => f.write_str("the service panicked"),
            Self::TooSlow => f.write_str("outbox_bytes_max: too many bytes wait to be read"),
            Self::Silent => f.write_str("heartbeat_ms: nothing was heard for twice that time"),
            Self::ShuttingDown => f.write_str("the node is shutting down"),
        }
    }
}
