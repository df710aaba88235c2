//! The facts that input tells of a connection, beside its messages.

use playfield_websocket::Opcode;
use playfield_wire::ErrorCode;
use playfield_wire::framing::PREAMBLE;

use crate::proxy::Client;
use crate::shard::connection::http::Http;
use crate::shard::connection::transport::{Input, Opening, opening};
use crate::shard::keys::ConnectionKey;
use crate::shard::moment::Moment;
use crate::shard::session::outlet::Outlet;

/// A client that sends so many bytes of a message within the time that it may be silent is not
/// silent. A message of a million bytes may take as long as its own timeout, over a slow link too;
/// one that comes byte by byte hides no silence.
const PROGRESS_BYTES: u32 = 256;

impl Outlet<'_> {
    /// Starts the timeout of a message that is not complete. What arrives of it later, or between
    /// its fragments, does not extend it. A client that makes progress with it is not silent.
    pub(in crate::shard) fn note_unfinished(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if !connection.is_unfinished() {
            connection.unfinished_since = Moment::NEVER;
            return;
        }
        let makes_progress = connection.unheard_bytes >= PROGRESS_BYTES;
        if connection.unfinished_since == Moment::NEVER {
            connection.unfinished_since = self.env.now.into();
            self.links.look_by(key, self.env.now + self.env.node.config.timeouts.message);
        }
        if makes_progress {
            self.note_life(key);
        }
    }

    /// A service was given whole frames.
    pub(in crate::shard) fn note_whole_frames(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.links.get_mut(key) {
            connection.unfinished_since = Moment::NEVER;
            self.note_life(key);
        }
    }

    /// A client has shown that it lives: by a whole message, by a control frame of its transport,
    /// or by progress with a message.
    #[inline]
    pub(in crate::shard) fn note_life(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if !connection.has_session && !matches!(connection.input, Input::Service(..)) {
            return; // It has to say hello in time, whatever else it says.
        }
        connection.lives(self.env.now);
        if connection.is_device {
            self.heard_device(key);
        }
    }

    /// Detects the protocol from the first bytes. Consumes a preamble at most.
    pub(in crate::shard) fn open(
        &mut self,
        key: ConnectionKey,
        peer: Client,
        input: &[u8],
    ) -> usize {
        let Some(connection) = self.links.get_mut(key) else { return 0 };
        match opening(input) {
            Opening::Partial => 0,
            Opening::Native => {
                connection.input = Input::Native;
                PREAMBLE.len()
            }
            Opening::Http => {
                connection.input = Input::Http(Box::new(Http { peer, since: self.env.now }));
                self.links.look_at(key, self.env.now + self.env.node.config.http.request_timeout);
                self.handle_http(key, input)
            }
            Opening::Alien => {
                let text = "the first bytes are neither native framing nor an HTTP request";
                self.fail(key, ErrorCode::BadPreamble, text);
                input.len()
            }
        }
    }

    /// Refuses a new connection without TLS, in the protocol that it seems to speak.
    pub(crate) fn refuse_plain(&mut self, key: ConnectionKey, input: &[u8]) {
        let text = "tls.only: connect with TLS: https, wss, or native framing over TLS";
        let Some(connection) = self.links.get_mut(key) else { return };
        if let Input::Unknown(peer) = &connection.input
            && matches!(opening(input), Opening::Http | Opening::Partial)
        {
            connection.input = Input::Http(Box::new(Http { peer: **peer, since: self.env.now }));
            return self.refuse_http(key, 400, text);
        }
        self.fail(key, ErrorCode::UnsupportedProtocol, text);
    }

    /// Counts what was too large before the hello.
    pub(in crate::shard) fn note_size(&mut self, is_stranger: bool, code: ErrorCode) {
        self.env.counters.hellos_too_large += u64::from(is_stranger && code == ErrorCode::TooLarge);
    }

    pub(in crate::shard) fn answer_ping(&mut self, key: ConnectionKey, payload: &[u8]) {
        if self.admits_control(key, payload.len()) {
            self.links.append(key, |out| {
                playfield_websocket::encode(out, Opcode::Pong, payload, None);
                true
            });
        }
    }
}
