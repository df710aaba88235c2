//! Services by WebSocket: the clients' messages are pieces of the stream that the service's codec
//! cuts into frames.

use playfield_websocket::{Control, Error, Opcode, Role, StreamDecoder, Streamed};
use playfield_wire::framing::FrameError;

use crate::service::Closed;
use crate::shard::Shard;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::closing::{
    GOING_AWAY, INTERNAL, NO_CLOSE_CODE, NORMAL, POLICY, PROTOCOL_ERROR, TOO_BIG,
};
use crate::shard::session::outlet::Outlet;

/// The WebSocket of a service's connection.
pub(crate) struct Carrier {
    decoder: StreamDecoder,
    /// Nothing follows what was received: the client's Close with its code, or an error.
    end: Option<Result<Option<u16>, Error>>,
}

impl Carrier {
    pub(in crate::shard) fn new() -> Self {
        Self { decoder: StreamDecoder::new(Role::Server), end: None }
    }

    /// Whether the client has yet to send the rest of a frame of the WebSocket.
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

impl Shard {
    /// Bytes came on a connection of a service by WebSocket: those from `at`.
    pub(in crate::shard) fn received_in_messages(
        &mut self,
        key: ConnectionKey,
        buffer: &mut [u8],
        at: usize,
    ) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let Input::Service(_, Some(carrier)) = &mut connection.input else { return };
        if carrier.end.is_some() {
            return; // Nothing counts after a Close.
        }
        let (mut pongs, mut lives) = (Vec::new(), false);
        let Streamed { bytes: count, end } = carrier.decoder.decode(&mut buffer[at..], |control| {
            lives = true;
            if let Control::Ping(payload) = control {
                playfield_websocket::encode(&mut pongs, Opcode::Pong, payload, None);
            }
        });
        carrier.end = end;
        if lives {
            outlet!(self).note_life(key);
        }
        if !pongs.is_empty() {
            self.links.append(key, |out| {
                out.extend_from_slice(&pongs);
                true
            });
            self.links.pause_if_behind(key);
        }
        self.feed(key, &mut buffer[..at + count], at);
        outlet!(self).end_messages(key);
    }
}

impl Outlet<'_> {
    /// Closes a connection whose client has sent its last frame, once the service was given all
    /// that came before.
    pub(in crate::shard) fn end_messages(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get(key) else { return };
        let Input::Service(_, Some(carrier)) = &connection.input else { return };
        if !connection.partial.is_empty() && !connection.takes_input() {
            return;
        }
        match carrier.end {
            None => {}
            Some(Ok(code)) => {
                self.leave_service(key, Closed::HungUp);
                self.close(key, Some((code.unwrap_or(NO_CLOSE_CODE), "")));
            }
            Some(Err(error)) => self.close_service(key, Closed::WebSocket(error)),
        }
    }
}

/// The close code for a WebSocket client of a service, and the reason if it concerns the client.
pub(in crate::shard) fn close_of(why: &Closed) -> (u16, String) {
    let code = match why {
        Closed::HungUp | Closed::ByService => return (NORMAL, String::new()),
        Closed::Failed(_) => return (POLICY, String::new()),
        Closed::Panicked => return (INTERNAL, String::new()),
        Closed::WebSocket(error) => error.close_code(),
        Closed::Frame(FrameError::TooLarge { .. } | FrameError::Endless { .. }) => TOO_BIG,
        Closed::Frame(_) => PROTOCOL_ERROR,
        Closed::ShuttingDown => GOING_AWAY,
        Closed::TooSlow
        | Closed::Silent
        | Closed::Unfinished
        | Closed::TakenOver
        | Closed::Disconnected => POLICY,
    };
    (code, why.to_string())
}
