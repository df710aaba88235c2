//! From bytes to messages.

use playfield_websocket::handshake::{self, Head, HeadLimits};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode_close};
use playfield_wire::framing::{FrameError, Framing, PREAMBLE};
use playfield_wire::{ErrorCode, Format};

use super::connection::{Connection, Transport};
use super::{Action, Shard};
use crate::slab::Key;

/// What was made of the front of the input.
enum Step {
    /// So many bytes were handled.
    Took(usize),
    /// More have to come.
    Wait,
}

/// The longest beginning that tells one protocol from another: `OPTIONS `.
const HTTP_METHODS: [&[u8]; 9] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE "];

impl Shard {
    /// Someone connected. `None` when there are too many connections.
    pub(crate) fn accepted(&mut self) -> Option<Key> {
        let share = self.node.config.connections_max.div_ceil(self.node.mailboxes.shards());
        if self.ending || self.net.connections.len() >= share {
            return None;
        }
        let key = self.net.connections.insert(Connection::new(self.now));
        let hello = std::time::Duration::from_millis(self.node.config.hello_timeout_ms);
        self.net.timeouts.set(self.now + hello, key);
        Some(key)
    }

    /// Bytes came. Whole frames are handled where they lie; what is left over is copied aside.
    pub(crate) fn received(&mut self, key: Key, bytes: &mut [u8]) {
        self.net.stats.bytes_in += bytes.len() as u64;
        let now = self.now;
        let Some(connection) = self.net.connections.get_mut(key).filter(|connection| connection.is_open())
        else {
            return;
        };
        connection.heard = now;
        if connection.input.is_empty() {
            let taken = self.handle_input(key, bytes);
            self.keep(key, &bytes[taken..]);
        } else {
            connection.input.extend_from_slice(bytes);
            self.pump(key);
        }
    }

    /// Goes on with what came before and was not handled.
    pub(super) fn pump(&mut self, key: Key) {
        let Some(connection) = self.net.connections.get_mut(key) else { return };
        let mut input = std::mem::take(&mut connection.input);
        let taken = self.handle_input(key, &mut input);
        if taken == 0 {
            if let Some(connection) =
                self.net.connections.get_mut(key).filter(|connection| connection.is_open())
            {
                connection.input = input;
            }
        } else {
            self.keep(key, &input[taken..]);
        }
        self.end_if_hung_up(key);
    }

    /// The peer says nothing more, or is gone.
    pub(crate) fn hung_up(&mut self, key: Key) {
        if let Some(connection) = self.net.connections.get_mut(key) {
            connection.hung_up = true;
        }
        self.end_if_hung_up(key);
    }

    /// What came before the end is handled first.
    fn end_if_hung_up(&mut self, key: Key) {
        let high = self.node.config.outbox_high_bytes;
        let Some(connection) = self.net.connections.get(key).filter(|connection| connection.hung_up) else {
            return;
        };
        if !connection.is_open() {
            if connection.unsent() == 0 {
                self.net.actions.push(Action::Close(key));
            }
        } else if connection.takes_input(high) {
            self.net.finish(key);
        }
    }

    /// The socket can't be read from or written to any more.
    pub(crate) fn broken(&mut self, key: Key) {
        self.net.actions.push(Action::Close(key));
    }

    /// The event loop closed the socket: the connection is gone, and with it its session.
    pub(crate) fn closed(&mut self, key: Key) {
        if let Some(connection) = self.net.connections.remove(key)
            && let Some(session) = connection.session
        {
            self.net.sessions -= 1;
            self.end_session(*session);
        }
    }

    fn keep(&mut self, key: Key, rest: &[u8]) {
        if let Some(connection) = self.net.connections.get_mut(key).filter(|connection| connection.is_open())
        {
            connection.input = rest.to_vec();
        }
    }

    /// Handles frames from the front of the input, and says how many bytes they took.
    fn handle_input(&mut self, key: Key, input: &mut [u8]) -> usize {
        let high = self.node.config.outbox_high_bytes;
        let mut taken = 0;
        while self.net.connections.get(key).is_some_and(|connection| connection.takes_input(high)) {
            // An empty rest is looked at, too: the WebSocket decoder frees a finished message's memory then.
            match self.step(key, &mut input[taken..]) {
                Step::Took(bytes) => taken += bytes,
                Step::Wait => break,
            }
        }
        taken
    }

    fn step(&mut self, key: Key, input: &mut [u8]) -> Step {
        let Some(connection) = self.net.connections.get_mut(key) else { return Step::Wait };
        match &mut connection.transport {
            Transport::Unknown => self.sniff(key, input),
            Transport::Http => self.http(key, input),
            Transport::Native => self.native(key, input),
            Transport::WebSocket(decoder) => {
                // The decoder is lent out, since a message may lie in it while it is handled.
                let limits = Limits { message_bytes_max: 0 };
                let mut lent = std::mem::replace(decoder, Decoder::new(Role::Server, limits));
                let step = self.websocket(key, &mut lent, input);
                if let Some(Connection { transport: Transport::WebSocket(decoder), .. }) =
                    self.net.connections.get_mut(key)
                {
                    *decoder = lent;
                }
                step
            }
        }
    }

    /// Tells by the first bytes what is spoken.
    fn sniff(&mut self, key: Key, input: &[u8]) -> Step {
        let begins = |protocol: &[u8]| input.iter().zip(protocol).all(|(a, b)| a == b);
        if input.is_empty() {
            return Step::Wait;
        }
        let (transport, taken) = if input.starts_with(&PREAMBLE) {
            (Transport::Native, PREAMBLE.len())
        } else if HTTP_METHODS.iter().any(|method| input.starts_with(method)) {
            (Transport::Http, 0)
        } else if begins(&PREAMBLE) || HTTP_METHODS.iter().any(|method| begins(method)) {
            return Step::Wait;
        } else {
            self.net.fail_in(
                key,
                Format::Packed,
                ErrorCode::BadPreamble,
                "a connection begins with the four bytes PF1\\n, or with an HTTP request",
            );
            return Step::Wait;
        };
        if let Some(connection) = self.net.connections.get_mut(key) {
            connection.transport = transport;
        }
        if taken > 0 { Step::Took(taken) } else { self.step(key, &mut input.to_vec()) }
    }

    fn http(&mut self, key: Key, input: &[u8]) -> Step {
        let limits =
            HeadLimits { head_bytes_max: self.node.config.http_head_bytes_max, ..HeadLimits::default() };
        match handshake::parse_request(input, &limits) {
            Ok(Head::Partial) => Step::Wait,
            Ok(Head::Complete(request)) => {
                let taken = request.head_bytes;
                match &request.upgrade {
                    Some(upgrade) => {
                        let mut accepted = Ok(());
                        self.net.put_raw(key, |out| accepted = handshake::accept(out, upgrade, None));
                        if accepted.is_err() {
                            self.net.finish(key);
                        } else if let Some(connection) = self.net.connections.get_mut(key) {
                            let limits = Limits { message_bytes_max: self.node.config.max_message_bytes };
                            connection.transport = Transport::WebSocket(Decoder::new(Role::Server, limits));
                        }
                    }
                    None => {
                        let pages = &self.node.pages;
                        self.net.put_raw(key, |out| pages.respond(request.method, request.target, out));
                        self.net.finish(key);
                    }
                }
                Step::Took(taken)
            }
            Err(error) => {
                self.net.put_raw(key, |out| handshake::reject(out, error.status(), &error.to_string()));
                self.net.finish(key);
                Step::Wait
            }
        }
    }

    fn native(&mut self, key: Key, input: &[u8]) -> Step {
        let framing = Framing { message_bytes_max: self.node.config.max_message_bytes };
        match framing.decode(input) {
            Ok(None) => Step::Wait,
            Ok(Some(frame)) => {
                let taken = frame.consumed;
                if self.handle_bytes(key, frame.body, None) { Step::Took(taken) } else { Step::Wait }
            }
            Err(error) => {
                let code = match error {
                    FrameError::TooLarge { .. } => ErrorCode::TooLarge,
                    FrameError::Empty => ErrorCode::BadMessage,
                };
                self.net.fail(key, code, &error.to_string());
                Step::Wait
            }
        }
    }

    fn websocket(&mut self, key: Key, decoder: &mut Decoder, input: &mut [u8]) -> Step {
        let decoded = match decoder.decode(input) {
            Ok(decoded) => decoded,
            Err(error) => {
                let close = error.close_code();
                let code = if close == 1009 { ErrorCode::TooLarge } else { ErrorCode::BadMessage };
                self.net.fail(key, code, &error.to_string());
                return Step::Wait;
            }
        };
        let taken = decoded.consumed;
        match decoded.item {
            Some(Item::Text(text)) if !self.handle_bytes(key, text.as_bytes(), Some(Format::Json)) => {
                return Step::Wait;
            }
            Some(Item::Binary(bytes)) if !self.handle_bytes(key, bytes, Some(Format::Packed)) => {
                return Step::Wait;
            }
            Some(Item::Ping(payload)) => self.net.put_control(key, Opcode::Pong, payload),
            Some(Item::Close(close)) => {
                // The closing handshake (RFC 6455, 5.5.1): the code is echoed.
                let code = close.map_or(1005, |close| close.code);
                self.net.put_raw(key, |out| encode_close(out, code, "", None));
                self.net.finish(key);
            }
            Some(Item::Text(_) | Item::Binary(_) | Item::Pong(_)) | None => {}
        }
        if taken > 0 { Step::Took(taken) } else { Step::Wait }
    }
}
