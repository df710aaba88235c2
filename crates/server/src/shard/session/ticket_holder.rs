//! Sessions of clients that have nothing but a ticket.

use playfield_room::Error;
use playfield_wire::ErrorCode;
use playfield_wire::client::{self, ClientMessage};

use crate::node::Node;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::Session;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::rates::request_of;
use crate::tickets::is_ticket;

impl Outlet<'_> {
    /// Returns whether the session of a client that came without a token may send this message; if not, the
    /// client gets an error.
    pub(in crate::shard) fn is_open_to_ticket_holders(
        &mut self,
        key: ConnectionKey,
        message: &ClientMessage<'_>,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(key) else { return false };
        if is_allowed(message, session, &self.env.node) {
            return true;
        }
        let room = match message {
            ClientMessage::Send(client::Send { room, .. }) => Some(*room),
            _ => None,
        };
        let text = "this session may only join rooms by tickets; connect with a token for more";
        let error = Error::new(ErrorCode::Forbidden, text);
        self.send_error(key, request_of(message), room, &error);
        false
    }
}

/// A list of what is allowed, so that new messages are refused until they are added here.
fn is_allowed(message: &ClientMessage<'_>, session: &Session, node: &Node) -> bool {
    match message {
        ClientMessage::Join(client::Join { room, .. }) => is_ticket(room),
        // All rooms of the session were joined by tickets.
        ClientMessage::Request(_)
        | ClientMessage::Send(_)
        | ClientMessage::Resync(_)
        | ClientMessage::Leave(_) => true,
        ClientMessage::Schema(client::Schema { room_type, .. }) => {
            let wanted = node.room_type(room_type);
            session.rooms.iter().filter(|room| room.request.is_none()).any(|room| {
                let place = node.directory.find(room.id);
                place.is_some_and(|place| Some(place.room_type) == wanted)
            })
        }
        ClientMessage::Ack(_)
        | ClientMessage::Ping(_)
        | ClientMessage::Pong(_)
        | ClientMessage::Goodbye(client::Goodbye {})
        // A second one ends the connection.
        | ClientMessage::Hello(_) => true,
        _ => false,
    }
}
