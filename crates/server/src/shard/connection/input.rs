//! From bytes to messages: what a connection speaks, where its frames end, and what is refused.

use std::fmt::Display;

use playfield_websocket::{Error as WebSocketError, Item, Opcode};
use playfield_wire::ErrorCode;
use playfield_wire::framing::FrameError;
use playfield_wire::framing::{Framing as NativeFraming, PREAMBLE};

use crate::proxy::Client;
use crate::shard::Shard;
use crate::shard::connection::http::{Http, period};
use crate::shard::connection::share::WORK_OF_NODE;
use crate::shard::connection::transport::{Input, Opening, opening, websocket_decoder};
use crate::shard::connection::{Links, Phase};
use crate::shard::env::Stopwatch;
use crate::shard::keys::ConnectionKey;
use crate::shard::moment::Moment;
use crate::shard::session::closing::NO_CLOSE_CODE;
use crate::shard::session::outlet::Outlet;

/// A client that sends so many bytes of a message within the time that it may be silent is not
/// silent. A message of a million bytes may take as long as its own timeout, over a slow link too;
/// one that comes byte by byte hides no silence.
const PROGRESS_BYTES: u32 = 256;

/// A buffer that held this many times what is left in it is replaced by a smaller one.
const SLACK: usize = 4;

impl Shard {
    /// Bytes came in on a connection, without space before them.
    pub(crate) fn received(&mut self, key: ConnectionKey, bytes: &mut [u8]) {
        self.received_behind(key, bytes, 0);
    }

    /// Bytes came in on a connection: those from `at`. Whole messages are handled where they are;
    /// only the rest is copied. What is before `at` is space for the beginning of a message that
    /// was kept, so that the end of the message can be read behind it.
    pub(crate) fn received_behind(&mut self, key: ConnectionKey, buffer: &mut [u8], at: usize) {
        let bytes = buffer.len() - at;
        let Some(connection) = self.links.get_mut(key) else { return };
        self.env.counters.bytes_in += bytes as u64;
        if connection.is_closing() {
            outlet!(self).skip(key, &buffer[at..]);
        } else {
            connection.unheard_bytes = connection.unheard_bytes.saturating_add(bytes as u32);
            if matches!(connection.input, Input::Service(_, Some(_))) {
                self.received_in_messages(key, buffer, at);
            } else {
                self.feed(key, buffer, at);
            }
        }
        self.apply_effects();
    }

    /// Handles the input from `at`, after what was kept of it.
    pub(in crate::shard) fn feed(&mut self, key: ConnectionKey, buffer: &mut [u8], at: usize) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let kept = connection.partial.len();
        // The shorter part is copied to the longer one.
        if kept == 0 || (kept < buffer.len() - at && kept <= at && connection.takes_input()) {
            let mut partial = connection.partial.take();
            let input = &mut buffer[at - kept..];
            input[..kept].copy_from_slice(&partial);
            let handled = self.handle_input(key, input);
            let rest = &input[handled..];
            // Without a rest, the bytes after an upgrade may have been kept already.
            if !rest.is_empty() {
                if partial.capacity() > SLACK * rest.len() {
                    partial = Vec::new();
                }
                partial.clear();
                partial.extend_from_slice(rest);
                self.links.keep(key, partial);
            }
        } else {
            connection.partial.extend_from_slice(&buffer[at..]);
            self.handle_partial(key);
        }
        outlet!(self).note_unfinished(key);
    }

    /// Handles input that was kept aside.
    pub(crate) fn handle_kept(&mut self, key: ConnectionKey) {
        self.handle_partial(key);
        outlet!(self).end_messages(key);
    }

    fn handle_partial(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if connection.partial.is_empty() || !connection.takes_input() {
            return;
        }
        let mut input = connection.partial.take();
        let handled = self.handle_input(key, &mut input);
        if handled == input.len() {
            return;
        }
        let left = input.len() - handled;
        if input.capacity() > SLACK * left {
            self.links.keep(key, input[handled..].to_vec());
        } else {
            input.drain(..handled);
            self.links.keep(key, input);
        }
    }

    /// Handles all whole messages at the front of the input, as long as the connection takes any,
    /// and says how many bytes are done with.
    fn handle_input(&mut self, key: ConnectionKey, input: &mut [u8]) -> usize {
        let mut handled = 0;
        loop {
            let Some(connection) = self.links.get_mut(key) else {
                return input.len();
            };
            if connection.is_closing() {
                outlet!(self).await_close(key, &input[handled..]);
                return input.len();
            }
            if !connection.takes_input() || handled == input.len() {
                return handled;
            }
            let left = &mut input[handled..];
            let may_upgrade = matches!(connection.input, Input::Unknown(_) | Input::Http(_));
            let more = match &mut connection.input {
                Input::Unknown(peer) => {
                    let peer = **peer;
                    outlet!(self).open(key, peer, left)
                }
                Input::Http(_) => {
                    self.links.visit.did(WORK_OF_NODE);
                    outlet!(self).handle_http(key, left)
                }
                Input::Native => {
                    let is_stranger = !connection.has_session;
                    self.handle_native(key, left, is_stranger)
                }
                Input::WebSocket(_) => self.handle_websocket(key, left),
                &mut Input::Service(service, _) => {
                    self.links.visit.read(left.len());
                    let more = self.handle_service(key, service, left);
                    if more > 0 {
                        outlet!(self).note_whole_frames(key);
                    }
                    if !self.links.is_served(key) {
                        // Nobody wants the rest.
                        return input.len();
                    }
                    more
                }
                Input::Closing(_) | Input::InUse => 0,
            };
            self.apply_effects();
            if may_upgrade && self.links.is_in_messages(key) {
                // What follows the request belongs to the WebSocket.
                self.received_in_messages(key, &mut left[more..], 0);
                return input.len();
            }
            if more == 0 {
                return handled;
            }
            handled += more;
            self.links.end_turn_if_over(&self.env.stopwatch, key);
        }
    }

    /// Handles the native frame at the front.
    #[inline]
    fn handle_native(&mut self, key: ConnectionKey, input: &[u8], is_stranger: bool) -> usize {
        let message_bytes_max = self.env.node.config.message_bytes_max(is_stranger);
        let framing = NativeFraming { message_bytes_max };
        match framing.decode(input) {
            Ok(None) => 0,
            Ok(Some(frame)) => {
                self.handle_body(key, frame.body, None);
                self.apply_effects();
                self.links.pause_if_behind(key);
                frame.consumed
            }
            Err(error) => {
                let code = match error {
                    FrameError::TooLarge { .. } => ErrorCode::TooLarge,
                    _ => ErrorCode::BadMessage,
                };
                outlet!(self).note_size(is_stranger, code);
                outlet!(self).fail(key, code, &with_limit(is_stranger, code, &error));
                input.len()
            }
        }
    }

    /// Handles WebSocket frames from the front, until one is partial or the connection takes no
    /// more.
    fn handle_websocket(&mut self, key: ConnectionKey, input: &mut [u8]) -> usize {
        let Some(connection) = self.links.get_mut(key) else { return 0 };
        let Input::WebSocket(mut kept) = std::mem::replace(&mut connection.input, Input::InUse)
        else {
            return 0;
        };
        let mut is_stranger = !connection.has_session;
        let mut fresh = None;
        let decoder = match kept.as_deref_mut() {
            Some(decoder) => decoder,
            None => fresh.insert(websocket_decoder(&self.env.node.config, is_stranger)),
        };
        let mut handled = 0;
        loop {
            // At the end of the input too: the decoder then frees a fragmented message.
            let left = &mut input[handled..];
            let decoded = match decoder.decode(left) {
                Ok(decoded) => decoded,
                Err(error) => {
                    let code = match error {
                        WebSocketError::MessageTooLarge { .. }
                        | WebSocketError::FrameTooLarge { .. } => ErrorCode::TooLarge,
                        _ => ErrorCode::BadMessage,
                    };
                    let text = with_limit(is_stranger, code, &error);
                    outlet!(self).note_size(is_stranger, code);
                    outlet!(self).fail_with(key, code, &text, Some(error.close_code()));
                    return input.len();
                }
            };
            if decoded.consumed == 0 {
                break;
            }
            handled += decoded.consumed;
            if matches!(decoded.item, Some(Item::Ping(_) | Item::Pong(_))) {
                outlet!(self).note_life(key);
            }
            match decoded.item {
                None => {}
                Some(Item::Pong(payload)) => outlet!(self).ponged_by_transport(key, payload),
                Some(Item::Text(text)) => self.handle_body(key, text.as_bytes(), Some(true)),
                Some(Item::Binary(body)) => self.handle_body(key, body, Some(false)),
                Some(Item::Ping(payload)) => outlet!(self).answer_ping(key, payload),
                Some(Item::Close(close)) => {
                    let code = close.map_or(NO_CLOSE_CODE, |close| close.code);
                    if !outlet!(self).lose_orderly(key, (code, "")) {
                        outlet!(self).close(key, Some((code, "")));
                    }
                    return input.len();
                }
            }
            self.apply_effects();
            self.links.pause_if_behind(key);
            self.links.end_turn_if_over(&self.env.stopwatch, key);
            let Some(connection) = self.links.get(key) else { break };
            if is_stranger && connection.has_session {
                is_stranger = false;
                decoder.set_message_bytes_max(self.env.node.config.max_message_bytes);
            }
            if !connection.takes_input() {
                break;
            }
        }
        if let Some(connection) = self.links.get_mut(key) {
            let decoder = match fresh {
                Some(decoder) => (!decoder.is_idle()).then(|| Box::new(decoder)),
                None => kept.filter(|decoder| !decoder.is_idle()),
            };
            connection.input = Input::WebSocket(decoder);
        }
        handled
    }
}

impl Outlet<'_> {
    /// Starts the timeout of a message that is not complete. What arrives of it later, or between
    /// its fragments, does not extend it. A client that makes progress with it is not silent.
    fn note_unfinished(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if !connection.is_unfinished() {
            connection.unfinished_since = Moment::NEVER;
            return;
        }
        let makes_progress = connection.unheard_bytes >= PROGRESS_BYTES;
        if connection.unfinished_since == Moment::NEVER {
            connection.unfinished_since = self.env.now.into();
            self.links.look_by(key, self.env.now + self.env.node.config.message_timeout());
        }
        if makes_progress {
            self.note_life(key);
        }
    }

    /// A service was given whole frames.
    fn note_whole_frames(&mut self, key: ConnectionKey) {
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
    fn open(&mut self, key: ConnectionKey, peer: Client, input: &[u8]) -> usize {
        let Some(connection) = self.links.get_mut(key) else { return 0 };
        match opening(input) {
            Opening::Partial => 0,
            Opening::Native => {
                connection.input = Input::Native;
                PREAMBLE.len()
            }
            Opening::Http => {
                let http = Http::new(&self.env.node.config, peer, self.env.now);
                connection.input = Input::Http(Box::new(http));
                self.links.look_at(key, self.env.now + period(&self.env.node.config));
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
        let text = "tls_only: connect with TLS: https, wss, or native framing over TLS";
        let Some(connection) = self.links.get_mut(key) else { return };
        if let Input::Unknown(peer) = &connection.input
            && matches!(opening(input), Opening::Http | Opening::Partial)
        {
            let http = Http::new(&self.env.node.config, **peer, self.env.now);
            connection.input = Input::Http(Box::new(http));
            return self.refuse_http(key, 400, text);
        }
        self.fail(key, ErrorCode::UnsupportedProtocol, text);
    }

    /// Counts what was too large before the hello.
    fn note_size(&mut self, is_stranger: bool, code: ErrorCode) {
        self.env.counters.hellos_too_large += u64::from(is_stranger && code == ErrorCode::TooLarge);
    }

    fn answer_ping(&mut self, key: ConnectionKey, payload: &[u8]) {
        if self.admits_control(key, payload.len()) {
            self.links.append(key, |out| {
                playfield_websocket::encode(out, Opcode::Pong, payload, None);
                true
            });
        }
    }
}

impl Links {
    pub(in crate::shard) fn keep(&mut self, key: ConnectionKey, rest: Vec<u8>) {
        if let Some(connection) = self.slab.get_mut(key)
            && connection.phase == Phase::Open
        {
            connection.partial = rest.into();
        }
    }

    /// Stops reading from a client that does not read what it is sent.
    #[inline]
    pub(in crate::shard) fn pause_if_behind(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.slab.get_mut(key)
            && connection.unsent() > self.high_bytes
        {
            connection.pause.outbox = true;
        }
    }

    /// Lets others come first, if this connection was served for long enough.
    #[inline]
    pub(in crate::shard) fn end_turn_if_over(&mut self, stopwatch: &Stopwatch, key: ConnectionKey) {
        if self.visit.is_over(|| stopwatch.read())
            && let Some(connection) = self.slab.get_mut(key)
        {
            connection.pause.turn = true;
        }
    }
}

/// The text of an error. Where it is about size, and the client has not said hello, it names the
/// limit that holds until then.
fn with_limit(is_stranger: bool, code: ErrorCode, error: &dyn Display) -> String {
    if is_stranger && code == ErrorCode::TooLarge {
        format!("{error} (hello_bytes_max)")
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use playfield_websocket::Error;
    use playfield_wire::ErrorCode;

    use super::with_limit;

    #[test]
    fn only_an_error_about_size_names_the_limit_of_a_hello() {
        let text = with_limit(true, ErrorCode::BadMessage, &Error::ReservedBits { bits: 1 });
        assert!(!text.contains("hello_bytes_max"), "{text}");
        let error = Error::MessageTooLarge { bytes: 2, bytes_max: 1 };
        assert!(with_limit(true, ErrorCode::TooLarge, &error).ends_with("(hello_bytes_max)"));
        assert!(!with_limit(false, ErrorCode::TooLarge, &error).contains("hello_bytes_max"));
    }
}
