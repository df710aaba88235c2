//! Services: custom protocols, on the same event loop as the rooms.
//!
//! A [`Service`] has its own address. Its [`FrameCodec`] and its handlers define the protocol. The
//! shards treat its connections like those of the rooms: in the same turn, so that all replies to a
//! read are sent in one write, and with the same limits, backpressure and orderly shutdown.
//!
//! Each shard has its own value of the service, made by the factory that was given to the server.
//! It is not shared, so handlers use plain `&mut self` without a lock. If connections on all shards
//! must reach each other, run one shard, or share an `Arc` among the values.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use playfield_server::service::{Frame, NativeFrames, Peer, Result, Service};
//! use playfield_server::{Config, Server};
//!
//! /// Echoes every frame.
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
mod peer;

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

pub use playfield_wire::framing::{
    FixedSize, Frame, FrameCodec, FrameError, Length, LengthPrefixed, NativeFrames,
};
pub use playfield_wire::packet::{Big, Little};

pub use context::{Answered, Command, CommandId, ConnectionId, Context};
pub(crate) use context::{Leave, Reach};
pub(crate) use hosted::{AnyService, Hosted, Served};
pub use peer::Peer;
pub use playfield_room::AskId;

/// The result of a handler. An error closes the connection after sending what was written to it.
pub type Result<T = (), E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// A custom protocol on the same event loop as the rooms. [The module](self) describes how it runs.
///
/// Its limits are settings of the node: `limits.message_bytes` for a frame's body,
/// `limits.session.outbox_bytes.max` and `limits.session.outbox_bytes.high` for queued output,
/// `limits.connections.total`, and `timeouts.heartbeat` for silence.
///
/// A panic in a handler closes the connection that it was called for, and is logged. The service
/// keeps running as the panic left it, with all its other connections: one client must not be able
/// to close those of all others. So make related changes together, after anything that may fail, or
/// keep them in the connection's own state, which [`closed`](Self::closed) gets last.
pub trait Service: Sized + Send + 'static {
    /// The state of each connection.
    type Connection: Send + 'static;

    /// The codec that cuts the byte stream into frames.
    type Codec: FrameCodec;

    /// Returns the codec. It is called once.
    fn codec(&self) -> Self::Codec;

    /// A client has connected, from this address.
    fn connected(&mut self, address: SocketAddr, peer: &mut Peer<Self>) -> Self::Connection;

    /// A frame arrived. It borrows from the read buffer, and is gone after the call. This is called
    /// in a loop over all frames of a read; where nanoseconds count, mark it `#[inline]`.
    ///
    /// # Errors
    /// Any error that makes it impossible to continue with this client. Its connection is closed.
    fn received(
        &mut self,
        connection: &mut Self::Connection,
        frame: Frame<'_>,
        peer: &mut Peer<Self>,
    ) -> Result;

    /// A connection is closed: nothing more is received from it, and nothing more can be written to
    /// it. What was written before is still sent.
    fn closed(
        &mut self,
        connection: Self::Connection,
        id: ConnectionId,
        why: &Closed,
        cx: &mut Context<Self>,
    ) {
        let _ = (connection, id, why, cx);
    }

    /// A client has been silent for half of `timeouts.heartbeat`. Send a ping, if the protocol has
    /// one. After twice `timeouts.heartbeat` the connection is closed.
    fn silent(&mut self, connection: &mut Self::Connection, peer: &mut Peer<Self>) {
        let _ = (connection, peer);
    }

    /// A room has answered a request from [`Context::ask`], or can't.
    fn answered(&mut self, answer: Answered, cx: &mut Context<Self>) {
        let _ = (answer, cx);
    }

    /// A command for the device that was [registered](Context::register) for this connection: a
    /// push, or a request that [`Context::answer`] answers, now or later.
    ///
    /// # Errors
    /// As [`received`](Self::received).
    fn command(
        &mut self,
        connection: &mut Self::Connection,
        command: Command<'_>,
        peer: &mut Peer<Self>,
    ) -> Result {
        let _ = connection;
        if let Some(id) = command.id {
            let text = "devices of this service take no commands";
            peer.answer(id, Err(playfield_room::Error::from(text)));
        }
        Ok(())
    }

    /// The time that [`Context::wake_in`] set has passed.
    fn woken(&mut self, cx: &mut Context<Self>) {
        let _ = cx;
    }
}

/// Why a connection was closed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Closed {
    /// The client closed it, or the connection broke.
    HungUp,
    /// The service closed it.
    ByService,
    /// The client sent an invalid frame, or one longer than `limits.message_bytes`.
    Frame(FrameError),
    /// The client violated the WebSocket protocol, or sent text.
    WebSocket(playfield_websocket::Error),
    /// A handler ended with an error.
    Failed(Box<dyn Error + Send + Sync>),
    /// A handler panicked.
    Panicked,
    /// More than `limits.session.outbox_bytes.max` bytes would have been queued for the client.
    TooSlow,
    /// No whole frame was received from the client for twice `timeouts.heartbeat`.
    Silent,
    /// The client did not send a frame to its end within `timeouts.message`.
    Unfinished,
    /// Another has registered as the device that was registered for the connection.
    TakenOver,
    /// The program has ended the connection of the device: see
    /// [`Devices::disconnect`](crate::Devices::disconnect).
    Disconnected,
    /// The node is shutting down.
    ShuttingDown,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HungUp => f.write_str("the client closed the connection, or it broke"),
            Self::ByService => f.write_str("the service closed the connection"),
            Self::Frame(error) => error.fmt(f),
            Self::WebSocket(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Panicked => f.write_str("the service panicked"),
            Self::TooSlow => {
                f.write_str("limits.session.outbox_bytes.max: too many bytes are queued")
            }
            Self::Silent => {
                f.write_str("timeouts.heartbeat: nothing was received for twice that time")
            }
            Self::Unfinished => f.write_str("timeouts.message: a frame was not complete in time"),
            Self::TakenOver => f.write_str("another has registered as its device"),
            Self::Disconnected => f.write_str("the program has disconnected its device"),
            Self::ShuttingDown => f.write_str("the node is shutting down"),
        }
    }
}
