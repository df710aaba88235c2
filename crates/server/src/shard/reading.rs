//! From bytes to messages: what a connection speaks, where its frames end, and what is refused.

use std::fmt::Display;

use playfield_websocket::{Control, Error as WebSocketError, Item, Opcode, Streamed};
use playfield_wire::ErrorCode;
use playfield_wire::framing::{FrameError, Framing as NativeFraming};

use crate::shard::Shard;
use crate::shard::connection::close_codes::NO_CLOSE_CODE;
use crate::shard::connection::share::WORK_OF_NODE;
use crate::shard::connection::transport::{Input, websocket_decoder};
use crate::shard::keys::ConnectionKey;

/// A buffer that held this many times what is left in it is replaced by a smaller one.
const SLACK: usize = 4;

impl Shard {
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
                Input::Native => self.handle_native(key, left),
                Input::WebSocket(_) => self.handle_websocket(key, left),
                &mut Input::Service(service, _) => {
                    self.links.visit.read(left.len());
                    let more = self.services.received(&mut below!(self), key, service, left);
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

    /// Handles native frames from the front, until one is partial or the connection takes no more.
    #[inline(never)]
    fn handle_native(&mut self, key: ConnectionKey, input: &[u8]) -> usize {
        let now = self.env.now.into();
        let mut handled = 0;
        let mut connection = self.links.get_mut(key);
        while let Some(reading) = connection.filter(|connection| connection.takes_input()) {
            let is_stranger = !reading.has_session;
            let message_bytes_max = self.env.node.config.message_bytes_max(is_stranger);
            match (NativeFraming { message_bytes_max }).decode(&input[handled..]) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let from = reading.hears(now);
                    handled += frame.consumed;
                    self.handle_body(key, from, frame.body, None);
                    self.apply_effects();
                }
                Err(error) => {
                    let code = match error {
                        FrameError::TooLarge { .. } => ErrorCode::TooLarge,
                        _ => ErrorCode::BadMessage,
                    };
                    outlet!(self).note_size(is_stranger, code);
                    outlet!(self).fail(key, code, &with_limit(is_stranger, code, &error));
                    return input.len();
                }
            }
            connection = self.links.handled_message(&self.env.stopwatch, key);
        }
        handled
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
                Some(Item::Text(text)) => self.handle_item(key, text.as_bytes(), true),
                Some(Item::Binary(body)) => self.handle_item(key, body, false),
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
            let Some(connection) = self.links.handled_message(&self.env.stopwatch, key) else {
                break;
            };
            if is_stranger && connection.has_session {
                is_stranger = false;
                decoder.set_message_bytes_max(self.env.node.config.limits.message_bytes);
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

    /// Handles one message of a WebSocket.
    fn handle_item(&mut self, key: ConnectionKey, body: &[u8], is_text: bool) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let from = connection.hears(self.env.now.into());
        self.handle_body(key, from, body, Some(is_text));
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

/// The text of an error. Where it is about size, and the client has not said hello, it names the
/// limit that holds until then.
fn with_limit(is_stranger: bool, code: ErrorCode, error: &dyn Display) -> String {
    if is_stranger && code == ErrorCode::TooLarge {
        format!("{error} (tuning.hello_bytes)")
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
        assert!(!text.contains("tuning.hello_bytes"), "{text}");
        let error = Error::MessageTooLarge { bytes: 2, bytes_max: 1 };
        assert!(with_limit(true, ErrorCode::TooLarge, &error).ends_with("(tuning.hello_bytes)"));
        assert!(!with_limit(false, ErrorCode::TooLarge, &error).contains("tuning.hello_bytes"));
    }
}
