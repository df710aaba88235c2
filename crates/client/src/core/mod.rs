//! The client as a state machine over bytes and time. It touches no socket, no clock and no random
//! generator.
//!
//! The caller hands a [`Client`] the bytes that arrive and the current time, and sends its output.
//! The client reports what happens to a [`Handler`], with data borrowed from the input, or stores
//! it in an [`EventQueue`].
//!
//! ```
//! use playfield_client::core::{Client, ClientConfig, Event, EventQueue, Transport};
//! use playfield_wire::{Format, framing, server::ServerMessage};
//!
//! let mut client = Client::new(ClientConfig::new(Format::Packed, Transport::Native))?;
//! let mut out = Vec::new();
//! client.take_output(&mut out); // the preamble and the hello: send them
//!
//! # let mut arrived = Vec::new();
//! # let (protocol, session, resume) = (1, 7, [][..].into());
//! # let (heartbeat_ms, max_message_bytes) = (0, 999);
//! # let welcome =
//! #     ServerMessage::Welcome {
//! #         protocol, session, resume, heartbeat_ms, max_message_bytes, grace_ms: 0, resumed: None
//! #     };
//! # framing::write_frame_with(&mut arrived, |out| welcome.encode(Format::Packed, out));
//! let mut events = EventQueue::new();
//! client.received(&mut arrived, &mut events); // bytes from the node
//! assert!(matches!(events.pop(), Some(Event::Welcome(welcome)) if welcome.session == 7));
//!
//! let request = client.join_or_create("table", b"")?;
//! # assert_eq!(request, playfield_client::RequestNumber(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod creation;
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
mod transport;
mod url;

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use playfield_websocket::handshake::HandshakeError;
use playfield_wire::client::ClientMessage;
use playfield_wire::{Format, RequestNumber, RoomNumber};

pub use config::{ClientConfig, Transport};
pub use creation::Creation;
pub use error::{ClientError, CommandError};
pub use event::{Event, EventQueue};
pub use handler::{
    Failure, Handler, Joined, OutOfStep, Resumed, RoomEvent, Update, UpdateKind, Welcome,
};
pub use masks::Masks;
pub use playfield_wire::server::Lost;
pub use pulse::Clock;
pub use resumption::UNREADABLE_IN_A_ROW_MAX;
pub use rooms::UNUSABLE_IN_A_ROW_MAX;
pub use url::{Url, UrlError};

#[cfg(feature = "tokio")]
pub(crate) use event::static_info;
#[cfg(feature = "tokio")]
pub(crate) use numbers::NumberMap;

use requests::Asked;
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
    /// it does not keep it.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.session.resumption.grace()
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

    /// Whether commands fail because too many bytes wait to be confirmed by the node.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.session.resumption.is_full()
    }

    /// The delay to the node, and its clock, as measured on this connection. `None` until the first
    /// pong. The ping after the welcome and keep-alive pings count too; [`ping`](Self::ping) measures now.
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
        Ok(used)
    }
}

/// Commands. Each fails with [`CommandError::Closed`] after the end or a goodbye, and with
/// [`CommandError::TooLarge`] if the node accepts no message that long. Requests also fail with
/// [`CommandError::Busy`], and commands that name a room with [`CommandError::NotJoined`].
///
/// `options` and `payload` are in the connection's format; in JSON, the text of a value.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all, and documented above")]
impl Client {
    /// Asks to enter an existing room, by its id or with a reservation. Returns the number of the
    /// request.
    pub fn join(&mut self, id: &str) -> Result<RequestNumber, CommandError> {
        self.session.ask(Asked::Join, |request| ClientMessage::Join { request, room: id.into() })
    }

    /// Asks to enter the room of a type that has this key. The case of a code does not matter.
    pub fn join_by_key(
        &mut self,
        room_type: &str,
        key: &str,
    ) -> Result<RequestNumber, CommandError> {
        let (room_type, key) = (room_type.into(), key.into());
        self.session.ask(Asked::Join, |request| ClientMessage::JoinByKey {
            request,
            room_type,
            key,
        })
    }

    /// Asks to create a room and enter it. Empty options are the room type's default.
    pub fn create(
        &mut self,
        room_type: &str,
        creation: &Creation,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let Creation { private, code, ref key } = *creation;
        let (room_type, key) = (room_type.into(), key.as_deref().map(Cow::Borrowed));
        self.session.ask(Asked::Join, |request| ClientMessage::Create {
            request,
            room_type,
            private,
            code,
            key,
            options,
        })
    }

    /// Asks to enter any room of a type that is not full and has no key, or a new one with these
    /// options.
    pub fn join_or_create(
        &mut self,
        room_type: &str,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.enter_or_create(room_type, None, options)
    }

    /// Asks to enter the room of a type that has this key, or a new one with it and these options.
    pub fn join_or_create_by_key(
        &mut self,
        room_type: &str,
        key: &str,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.enter_or_create(room_type, Some(key.into()), options)
    }

    fn enter_or_create(
        &mut self,
        room_type: &str,
        key: Option<Cow<'_, str>>,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.into();
        self.session.ask(Asked::Join, |request| ClientMessage::JoinOrCreate {
            request,
            room_type,
            key,
            options,
        })
    }

    /// Asks for a list of rooms: of one type or of all, with all of this metadata, and at most
    /// `limit`; 0 means the node's limit.
    pub fn list(
        &mut self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: u32,
    ) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.map(Cow::Borrowed);
        let filter = filter.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        self.session.ask(Asked::List, |request| ClientMessage::List {
            request,
            room_type,
            filter,
            limit,
        })
    }

    /// Asks for the schema of a room type.
    pub fn schema(&mut self, room_type: &str) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.into();
        self.session.ask(Asked::Schema, |request| ClientMessage::Schema { request, room_type })
    }

    /// Asks to leave a room.
    pub fn leave(&mut self, room: RoomNumber) -> Result<RequestNumber, CommandError> {
        self.session.rooms.get(room)?;
        self.session.ask(Asked::Leave { room }, |request| ClientMessage::Leave { request, room })
    }

    /// Sends a message that the room answers. The message type has this `index` and `name`; the
    /// format determines which is sent. Returns the number of the request.
    pub fn request(
        &mut self,
        room: RoomNumber,
        index: u32,
        name: &str,
        payload: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.session.request(room, index, name, payload)
    }

    /// Sends a message that the room doesn't answer; see [`request`](Self::request).
    pub fn send(
        &mut self,
        room: RoomNumber,
        index: u32,
        name: &str,
        payload: &[u8],
    ) -> Result<(), CommandError> {
        self.session.send(room, index, name, payload)
    }

    /// Asks for a snapshot, and ignores patches until it comes. The client does this by itself when
    /// a copy falls out of step.
    pub fn resync(&mut self, room: RoomNumber) -> Result<(), CommandError> {
        self.session.resync(room)
    }

    /// Sends a ping. Returns its nonce, which [`Handler::pong`] will report.
    pub fn ping(&mut self) -> Result<u64, CommandError> {
        self.session.ping()
    }

    /// Says goodbye. The session is over when the transport has [ended](Self::ended).
    pub fn goodbye(&mut self) {
        self.session.goodbye();
    }
}
