//! The WebSocket of a service's connection.

use playfield_websocket::{Error, Role, StreamDecoder};

use crate::shard::connection::transport::Input;

/// The WebSocket of a service's connection.
pub(crate) struct Carrier {
    pub(in crate::shard) decoder: StreamDecoder,
    /// Nothing follows what was received: the client's Close with its code, or an error.
    pub(in crate::shard) end: Option<Result<Option<u16>, Error>>,
}

impl Carrier {
    pub(in crate::shard) fn new() -> Self {
        Self { decoder: StreamDecoder::new(Role::Server), end: None }
    }

    /// Returns whether the client has yet to send the rest of a frame of the WebSocket.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.end.is_none() && self.decoder.is_unfinished()
    }

    /// The input of its connection once it is being closed.
    pub(in crate::shard) fn into_closing(self) -> Input {
        match self.end {
            None => Input::Closing(Box::new(self.decoder.into_close_finder())),
            Some(_) => Input::InUse,
        }
    }
}
