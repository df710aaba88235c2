//! The messages of a client that were handled, and the node's messages that it has confirmed.

use playfield_session::ACK_DELAY;
use playfield_wire::ErrorCode;
use playfield_wire::client::ClientMessage;
use playfield_wire::server::{self, ServerMessage};

use crate::shard::connection::narrowed;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// A message came that is about to be handled.
    #[inline]
    pub(in crate::shard) fn count_received(
        &mut self,
        key: ConnectionKey,
        message: &ClientMessage<'_>,
        bytes: usize,
    ) {
        let Some(resumption) = self.sessions.resumption(key) else { return };
        resumption.confirmed = true;
        if !message.is_counted() {
            return;
        }
        let is_first = !resumption.received.is_behind();
        resumption.received.handled(bytes);
        if resumption.received.is_due() {
            self.acknowledge(key);
        } else if is_first {
            self.links.look_by(key, self.env.now + ACK_DELAY);
        }
    }

    /// Tells the client what was handled.
    fn acknowledge(&mut self, key: ConnectionKey) {
        let Some(resumption) = self.sessions.resumption(key) else { return };
        let received = resumption.received.acknowledge();
        self.send(key, &ServerMessage::Ack(server::Ack { received }));
    }

    /// Tells the client what was handled, if it does not know yet.
    pub(in crate::shard) fn acknowledge_late(&mut self, key: ConnectionKey) {
        if self.sessions.resumption(key).is_some_and(|resumption| resumption.received.is_behind()) {
            self.acknowledge(key);
        }
    }

    /// The client has handled `received` messages, or unasked schemas if the session ends with its
    /// connection.
    pub(in crate::shard) fn acknowledged(&mut self, key: ConnectionKey, received: u64) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        session.has_handled(received);
        let Some(resumption) = &mut session.resumption else { return };
        let acknowledged = resumption.log.acknowledge(received);
        let bytes = resumption.log.memory();
        if let Some(connection) = self.links.get_mut(key) {
            connection.logged = narrowed(bytes);
        }
        if let Err(error) = acknowledged {
            self.fail(key, ErrorCode::BadMessage, &error.to_string());
        }
    }
}
