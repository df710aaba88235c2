//! What becomes of HTTP clients that have ended their input.

use playfield_http::write_continue;

use crate::shard::connection::Partial;
use crate::shard::connection::half_closed::{HalfClosed, PROBE_AFTER};
use crate::shard::connection::http::Exchange;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// The client has sent its FIN. What came before may not be read yet.
    pub(crate) fn half_closed(&mut self, key: ConnectionKey) {
        if self.is_greeting(key) {
            // Its session would end with its input.
            return self.drop_connection(key);
        }
        let now = self.env.now;
        let Some(http) = self.http_mut(key) else { return };
        if http.half_closed.is_none() {
            let probe_at = now + PROBE_AFTER;
            http.half_closed = Some(HalfClosed { since: now, probe_at, is_read: false });
            self.links.look_by(key, probe_at);
        }
    }

    /// The client sends nothing more, and all that it sent is read. Whether it stays, because it
    /// waits for answers.
    pub(in crate::shard) fn stays_for_answers(&mut self, key: ConnectionKey) -> bool {
        self.half_closed(key);
        let Some(connection) = self.links.get_mut(key) else { return false };
        let Input::Http(http) = &mut connection.input else { return false };
        if let Some(half_closed) = &mut http.half_closed {
            half_closed.is_read = true;
        }
        if http.exchanges.is_empty() {
            return false;
        }
        http.end_input();
        connection.partial = Partial::default();
        true
    }

    /// The client is gone: its connection was reset, or is closed in both directions. Nobody reads
    /// the answers to HTTP requests, or the welcome that an authenticator decides about.
    pub(crate) fn vanished(&mut self, key: ConnectionKey) {
        if self.http_mut(key).is_some() || self.is_greeting(key) {
            self.drop_connection(key);
        }
    }

    /// Asks a client that has sent its FIN and waits for an answer: if its socket is closed, that
    /// resets the connection.
    pub(super) fn probe(&mut self, key: ConnectionKey) {
        let now = self.env.now;
        let Some(http) = self.http_mut(key) else { return };
        let takes_interim = http.exchanges.front().is_some_and(Exchange::takes_interim);
        let Some(half_closed) = &mut http.half_closed else { return };
        let asks = half_closed.is_due(now) && takes_interim;
        let again_at = half_closed.probe_at;
        self.links.look_by(key, again_at);
        if asks && self.links.unsent(key).is_empty() {
            self.links.append(key, |out| {
                write_continue(out);
                true
            });
        }
    }
}
