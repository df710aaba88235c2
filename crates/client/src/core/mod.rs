//! The client as a state machine over bytes and time. It touches no socket, no clock and no random
//! generator.
//!
//! The caller hands a [`Client`] the bytes that arrive and the current time, and sends its output.
//! The client reports what happens to a [`Handler`], with data borrowed from the input, or stores
//! it in an [`EventQueue`].
//!
//! ```
//! use playfield_client::core::{Client, ClientConfig, Event, EventQueue, Transport};
//! use playfield_wire::{Format, framing, server};
//!
//! let mut client = Client::new(ClientConfig::new(Format::Packed, Transport::Native))?;
//! let mut out = Vec::new();
//! client.take_output(&mut out); // the preamble and the hello: send them
//!
//! # let mut arrived = Vec::new();
//! # let (protocol, session, resume) = (1, 7, [][..].into());
//! # let (heartbeat_ms, max_message_bytes) = (0, 999);
//! # let welcome = server::Welcome {
//! #     protocol, session, resume, heartbeat_ms, max_message_bytes, grace_ms: 0, resumed: None
//! # };
//! # framing::write_frame_with(&mut arrived, |out| welcome.encode(Format::Packed, out));
//! let mut events = EventQueue::new();
//! client.received(&mut arrived, &mut events); // bytes from the node
//! assert!(matches!(events.pop(), Some(Event::Welcome(welcome)) if welcome.session == 7));
//!
//! let request = client.join_or_create("table", b"")?;
//! # assert_eq!(request, playfield_client::RequestNumber(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attempts;
mod backoff;
mod channels;
mod commands;
mod config;
mod creation;
mod device;
mod error;
mod event;
mod handler;
mod losses;
mod masks;
mod numbers;
mod pulse;
mod receive;
mod requests;
mod resumption;
mod rooms;
mod session;
mod token;
mod transport;
mod url;

use std::mem;
use std::time::Duration;

use playfield_websocket::handshake::HandshakeError;
use playfield_wire::Format;

pub use attempts::{Attempts, Patience};
pub use channels::{SUBSCRIPTIONS_MAX, Subscribed, SubscriptionNumber};
pub use config::{ClientConfig, Transport};
pub use creation::Creation;
pub use error::{ClientError, CommandError};
pub use event::{Event, EventQueue};
pub use handler::{Failure, Handler, OutOfStep, Update, UpdateKind};
pub use masks::Masks;
pub use playfield_wire::client::Position;
pub use playfield_wire::server::{self, Joined, Lost, MemberInfo};
pub use pulse::Clock;
pub use resumption::UNREADABLE_IN_A_ROW_MAX;
pub use rooms::UNUSABLE_IN_A_ROW_MAX;
pub use token::TokenLife;
pub use url::{Url, UrlError};

#[cfg(feature = "tokio")]
pub(crate) use numbers::NumberMap;

use resumption::{Greeting, Resumption};
use session::{Phase, Session};
use transport::{Inbound, Piece};

/// The client's end of a session, over one connection after the other.
///
/// Commands may be given at once; their messages follow the hello. A command that fails sends
/// nothing.
///
/// When a connection is lost, the client [is away](Self::is_away) until it is
/// [reconnected](Self::reconnect). What it has sent and the node has not confirmed is sent again
/// then, so that each command is carried out once. Commands given meanwhile follow.
///
/// Time is the time since any fixed moment. Call [`advance`](Self::advance) before handing in
/// bytes, and at [`due_at`](Self::due_at): round trips and timeouts are measured from the last time
/// given.
#[derive(Debug)]
pub struct Client {
    inbound: Inbound,
    /// The start of an incomplete frame.
    partial: Vec<u8>,
    session: Session,
    deflate: bool,
    message_bytes_max: usize,
}

impl Client {
    /// A client whose output starts with the hello.
    ///
    /// # Errors
    /// If the host or the target is invalid in a WebSocket request.
    pub fn new(config: ClientConfig) -> Result<Self, HandshakeError> {
        let ClientConfig {
            format,
            name,
            token,
            transport,
            deflate,
            message_bytes_max,
            requests_max,
            resumable,
            unconfirmed_bytes_max,
            schemas,
        } = config;
        let (inbound, outbound) = transport::open(transport, format, deflate, message_bytes_max)?;
        let greeting = Greeting { name, token, schemas };
        let resumption = Resumption::new(greeting, resumable, unconfirmed_bytes_max);
        let session = Session::new(format, outbound, requests_max, resumption);
        Ok(Self { inbound, partial: Vec::new(), session, deflate, message_bytes_max })
    }

    /// Goes on over another connection, of any transport: its output starts with a hello that asks
    /// for the session. The node's answer is reported by [`Handler::resumed`] or
    /// [`Handler::new_session`]. A connection that was not reported as lost counts as lost. After
    /// the end, this does nothing.
    ///
    /// # Errors
    /// If the host or the target is invalid in a WebSocket request.
    pub fn reconnect(&mut self, transport: Transport) -> Result<(), HandshakeError> {
        if matches!(self.session.phase, Phase::Leaving | Phase::Finished) {
            return Ok(());
        }
        let format = self.session.format();
        let (inbound, outbound) =
            transport::open(transport, format, self.deflate, self.message_bytes_max)?;
        (self.inbound, self.partial) = (inbound, Vec::new());
        self.session.reconnect(outbound);
        Ok(())
    }

    /// Sets the token for the node's authenticator in later hellos, which must name the same user.
    pub fn set_token(&mut self, token: Vec<u8>) {
        self.session.resumption.greeting.token = token;
        self.session.resumption.is_token_refused = false;
    }

    /// Whether the node has refused the token as `unauthorized`, and the client is
    /// [away](Self::is_away) for one more attempt with another.
    #[must_use]
    pub fn is_token_refused(&self) -> bool {
        self.session.resumption.is_token_refused
    }

    /// Whether the program may give another token after one was refused. If so, the next refusal
    /// as `unauthorized` after a lost connection leaves the client [away](Self::is_away), for one
    /// more attempt with another token. Call it again once the client was welcomed.
    pub fn set_renews_token(&mut self, renews: bool) {
        self.session.resumption.renews_token = renews;
    }

    /// The format of all messages.
    #[must_use]
    pub fn format(&self) -> Format {
        self.session.format()
    }

    /// Handles bytes from the node, which may be split anywhere. Overwrites `input`. Bytes after
    /// the end of the connection are ignored.
    pub fn received<H: Handler>(&mut self, input: &mut [u8], handler: &mut H) {
        if let Err(error) = self.read(input, handler) {
            self.session.fail(error, handler);
        }
        if self.session.is_open() {
            self.session.acknowledge_if_due();
        } else {
            self.partial = Vec::new();
        }
    }

    /// Reports that the transport has ended: nothing more will be received. If the session outlives
    /// it, the client [is away](Self::is_away); else it is [finished](Self::is_finished).
    pub fn ended<H: Handler>(&mut self, handler: &mut H) {
        self.session.end(None, handler);
        self.partial = Vec::new();
    }

    /// Ends the session: there will be no other connection.
    pub fn give_up<H: Handler>(&mut self, handler: &mut H) {
        self.session.give_up(handler);
    }

    /// Whether the connection is lost, and the session waits for [`reconnect`](Self::reconnect).
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.session.phase == Phase::Away
    }

    /// How long the node keeps the session after a lost connection, as of the last welcome. Zero if
    /// it does not keep it, or has shut down.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.session.resumption.grace()
    }

    /// How long the node keeps the session, and the seats of all rooms that keep one at all. Plan
    /// the attempts to connect again by it.
    #[must_use]
    pub fn shortest_grace(&self) -> Duration {
        let grace = self.grace();
        self.session.rooms.grace().map_or(grace, |of_rooms| of_rooms.min(grace))
    }

    /// Why the connection, or the last attempt to restore it, was lost.
    #[must_use]
    pub fn lost(&self) -> Option<&ClientError> {
        self.session.resumption.lost()
    }

    /// Whether the node has answered the hello on the present connection.
    #[must_use]
    pub fn is_welcomed(&self) -> bool {
        self.session.is_open() && self.session.welcomed
    }

    /// Whether the present connection, or the last, has resumed the session and brought it forward:
    /// a counted message was handled, one of this client's was confirmed, or a copy advanced. Then
    /// the next loss is not one more failure in a row.
    #[must_use]
    pub fn made_progress(&self) -> bool {
        self.session.resumption.made_progress()
    }

    /// Whether commands fail because too many bytes wait to be confirmed by the node.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.session.resumption.is_full()
    }

    /// How many bytes of counted messages the node has not confirmed yet.
    #[must_use]
    pub fn unconfirmed_bytes(&self) -> usize {
        self.session.resumption.unconfirmed_bytes()
    }

    /// How many messages without an answer the node has not confirmed yet.
    #[must_use]
    pub fn unconfirmed_sends(&self) -> u64 {
        self.session.resumption.unconfirmed_sends(self.session.format())
    }

    /// The delay to the node, and its clock, as measured on this connection. `None` until the first
    /// pong. The ping after the welcome and keep-alive pings count too; [`ping`](Self::ping)
    /// measures now.
    #[must_use]
    pub fn clock(&self) -> Option<Clock> {
        self.session.pulse.clock()
    }

    /// The connection may be dead: this process slept, or the network has changed. Sends a ping,
    /// and gives the connection up as lost if nothing is heard within 5 seconds.
    pub fn suspect(&mut self) {
        self.session.suspect();
    }

    /// Sets the current time. Sends a ping or an acknowledgement if one is due, and gives the
    /// connection up as lost if the node has not answered a ping in time.
    pub fn advance<H: Handler>(&mut self, now: Duration, handler: &mut H) {
        self.session.advance(now, handler);
    }

    /// When [`advance`](Self::advance) next has something to do.
    #[must_use]
    pub fn due_at(&self) -> Option<Duration> {
        self.session.due_at()
    }

    /// Appends the bytes to send to `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        self.session.outbound.take(out);
    }

    /// How many bytes wait for [`take_output`](Self::take_output). Every command adds to them: stop
    /// giving commands while they are many.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.session.outbound.bytes()
    }

    /// Whether the session is over. Send the remaining output, then close the transport.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.session.is_finished()
    }

    fn read<H: Handler>(
        &mut self,
        mut input: &mut [u8],
        handler: &mut H,
    ) -> Result<(), ClientError> {
        while !self.partial.is_empty() && !input.is_empty() && self.session.is_open() {
            let mut partial = mem::take(&mut self.partial);
            let missing = self.inbound.missing(&partial)?.min(input.len());
            let (front, rest) = input.split_at_mut(missing);
            partial.extend_from_slice(front);
            input = rest;
            let used = self.read_whole(&mut partial, handler)?;
            if used < partial.len() {
                partial.drain(..used);
                self.partial = partial;
            }
        }
        if self.partial.is_empty() && self.session.is_open() {
            let used = self.read_whole(input, handler)?;
            self.partial.extend_from_slice(&input[used..]);
        }
        Ok(())
    }

    /// Handles the complete frames at the front of `input`, and returns their length.
    fn read_whole<H: Handler>(
        &mut self,
        input: &mut [u8],
        handler: &mut H,
    ) -> Result<usize, ClientError> {
        let format = self.session.format();
        let mut used = 0;
        while used < input.len() && self.session.is_open() {
            let Some((bytes, piece)) = self.inbound.next(format, &mut input[used..])? else {
                break;
            };
            match piece {
                Piece::Message(body) => self.session.message(body, handler)?,
                Piece::Ping(payload) => {
                    self.session.pulse.heard();
                    self.session.outbound.pong(payload);
                }
                Piece::Alive => self.session.pulse.heard(),
                Piece::Upgraded(agreed) => self.session.outbound.release(agreed.as_ref()),
                Piece::Close(code) => self.session.end(code, handler),
            }
            used += bytes;
        }
        self.session.tell_weak(handler);
        Ok(used)
    }
}
