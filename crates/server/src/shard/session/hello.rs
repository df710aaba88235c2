//! The first message of a connection: it chooses the format, and opens the session.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, visible};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, Format, PROTOCOL, RequestNumber};

use crate::addresses::Pace;
use crate::auth::{Decision, Identity, authenticator_failed, check_user};
use crate::panics::guard;
use crate::pulse::Called;
use crate::shard::connection::SocketChange;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::resume::{Opening, Wanted};
use crate::shard::session::Session;
use crate::shard::session::greeting::Greeting;
use crate::shard::session::messages::wrong_format;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::resumption::Resumption;

impl Outlet<'_> {
    /// Handles the first message of a connection.
    pub(in crate::shard) fn handle_first(
        &mut self,
        key: ConnectionKey,
        body: &[u8],
        is_text: Option<bool>,
    ) {
        if let Some(is_text) = is_text
            && self.env.node.echoes
        {
            return self.echo(key, body, is_text);
        }
        let Some(connection) = self.links.get_mut(key) else { return };
        let format = ClientMessage::format_of_first(body);
        // A refusal is written as the hello was.
        connection.dialect.format = format;
        if is_text.is_some_and(|is_text| is_text != format.is_text()) {
            return self.fail(key, ErrorCode::WrongFormat, wrong_format(format));
        }
        match ClientMessage::decode_first(body) {
            Ok((format, ClientMessage::Hello(hello))) => self.hello(key, format, &hello),
            Ok(_) => self.fail(key, ErrorCode::HelloExpected, "the first message must be a hello"),
            Err(error) => {
                let code = match error.unspoken_format() {
                    Some(_) => ErrorCode::WrongFormat,
                    None => ErrorCode::BadMessage,
                };
                self.fail(key, code, &error.to_string());
            }
        }
    }

    fn hello(&mut self, key: ConnectionKey, format: Format, hello: &Hello<'_>) {
        if hello.protocol != PROTOCOL {
            let text = format!("this node speaks protocol {PROTOCOL}, not {}", hello.protocol);
            return self.fail(key, ErrorCode::UnsupportedProtocol, &text);
        }
        let node = Arc::clone(&self.env.node);
        // Nobody can guess a token: who has one opened a session before, which counted then.
        let wanted = hello.resume.as_ref().and_then(|resume| Wanted::of(&node, resume));
        if let Some(connection) = self.links.get_mut(key) {
            connection.follows_redirects = hello.redirects;
        }
        let elsewhere = wanted.as_ref().filter(|of| !node.moved.has_come(of.token.session));
        let wanted = match elsewhere.and_then(|wanted| node.urls_of(wanted.token.slot)) {
            Some(addresses) if hello.redirects => return self.redirect_hello(key, &addresses),
            Some(_) => None,
            None => wanted,
        };
        let pace = if wanted.is_some() { Pace::Resume } else { Pace::Session };
        if let Err(error) = self.links.take_pace(self.env, key, pace) {
            return self.refuse_hello(key, &error);
        }
        self.env.watch.calls(Called::Authenticator);
        let decision = guard("the authenticator", || node.authenticator.authenticate(hello))
            .unwrap_or_else(|| Err(authenticator_failed()).into());
        match decision {
            Decision::Now(Ok(identity)) => {
                self.greet(key, Greeting::new(&node, format, hello, wanted), identity);
            }
            Decision::Now(Err(error)) => self.fail(key, error.code(), error.text()),
            Decision::Later(deciding) => {
                self.wait_for_identity(key, Greeting::new(&node, format, hello, wanted), deciding);
            }
        }
    }

    /// Sends a client to the node that has its session.
    pub(super) fn redirect_hello(&mut self, key: ConnectionKey, addresses: &Arc<[String]>) {
        self.redirect(key, RequestNumber(0), addresses, String::new());
        let text = "the session is at another node";
        self.goodbye(key, ErrorCode::Elsewhere, text, None);
    }

    /// Ends a connection whose address says hello too often; the error says when to try again.
    pub(super) fn refuse_hello(&mut self, key: ConnectionKey, error: &Error) {
        self.send_error(key, None, None, error);
        self.goodbye(key, error.code(), error.text(), None);
    }

    /// Gives an authenticated client the session that it wants back, or a new one.
    pub(super) fn greet(&mut self, key: ConnectionKey, greeting: Greeting, mut identity: Identity) {
        if let Cow::Owned(name) = visible(&identity.name) {
            identity.name = name;
        }
        let Greeting { format, mismatches, resumable, wanted, greeted, .. } = greeting;
        if let Err(refused) = identity.user.as_deref().map_or(Ok(()), check_user) {
            return self.fail(key, refused.code(), refused.text());
        }
        let opening = Opening { format, identity, resumable, mismatches, greeted };
        match wanted {
            Some(wanted) => self.request_resume(key, wanted, opening),
            None => self.open_session(key, opening),
        }
    }

    /// Opens a new session, once no other of the user is in its way.
    pub(in crate::shard) fn open_session(&mut self, key: ConnectionKey, opening: Opening) {
        let number = self.env.entropy.session();
        if let Some(opening) = self.enter_users(key, opening, number) {
            self.begin_session(key, opening, number);
        }
    }

    /// Begins a session with this number.
    pub(super) fn begin_session(&mut self, key: ConnectionKey, opening: Opening, number: u64) {
        let node = Arc::clone(&self.env.node);
        let Opening { format, identity, resumable, mismatches, .. } = opening;
        let tickets_only = identity.tickets_only;
        let resumable = resumable && !node.config.timeouts.reconnect.is_zero();
        let resumption = Resumption::new(self.env.shard);
        let token = if resumable { resumption.signed_token(number, &node) } else { Vec::new() };
        let session = Session::new(number, identity, resumable.then_some(resumption));
        // If others wait, what it says next waits as that of other sessions does: hellos are short.
        let is_over = self.links.visited == Some(key) && !self.links.work.is_empty();
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.pause.turn |= is_over;
        connection.dialect.format = format;
        connection.heard = self.env.now.into();
        connection.resumable = resumable;
        connection.tickets_only = tickets_only;
        connection.has_session = true;
        self.sessions.insert(key, Box::new(session));
        self.sessions.count += 1;
        if resumable {
            self.sessions.note_resumable(number, key);
        }
        self.links.look_at(key, self.env.now + node.config.timeouts.heartbeat / 2);
        self.welcome(key, number, token, None);
        if tickets_only {
            // It learns of a room type once it is in such a room.
            return;
        }
        for room_type in mismatches {
            self.send_unasked_schema(key, room_type);
        }
    }

    /// Answers a hello.
    pub(in crate::shard) fn welcome(
        &mut self,
        key: ConnectionKey,
        session: u64,
        token: Vec<u8>,
        resumed: Option<Resumed>,
    ) {
        let config = &self.env.node.config;
        let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let welcome = ServerMessage::Welcome(server::Welcome {
            protocol: PROTOCOL,
            session,
            heartbeat_ms: ms(config.timeouts.heartbeat),
            max_message_bytes: u32::try_from(config.limits.message_bytes).unwrap_or(u32::MAX),
            grace_ms: if token.is_empty() { 0 } else { ms(config.timeouts.reconnect) },
            resume: Cow::Owned(token),
            resumed,
            addresses: self.env.node.own_urls(),
        });
        let mut body = Vec::new();
        let max_message_bytes = config.limits.message_bytes;
        let Some(connection) = self.links.slab.get_mut(key) else { return };
        connection.tally.settle();
        self.links.socket_changes.push_back(SocketChange::Greeted(key));
        // While the hello is handled where the decoder lent it, the decoder is not here.
        if let Input::WebSocket(Some(decoder)) = &mut connection.input {
            decoder.set_message_bytes_max(max_message_bytes);
        }
        welcome.encode(connection.dialect.format, &mut body);
        self.links.write_again(key, &body);
    }
}
