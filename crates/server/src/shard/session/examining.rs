//! The timeouts of connections: hellos, unfinished messages, silence.

use std::sync::Arc;
use std::time::Duration;

use playfield_wire::ErrorCode;
use playfield_wire::server::{self, ServerMessage};

use crate::service::Closed;
use crate::shard::connection::Phase;
use crate::shard::connection::timeouts::{NO_SLOT, Timeouts};
use crate::shard::connection::transport::{Framing, Input};
use crate::shard::keys::ConnectionKey;
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// Checks connections whose timeouts may have expired.
    pub(in crate::shard) fn expire_connections(&mut self) {
        let mut due = std::mem::take(&mut self.links.due);
        self.links.timeouts.expire(self.env.now, &mut due);
        for (slot, place) in due.drain(..) {
            if let Some(key) = self.links.key_at(place as usize) {
                self.examine(key, slot);
            }
        }
        Timeouts::shrink(&mut due);
        self.links.due = due;
        for key in std::mem::take(&mut self.links.read_late) {
            self.examine_due(key);
        }
    }

    fn examine(&mut self, key: ConnectionKey, slot: u64) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if connection.slot != slot {
            return; // Another deadline has replaced this one, or another connection the one here.
        }
        connection.slot = NO_SLOT;
        self.examine_due(key);
    }

    fn examine_due(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let (node, now) = (Arc::clone(&self.env.node), self.env.now);
        let config = &node.config;
        let deadline = connection.look_at.time();
        if now < deadline {
            return self.links.set_timeout(key);
        }
        if connection.is_away() {
            return self.expire_away(key);
        }
        if let Phase::Closing { by, .. } = connection.phase {
            let by = by.time();
            if now >= by {
                self.drop_connection(key);
            } else {
                self.links.look_at(key, by);
            }
            return;
        }
        if connection.unread && !connection.pause.greeting {
            // The missing input may have come.
            connection.put_off = true;
            return;
        }
        if matches!(connection.input, Input::Http(_)) {
            return self.examine_http(key);
        }
        let is_service = matches!(connection.input, Input::Service(..));
        if !connection.has_session && !is_service {
            let by = connection.heard.time() + config.timeouts.hello;
            if now < by {
                return self.links.look_at(key, by);
            }
            let limit = config.timeouts.hello;
            let text = match self.sessions.greetings.get(&key) {
                Some(greeting) => format!("timeouts.hello: {} in {limit:?}", greeting.awaits()),
                None => format!("timeouts.hello: no hello was received within {limit:?}"),
            };
            self.env.counters.hello_timeouts += 1;
            return self.fail(key, ErrorCode::Timeout, &text);
        }
        let unfinished_by =
            connection.unfinished_since.time().saturating_add(config.timeouts.message);
        if now >= unfinished_by {
            let limit = config.timeouts.message;
            let text = format!("timeouts.message: a message was not complete within {limit:?}");
            self.env.counters.closed_unfinished += 1;
            if is_service {
                return self.close_service(key, Closed::Unfinished);
            }
            return self.fail(key, ErrorCode::Timeout, &text);
        }
        self.acknowledge_late(key);
        self.expire_ticket(key);
        let tells_at = self.tell_refused(key);
        self.examine_silence(key, deadline, is_service);
        self.links.look_by(key, unfinished_by.min(tells_at));
        self.outbound.effects.push_back(Effect::Examined(key));
    }

    /// Checks whether a connection was silent for too long.
    fn examine_silence(&mut self, key: ConnectionKey, deadline: Duration, is_service: bool) {
        let ping_at = self.ping_if_due(key);
        let Some(connection) = self.links.get(key) else { return };
        let (node, now) = (Arc::clone(&self.env.node), self.env.now);
        let config = &node.config;
        let patience = self.patience(key);
        let heard = connection.heard.time();
        let (asks_at, ends_at) = (heard + patience.ask, heard + patience.end);
        if now < asks_at {
            return self.links.look_at(key, asks_at.min(ping_at));
        }
        let again_at = ping_at.min(now + patience.ask);
        // A client that does not read its queued output would not read a ping either.
        let is_blocked = connection.blocked;
        if !connection.pinged {
            self.links.look_at(key, again_at);
            if let Some(connection) = self.links.get_mut(key) {
                connection.pinged = true;
            }
            if !is_blocked {
                self.ask_for_life(key);
            }
            return;
        }
        if now < ends_at {
            return self.links.look_at(key, again_at.min(ends_at));
        }
        // The client may have spoken, if this shard was held up, or reads nothing from it for now.
        let was_held_up = now > deadline.saturating_add(patience.ask / 2);
        let is_unread = (connection.pause.mailbox || connection.pause.acts) && !is_blocked;
        if was_held_up || is_unread {
            return self.links.look_at(key, again_at);
        }
        if is_service {
            return self.close_service(key, Closed::Silent);
        }
        // Nobody would read why.
        if self.lose(key) {
            return;
        }
        let text = if patience.end < 2 * config.timeouts.heartbeat {
            let ms = patience.end.as_millis();
            format!("silence_ms: nothing was received for {ms} ms")
        } else {
            let limit = config.timeouts.heartbeat;
            format!("timeouts.heartbeat: nothing was received for twice {limit:?}")
        };
        self.fail(key, ErrorCode::Timeout, &text);
    }

    fn ask_for_life(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get(key) else { return };
        if let Input::Service(service, _) = connection.input {
            if connection.is_websocket() {
                self.links.ping_transport(key, &[]);
            }
            return self.outbound.effects.push_back(Effect::ServiceSilent { key, service });
        }
        match connection.dialect.framing {
            Framing::Native => {
                self.send(key, &ServerMessage::Ping(server::Ping { nonce: 0 }));
            }
            Framing::WebSocket(_) => self.links.ping_transport(key, &[]),
        }
    }
}
