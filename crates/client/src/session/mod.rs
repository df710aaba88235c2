//! The client's end of a session as a state machine over bytes and time. It touches no socket, no
//! clock and no random generator.
//!
//! The caller hands a [`Session`] the bytes that arrive and the current time, polls it for events,
//! whose data is borrowed from what arrived, and sends its output.
//!
//! ```
//! use playfield_client::session::{ClientConfig, Event, Session, Transport};
//! use playfield_wire::{Format, framing, server};
//!
//! let mut session = Session::new(ClientConfig::new(Transport::Native))?;
//! let mut out = Vec::new();
//! session.take_output(&mut out); // the preamble and the hello: send them
//!
//! # let mut arrived = Vec::new();
//! # let (protocol, number, resume) = (1, 7, [][..].into());
//! # let max_message_bytes = 999;
//! # let others = server::Welcome::default();
//! # let welcome = server::Welcome { protocol, session: number, resume, max_message_bytes, ..others };
//! # framing::write_frame_with(&mut arrived, |out| welcome.encode(Format::Packed, out));
//! session.received(&arrived); // bytes from the node
//! while let Some(event) = session.poll_event() {
//!     assert!(matches!(event, Event::Welcome(welcome) if welcome.session == 7));
//! }
//!
//! let request = session.join_or_create("table", b"")?;
//! # assert_eq!(request, playfield_client::RequestNumber(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
mod attempts;
mod backoff;
mod channels;
mod commands;
mod config;
mod copy;
mod creation;
mod device;
mod entering;
mod error;
mod event;
mod inbox;
mod losses;
mod masks;
mod numbers;
mod outcome;
mod protocol;
mod pulse;
mod receive;
mod reconnect;
mod redirects;
mod report;
mod requests;
mod resumption;
mod rooms;
mod schemas;
mod switch;
mod token;
mod transport;
mod url;

use std::time::Duration;

use playfield_websocket::handshake::HandshakeError;
use playfield_wire::{Format, RoomNumber};

pub use attempts::{Attempts, Patience};
pub use channels::{SUBSCRIPTIONS_MAX, Subscribed, SubscriptionNumber};
pub use config::{ClientConfig, Transport};
pub use creation::Creation;
pub use entering::Target;
pub use error::{ClientError, CommandError};
pub use event::Event;
pub use masks::Masks;
pub use numbers::{NumberHasher, NumberMap};
pub use outcome::{Failure, OutOfStep, Repair, RoomCopy, Update, UpdateKind};
pub use playfield_wire::client::Position;
pub use playfield_wire::server::{self, Joined, Lost, MemberInfo};
pub use pulse::Clock;
pub use reconnect::Step;
pub use redirects::{ASKS_MAX, NODE_IDLE, REDIRECTS_MAX, Reach, Route, Turn};
pub use resumption::UNREADABLE_IN_A_ROW_MAX;
pub use rooms::UNUSABLE_IN_A_ROW_MAX;
pub use schemas::{Build, Learned, Translation, Unusable};
pub use token::TokenLife;
pub use url::{Url, UrlError};

use entering::Entering;
use inbox::Inbox;
use protocol::{Phase, Protocol};
use reconnect::Reconnect;
use report::Report;
use resumption::{Greeting, Resumption};
use transport::{Inbound, Piece};

/// The format of all messages: the binary one, which needs schemas.
const FORMAT: Format = Format::Packed;

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
pub struct Session {
    inbound: Inbound,
    inbox: Inbox,
    protocol: Protocol,
    reconnect: Reconnect,
    deflate: bool,
    message_bytes_max: usize,
}

impl Session {
    /// A client whose output starts with the hello.
    ///
    /// # Errors
    /// If the host or the target is invalid in a WebSocket request.
    pub fn new(config: ClientConfig) -> Result<Self, HandshakeError> {
        let ClientConfig {
            name,
            token,
            transport,
            deflate,
            message_bytes_max,
            requests_max,
            resumable,
            unconfirmed_bytes_max,
            schemas,
            schema_timeout,
            patience,
            renews_token,
            redirects,
            seed,
        } = config;
        let (inbound, outbound) = transport::open(transport, deflate, message_bytes_max)?;
        let named = schemas.iter().map(|(room_type, _)| room_type.clone()).collect();
        let entering = Entering::new(named, schema_timeout);
        let reconnect = Reconnect::new(patience, renews_token, &token, redirects, seed);
        let greeting = Greeting { name, token, schemas, redirects: redirects.is_some() };
        let resumption = Resumption::new(greeting, resumable, unconfirmed_bytes_max);
        let protocol = Protocol::new(outbound, requests_max, resumption, entering);
        let inbox = Inbox::default();
        Ok(Self { inbound, inbox, protocol, reconnect, deflate, message_bytes_max })
    }

    /// Goes on over another connection, of any transport: its output starts with a hello that asks
    /// for the session. The node's answer is reported by [`Event::Resumed`] or
    /// [`Event::NewSession`]. A connection that was not reported as lost counts as lost. After
    /// the end, this does nothing.
    ///
    /// # Errors
    /// If the host or the target is invalid in a WebSocket request.
    pub fn reconnect(&mut self, transport: Transport) -> Result<(), HandshakeError> {
        if matches!(self.protocol.phase, Phase::Leaving | Phase::Finished) {
            return Ok(());
        }
        let (inbound, outbound) = transport::open(transport, self.deflate, self.message_bytes_max)?;
        (self.inbound, self.inbox) = (inbound, Inbox::default());
        self.protocol.reconnect(outbound);
        self.dialed();
        Ok(())
    }

    /// Takes bytes from the node, which may be split anywhere, for [`poll_event`](Self::poll_event)
    /// to handle. Bytes after the end of the connection are ignored.
    pub fn received(&mut self, bytes: &[u8]) {
        if self.protocol.is_open() {
            self.inbox.add(bytes);
        }
    }

    /// Returns whether to read more from the transport. If not, so much waits to be
    /// [polled](Self::poll_event) that the node should wait.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.inbox.wants_more()
    }

    /// Handles what was received, up to the next event, and returns that. Its data is borrowed from
    /// what was received. `None` if all was handled.
    ///
    /// Messages are handled only here: poll until there is no event after each call of
    /// [`received`](Self::received), [`ended`](Self::ended), [`advance`](Self::advance) and
    /// [`give_up`](Self::give_up). What the session says of itself, as
    /// [`is_away`](Self::is_away) does, is as of the last event.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        let (place, report) = loop {
            if let Some(event) = self.protocol.events.pop_front() {
                return Some(event);
            }
            if !self.inbox.is_unread {
                return None;
            }
            let piece = match self.protocol.is_open() {
                true => self.inbox.next(&mut self.inbound),
                false => Ok(None),
            };
            let handled = match piece {
                Ok(Some((Piece::Message(body), place))) => match self.protocol.message(body) {
                    Ok(Report::Nothing) => Ok(()),
                    Ok(report) => break (place, report),
                    Err(error) => Err(error),
                },
                Ok(Some((Piece::Ping(payload), _))) => {
                    self.protocol.pulse.heard();
                    self.protocol.outbound.pong(payload);
                    Ok(())
                }
                Ok(Some((Piece::Alive, _))) => {
                    self.protocol.pulse.heard();
                    Ok(())
                }
                Ok(Some((Piece::Upgraded(agreed), _))) => {
                    self.protocol.outbound.release(agreed.as_ref());
                    Ok(())
                }
                Ok(Some((Piece::Close(code), _))) => {
                    self.protocol.end(code);
                    Ok(())
                }
                Ok(None) => {
                    self.settle();
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = handled {
                self.protocol.fail(error);
            }
        };
        // A borrow can't leave the loop, so there is another.
        report.event(self.inbox.body(&self.inbound, place))
    }

    /// Returns whether [`poll_event`](Self::poll_event) has something to handle or to return.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.inbox.is_unread || !self.protocol.events.is_empty()
    }

    /// All that was received is handled.
    fn settle(&mut self) {
        if self.inbox.is_last {
            self.protocol.end(None);
        }
        self.protocol.tell_weak();
        self.note_welcome();
        if self.protocol.is_open() {
            self.inbox.settle();
            self.protocol.acknowledge_if_due();
            self.protocol.continue_entering();
        } else {
            self.inbox = Inbox::default();
        }
        self.protocol.free_events();
    }

    /// The copy of a room's state, to be kept up to date from now on. Set it on
    /// [`Event::Joined`], before the next event is polled. Without one, the session only follows
    /// the versions. Returns whether the session is in the room.
    pub fn set_copy(&mut self, room: RoomNumber, copy: Box<dyn RoomCopy + Send>) -> bool {
        self.protocol.rooms.set_copy(room, copy)
    }

    /// Reports that the transport has ended: nothing more will be received. If the session outlives
    /// it, the client [is away](Self::is_away), once all that was received before is polled; else
    /// it is [finished](Self::is_finished).
    pub fn ended(&mut self) {
        if self.protocol.is_open() {
            (self.inbox.is_unread, self.inbox.is_last) = (true, true);
        }
    }

    /// Ends the session: there will be no other connection. What was received and not polled is
    /// dropped.
    pub fn give_up(&mut self) {
        self.inbox = Inbox::default();
        self.protocol.give_up();
    }

    /// Returns whether the connection is lost, and the session waits for
    /// [`reconnect`](Self::reconnect).
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.protocol.phase == Phase::Away
    }

    /// Returns the time for which the node keeps the session after a lost connection, as of the
    /// last welcome. Zero if it does not keep it, or has shut down.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.protocol.resumption.grace()
    }

    /// Returns the time for which the node keeps the session, and the seats of all rooms that keep
    /// one at all. Plan the attempts to connect again by it.
    #[must_use]
    pub fn shortest_grace(&self) -> Duration {
        let grace = self.grace();
        self.protocol.rooms.grace().map_or(grace, |of_rooms| of_rooms.min(grace))
    }

    /// Why the connection, or the last attempt to restore it, was lost.
    #[must_use]
    pub fn lost(&self) -> Option<&ClientError> {
        self.protocol.resumption.lost()
    }

    /// Returns whether the node has answered the hello on the present connection.
    #[must_use]
    pub fn is_welcomed(&self) -> bool {
        self.protocol.is_open() && self.protocol.welcomed
    }

    /// Returns whether the present connection, or the last, has resumed the session and brought it
    /// forward: a counted message was handled, one of this client's was confirmed, or a copy
    /// advanced. Then the next loss is not one more failure in a row.
    #[must_use]
    pub fn made_progress(&self) -> bool {
        self.protocol.resumption.made_progress()
    }

    /// Returns whether commands fail because too many bytes wait to be confirmed by the node.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.protocol.resumption.is_full()
    }

    /// Returns the number of bytes of counted messages that the node has not confirmed yet.
    #[must_use]
    pub fn unconfirmed_bytes(&self) -> usize {
        self.protocol.resumption.unconfirmed_bytes()
    }

    /// Returns the number of messages without an answer that the node has not confirmed yet.
    #[must_use]
    pub fn unconfirmed_sends(&self) -> u64 {
        self.protocol.resumption.unconfirmed_sends()
    }

    /// The delay to the node, and its clock, as measured on this connection. `None` until the first
    /// pong. The ping after the welcome and keep-alive pings count too; [`ping`](Self::ping)
    /// measures now.
    #[must_use]
    pub fn clock(&self) -> Option<Clock> {
        self.protocol.pulse.clock()
    }

    /// The connection may be dead: this process slept, or the network has changed. Sends a ping,
    /// and gives the connection up as lost if nothing is heard within 5 seconds.
    pub fn suspect(&mut self) {
        self.protocol.suspect();
    }

    /// Sets the current time. Sends a ping or an acknowledgement if one is due, and gives the
    /// connection up as lost if the node has not answered a ping in time, unless something that
    /// was received waits to be polled.
    pub fn advance(&mut self, now: Duration) {
        self.protocol.advance(now, self.inbox.is_unread);
        if !self.inbox.is_unread {
            self.check_welcome();
        }
    }

    /// When [`advance`](Self::advance) next has something to do.
    #[must_use]
    pub fn due_at(&self) -> Option<Duration> {
        let step_at = self.step_at().filter(|_| !self.inbox.is_unread);
        self.protocol.due_at(self.inbox.is_unread).into_iter().chain(step_at).min()
    }

    /// Appends the bytes to send to `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        self.protocol.outbound.take(out);
    }

    /// Returns the number of bytes that wait for [`take_output`](Self::take_output). Every command
    /// adds to them: stop giving commands while they are many.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.protocol.outbound.bytes()
    }

    /// Returns whether the session is over. Send the remaining output, then close the transport.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.protocol.is_finished()
    }
}
