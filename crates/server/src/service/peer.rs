//! The connection that a handler is called for.

use std::ops::{Deref, DerefMut};

use playfield_websocket::Opcode;
use playfield_wire::framing::FrameError;

use crate::service::Service;
use crate::service::context::{ConnectionId, Context};
use crate::shard::keys::ConnectionKey;

/// The connection that a handler is called for. It is also a [`Context`], with access to all
/// others.
pub struct Peer<'a, S: Service> {
    pub(super) cx: Context<'a, S>,
    pub(super) key: ConnectionKey,
}

impl<S: Service> Peer<'_, S> {
    /// The connection's id, for [`Context::send`] and [`Context::close`] in any later call.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        ConnectionId { shard: self.cx.reach.shard, key: self.key }
    }

    /// Writes a frame to the client. Everything written in one turn is sent together.
    ///
    /// # Errors
    /// If no frame can hold such a body.
    #[inline]
    pub fn reply(&mut self, body: &[u8]) -> Result<(), FrameError> {
        self.cx.reply(body)
    }

    /// Like [`reply`](Self::reply), with the body that `body` appends.
    ///
    /// # Errors
    /// The same as [`reply`](Self::reply).
    #[inline]
    pub fn reply_with(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), FrameError> {
        self.cx.reply_with(body)
    }

    /// Writes raw bytes to the client, without a frame. By WebSocket, they are a message.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        if self.cx.in_messages {
            playfield_websocket::encode(&mut self.cx.out, Opcode::Binary, bytes, None);
        } else {
            self.cx.out.extend_from_slice(bytes);
        }
    }

    /// Closes the connection after sending what was written to it, including what this call still
    /// writes. Nothing more is read from it.
    pub fn hang_up(&mut self) {
        self.cx.ends = true;
    }
}

impl<'a, S: Service> Deref for Peer<'a, S> {
    type Target = Context<'a, S>;

    fn deref(&self) -> &Context<'a, S> {
        &self.cx
    }
}

impl<S: Service> DerefMut for Peer<'_, S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cx
    }
}
