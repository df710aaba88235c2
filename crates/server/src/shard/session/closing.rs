//! The end of connections.

use std::borrow::Cow;
use std::sync::Arc;

use playfield_room::LeaveReason;
use playfield_wire::ErrorCode;
use playfield_wire::server::{self, ServerMessage};

use crate::fleet::Gone;
use crate::service::Closed;
use crate::shard::connection::close_codes::{
    GOING_AWAY, INTERNAL, NORMAL, POLICY, PROTOCOL_ERROR, TOO_BIG, UNSUPPORTED_DATA, close_of,
};
use crate::shard::connection::transport::{Framing, Input, websocket_decoder};
use crate::shard::connection::{Partial, Phase, SocketChange};
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::join::{Departure, Purpose};
use crate::shard::mail::member::{Farewell, ToMember};
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::{Extras, Session};

/// The most bytes read from a connection that is being closed, beside a whole message.
const SKIPPED_BYTES_MAX: usize = 256 << 10;

/// The WebSocket close code for an error.
fn close_code(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::ShuttingDown => GOING_AWAY,
        ErrorCode::TooLarge => TOO_BIG,
        ErrorCode::WrongFormat => UNSUPPORTED_DATA,
        ErrorCode::BadMessage | ErrorCode::HelloExpected | ErrorCode::UnsupportedProtocol => {
            PROTOCOL_ERROR
        }
        ErrorCode::Internal => INTERNAL,
        _ => POLICY,
    }
}

impl Outlet<'_> {
    /// Closes a connection after an error: sends `error` and `goodbye`, then ends it.
    pub(in crate::shard) fn fail(&mut self, key: ConnectionKey, code: ErrorCode, text: &str) {
        self.fail_with(key, code, text, None);
    }

    /// Like [`fail`](Self::fail), with the transport's own close code.
    pub(in crate::shard) fn fail_with(
        &mut self,
        key: ConnectionKey,
        code: ErrorCode,
        text: &str,
        close: Option<u16>,
    ) {
        let Some(connection) = self.links.get(key) else { return };
        if connection.is_closing() {
            return;
        }
        if matches!(connection.input, Input::Http(_)) {
            // An HTTP client can't read messages.
            return self.refuse_http(key, 408, text);
        }
        if self.env.node.echoes {
            // Its clients know WebSocket only.
            return self.close(key, Some((close.unwrap_or(close_code(code)), text)));
        }
        let error = ServerMessage::Error(server::Error {
            request: None,
            room: None,
            code,
            text: Cow::Borrowed(text),
            retry_after_ms: None,
        });
        if connection.held {
            // What is counted waits, but the session ends here.
            let mut body = Vec::new();
            error.encode(connection.dialect.format, &mut body);
            self.links.write_again(key, &body);
        } else {
            self.send(key, &error);
        }
        self.goodbye(key, code, text, close);
    }

    /// Closes a connection in an orderly way, with a reason.
    pub(in crate::shard) fn goodbye(
        &mut self,
        key: ConnectionKey,
        code: ErrorCode,
        text: &str,
        close: Option<u16>,
    ) {
        self.send(
            key,
            &ServerMessage::Goodbye(server::Goodbye { code, text: Cow::Borrowed(text) }),
        );
        self.close(key, Some((close.unwrap_or(close_code(code)), text)));
    }

    /// Closes a connection without a session, because the node is shutting down.
    pub(in crate::shard) fn go_away(&mut self, key: ConnectionKey, text: &str) {
        self.close(key, Some((GOING_AWAY, text)));
    }

    /// Closes the connection of a client that said goodbye.
    pub(in crate::shard) fn let_go(&mut self, key: ConnectionKey) {
        self.acknowledge_late(key);
        self.end_session(key, LeaveReason::Left);
        self.close(key, Some((NORMAL, "")));
    }

    /// Ends the session, and closes the connection once its queued output is written. On WebSocket,
    /// a Close frame is sent last, if one is given. Then the client's Close frame is awaited,
    /// unless it has arrived or input can't be read.
    pub(in crate::shard) fn close(&mut self, key: ConnectionKey, close: Option<(u16, &str)>) {
        self.end_session(key, LeaveReason::ConnectionLost);
        self.leave_service(key, Closed::HungUp);
        let Some(connection) = self.links.get_mut(key) else { return };
        if connection.is_closing() {
            return;
        }
        if connection.is_away() {
            self.links.remove(key);
            return;
        }
        let close = close.filter(|_| matches!(connection.dialect.framing, Framing::WebSocket(_)));
        let by = self.env.now + self.env.node.config.timeouts.close;
        connection.phase =
            Phase::Closing { by: by.into(), written: false, hung_up: false, skipped: 0 };
        if close.is_none() || !connection.awaits_close() {
            connection.partial = Partial::default();
            connection.input = Input::InUse;
        }
        self.sessions.take_greeting(key);
        if let Some(departure) = self.sessions.take_departure(key) {
            self.cancel_departure(&departure);
        }
        self.links.look_at(key, by);
        if let Some((code, reason)) = close {
            self.links.append(key, |out| {
                playfield_websocket::encode_close(out, code, reason, None);
                true
            });
        }
        // It may have arrived while nothing was read.
        self.await_close(key, &[]);
        if self.links.unsent(key).is_empty() {
            self.flushed(key);
        }
    }

    /// Bytes arrived on a connection that is being closed. A client that goes on sending for too
    /// long is dropped.
    pub(in crate::shard) fn skip(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let bytes_max = self.env.node.config.limits.message_bytes + SKIPPED_BYTES_MAX;
        let Some(connection) = self.links.get_mut(key) else { return };
        if let Phase::Closing { skipped, .. } = &mut connection.phase {
            let more = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            *skipped = skipped.saturating_add(more);
            if *skipped as usize > bytes_max {
                return self.drop_connection(key);
            }
        }
        self.await_close(key, bytes);
    }

    /// Bytes of a connection that is being closed. They are skipped up to a Close frame, if one is
    /// awaited.
    pub(in crate::shard) fn await_close(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let mut finder = match std::mem::replace(&mut connection.input, Input::InUse) {
            Input::WebSocket(decoder) => {
                let config = &self.env.node.config;
                let decoder = decoder.map_or_else(|| websocket_decoder(config, true), |kept| *kept);
                Box::new(decoder.into_close_finder())
            }
            Input::Closing(finder) => finder,
            other => {
                connection.input = other;
                return;
            }
        };
        // Earlier input is read once and freed: a finder keeps nothing that it has skipped.
        let before = connection.partial.take();
        if let (Ok(false), Ok(false)) = (finder.push(&before), finder.push(bytes)) {
            connection.input = Input::Closing(finder);
            return;
        }
        // The server then closes the transport immediately (RFC 6455, 7.1.1).
        if matches!(connection.phase, Phase::Closing { written: true, .. }) {
            self.links.all_written.push(key);
        }
    }

    fn cancel_departure(&mut self, departure: &Departure) {
        match &departure.purpose {
            Purpose::Join(join) => self.cancel(join),
            Purpose::Resume(_) => {}
        }
    }

    /// Removes the session from all its rooms.
    pub(in crate::shard) fn end_session(&mut self, key: ConnectionKey, why: LeaveReason) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if connection.has_session && connection.is_device {
            let why = match why {
                LeaveReason::Left => Gone::Left,
                LeaveReason::Kicked => Gone::Disconnected,
                LeaveReason::TakenOver => Gone::TakenOver,
                _ => Gone::ConnectionLost,
            };
            self.outbound.effects.push_back(Effect::DeviceEnded { key, why });
        }
        let Some(connection) = self.links.get_mut(key) else { return };
        let address = Arc::clone(connection.tally.address());
        let Some(session) = self.sessions.remove(key) else { return };
        connection.has_session = false;
        connection.resumable = false;
        connection.logged = 0;
        self.sessions.count -= 1;
        self.leave_users(&session);
        let Session { number, rooms, resumption, extras, .. } = *session;
        if self.env.node.cluster.is_some() {
            self.env.node.moved.ended(number);
        }
        if let Some(resumption) = resumption {
            self.forget_session(number, key, resumption.home, resumption.home);
            if resumption.away_since().is_some() {
                self.end_being_away(&address);
            }
        }
        if let Some(Extras { channels, ticket, .. }) = extras.map(|extras| *extras) {
            if let Some(channels) = channels {
                let effect = Effect::ChannelsEnded { session: number, channels };
                self.outbound.effects.push_back(effect);
            }
            if let Some(ticket) = ticket {
                ticket.give_back();
            }
        }
        for seat in rooms.into_iter().filter_map(|room| room.seat) {
            self.go(seat, why, Farewell::None);
        }
    }

    /// A session has left a seat, here or on another shard.
    pub(in crate::shard) fn go(&mut self, seat: Seat, why: LeaveReason, farewell: Farewell) {
        self.tell(seat, ToMember::Go { why, farewell });
    }

    /// Takes a connection from its service, with the reason.
    pub(in crate::shard) fn leave_service(&mut self, key: ConnectionKey, why: Closed) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let Input::Service(service, carrier) = &mut connection.input else { return };
        let (service, carrier) = (*service, carrier.take());
        connection.input = Input::InUse;
        if let Some(carrier) = carrier {
            // Not the WebSocket's bytes, but the stream's.
            connection.partial = Partial::default();
            connection.input = carrier.into_closing();
        }
        self.outbound.effects.push_back(Effect::ServiceEnded { key, service, why });
    }

    /// Ends a connection of a service, as soon as what it is owed is written.
    pub(in crate::shard) fn close_service(&mut self, key: ConnectionKey, why: Closed) {
        let (code, reason) = close_of(&why);
        self.leave_service(key, why);
        self.close(key, Some((code, &reason)));
    }

    /// All queued output of a connection is written.
    pub(crate) fn flushed(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.slab.get_mut(key) else { return };
        match &mut connection.phase {
            Phase::Open => {
                if std::mem::take(&mut connection.pause.outbox) {
                    self.links.resumed.push(key);
                }
                if std::mem::take(&mut connection.lagging) {
                    self.links.drained.push(key);
                }
                if std::mem::take(&mut connection.owes_receipts) {
                    self.send_receipts(key);
                }
            }
            Phase::Away => {}
            Phase::Closing { hung_up: true, .. } => self.drop_connection(key),
            Phase::Closing { written, .. } => {
                if !std::mem::replace(written, true) && !connection.awaits_close() {
                    self.links.all_written.push(key);
                }
            }
        }
    }

    /// The client sends nothing more, and all that it sent is read.
    pub(crate) fn hung_up(&mut self, key: ConnectionKey) {
        if self.lose(key) {
            return;
        }
        // What it sent before, and the replies to that, are not lost.
        self.close(key, Some((NORMAL, "")));
        let Some(connection) = self.links.get_mut(key) else { return };
        if let Phase::Closing { written, hung_up, .. } = &mut connection.phase {
            *hung_up = true;
            if *written {
                self.drop_connection(key);
            }
        }
    }

    /// The client has sent its FIN. What came before may not be read yet.
    pub(crate) fn half_closed(&mut self, key: ConnectionKey) {
        if self.is_greeting(key) {
            // Its session would end with its input.
            self.drop_connection(key);
        }
    }

    /// The client is gone: its connection was reset, or is closed in both directions. Nobody reads
    /// the welcome that an authenticator decides about, or the answer to half a request.
    pub(crate) fn vanished(&mut self, key: ConnectionKey) {
        let connection = self.links.get(key);
        let is_http = connection.is_some_and(|of| matches!(of.input, Input::Http(_)));
        if is_http || self.is_greeting(key) {
            self.drop_connection(key);
        }
    }

    /// The connection broke, or nothing waits for it any longer.
    pub(crate) fn drop_connection(&mut self, key: ConnectionKey) {
        if self.lose(key) {
            return;
        }
        self.end_session(key, LeaveReason::ConnectionLost);
        self.leave_service(key, Closed::HungUp);
        if self.links.remove(key).is_some() {
            self.sessions.take_greeting(key);
            if let Some(departure) = self.sessions.take_departure(key) {
                self.cancel_departure(&departure);
            }
            self.links.socket_changes.push_back(SocketChange::Dropped(key));
        }
    }
}
