//! The open connection of a session: whatever is under way on it goes along, in both directions.

use std::time::Duration;

use playfield_state::{Bytes, Data};

use crate::addresses::Tally;
use crate::config::Config;
use crate::shard::Shard;
use crate::shard::connection::deflated::Deflated;
use crate::shard::connection::transport::{Framing, Input, deflating_decoder};
use crate::shard::connection::{Connection, Phase};
use crate::shard::keys::ConnectionKey;
use crate::shard::session::SessionRoom;
use crate::shard::session::resumption::Resumption;

/// An open connection.
#[derive(Data, Debug)]
pub(super) struct ConnectionPart {
    framing: FramingPart,
    /// The input that was read and is not handled: often a part of a message.
    unread: Bytes,
    /// The output that is not written, which may begin within a message.
    unsent: Bytes,
}

#[derive(Clone, Copy, Data, Debug, PartialEq, Eq)]
enum FramingPart {
    Native,
    WebSocket,
    /// A WebSocket that compresses messages: those to the client with this window.
    Deflated {
        window_bits: u8,
    },
}

impl ConnectionPart {
    /// A connection with all that is under way; `None` if it has state that bytes can't tell.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let mut unread = Vec::new();
        let framing = match (&connection.input, connection.dialect.framing) {
            (Input::Native, Framing::Native) => FramingPart::Native,
            (Input::WebSocket(decoder), Framing::WebSocket(deflated)) => {
                if let Some(decoder) = decoder
                    && !decoder.encode_unfinished(&mut unread)
                {
                    return None;
                }
                let of = |deflated: Deflated| FramingPart::Deflated {
                    window_bits: deflated.window_bits(),
                };
                deflated.map_or(FramingPart::WebSocket, of)
            }
            _ => return None,
        };
        unread.extend_from_slice(connection.partial.as_slice());
        let unsent = Bytes(connection.unsent_bytes().to_vec());
        Some(Self { framing, unread: Bytes(unread), unsent })
    }

    pub(super) fn connection(self, config: &Config, now: Duration, tally: Tally) -> Connection {
        let Self { framing, unread, unsent } = self;
        let (input, framing) = match framing {
            FramingPart::Native => (Input::Native, Framing::Native),
            FramingPart::WebSocket => (Input::WebSocket(None), Framing::WebSocket(None)),
            FramingPart::Deflated { window_bits } => {
                let deflated = Deflated::with_window(window_bits, config.tuning.deflate_bytes_min);
                let decoder = Box::new(deflating_decoder(config));
                (Input::WebSocket(Some(decoder)), Framing::WebSocket(Some(deflated)))
            }
        };
        let mut connection = Connection::new(now, input, tally);
        connection.dialect.framing = framing;
        connection.partial = unread.0.into();
        connection.set_unsent(unsent.0);
        connection
    }
}

impl Shard {
    /// Returns whether the open connection of a session may be passed on: neither end has state but
    /// what is handed over, and its client does not hear of it.
    pub(crate) fn may_pass_on(&self, key: ConnectionKey) -> bool {
        let (Some(connection), Some(session)) = (self.links.get(key), self.sessions.get(key))
        else {
            return false;
        };
        let is_here = session.resumption.as_ref().is_none_or(Resumption::is_here);
        // Its messages to its rooms are handled.
        let is_settled = |room: &SessionRoom| room.leaving.is_none() && room.acts == 0;
        // Subscriptions end with a connection, whose client subscribes again.
        let has_channels = session.extras().is_some_and(|extras| extras.channels.is_some());
        is_here
            && connection.phase == Phase::Open
            && !(connection.held || connection.pause.greeting || connection.pause.departure)
            && !has_channels
            && session.rooms.iter().all(is_settled)
    }

    /// Returns the open connection of a session, if it [may](Self::may_pass_on) be passed on.
    pub(super) fn connection_part(&self, key: ConnectionKey) -> Option<ConnectionPart> {
        let connection = self.links.get(key).filter(|_| self.may_pass_on(key))?;
        ConnectionPart::of(connection)
    }

    /// The socket of a connection that was passed on is here: what was read before is handled.
    pub(crate) fn goes_on(&mut self, key: ConnectionKey) {
        self.links.pause_if_behind(key);
        outlet!(self).note_unfinished(key);
        if self.links.get(key).is_some_and(|connection| !connection.partial.is_empty()) {
            self.links.resumed.push(key);
        }
    }
}
