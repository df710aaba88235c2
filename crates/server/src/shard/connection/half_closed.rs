//! HTTP clients that have ended their input while requests are not answered yet.
//!
//! A FIN says only that nothing more comes. A client that has shut down its sending half sends one,
//! and still reads the answers; so does one that has closed its socket, or whose process has ended.
//! The two differ only in what the client's system does with more data: for a socket that is closed
//! it answers with a reset. So a client that has to wait longer is sent an interim response, which
//! every client of HTTP/1.1 must accept and may ignore (RFC 9110, 15.2). One of HTTP/1.0 can't be
//! asked; its handlers run until they answer or are late.

use std::time::Duration;

use playfield_http::write_continue;

use crate::shard::connection::Partial;
use crate::shard::connection::http::Exchange;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

/// How long after its FIN a client is first probed. Then each wait is as long as all before it.
pub(crate) const PROBE_AFTER: Duration = Duration::from_millis(500);

/// A client that has sent its FIN.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfClosed {
    since: Duration,
    probe_at: Duration,
    /// All that came before the FIN is read.
    pub(super) is_read: bool,
}

impl HalfClosed {
    /// Whether it is time to ask; then the next time is set.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.probe_at;
        if is_due {
            self.probe_at = now + (now - self.since).max(PROBE_AFTER);
        }
        is_due
    }
}

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
