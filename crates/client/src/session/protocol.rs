//! The state of one session, and all that the client sends. `receive` handles what it receives, and
//! `resumption` what happens between two connections.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_wire::client::{self, ClientMessage, write_request, write_send};
use playfield_wire::{RequestNumber, RoomNumber};

use super::channels::Channels;
use super::device::Registrations;
use super::entering::Entering;
use super::losses::Abandoned;
use super::pulse::{Due, Pulse};
use super::requests::{Asked, Requests};
use super::resumption::Resumption;
use super::rooms::Rooms;
use super::transport::Outbound;
use super::{ClientError, CommandError, Event, FORMAT, Failure};

/// The longest message that is ever sent, and the limit before the welcome states the node's.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// An empty queue of events with more capacity than this is freed.
const IDLE_EVENTS_MAX: usize = 16;

/// The code of a WebSocket close frame after a goodbye (RFC 6455, 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;

#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) phase: Phase,
    /// The node answered the hello on this connection.
    pub(super) welcomed: bool,
    pub(super) outbound: Outbound,
    /// The longest message that the node accepts, in bytes.
    pub(super) bytes_max: usize,
    pub(super) requests: Requests,
    pub(super) rooms: Rooms,
    pub(super) abandoned: Abandoned,
    pub(super) pulse: Pulse,
    pub(super) resumption: Resumption,
    pub(super) channels: Channels,
    pub(super) registrations: Registrations,
    pub(super) entering: Entering,
    /// Events that were not polled, but for those that the message at hand says.
    pub(super) events: VecDeque<Event<'static>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Talking,
    /// The connection was lost.
    Away,
    /// This client has said goodbye, and waits for the node to close the transport.
    Leaving,
    Finished,
}

impl Protocol {
    /// A session whose output starts with the hello.
    pub(super) fn new(
        outbound: Outbound,
        requests_max: usize,
        resumption: Resumption,
        entering: Entering,
    ) -> Self {
        let mut session = Self {
            phase: Phase::Talking,
            welcomed: false,
            outbound,
            bytes_max: MESSAGE_BYTES_MAX,
            requests: Requests::new(requests_max),
            rooms: Rooms::default(),
            abandoned: Abandoned::default(),
            pulse: Pulse::default(),
            resumption,
            channels: Channels::default(),
            registrations: Registrations::default(),
            entering,
            events: VecDeque::new(),
        };
        session.hello();
        session
    }

    /// A request has failed.
    pub(super) fn failed(&mut self, request: RequestNumber, failure: Failure<'static>) {
        if !self.schema_failed(request, &failure) {
            self.events.push_back(Event::Failed { request, failure });
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Returns whether there is a transport to receive from.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Talking | Phase::Leaving)
    }

    /// Returns whether messages can be sent. The first ones follow the hello; after a lost
    /// connection, only the welcome says which of them the node has handled.
    pub(super) fn can_send(&self) -> bool {
        self.is_open() && (self.welcomed || self.resumption.is_first())
    }

    /// Sends a message that expects an answer.
    pub(super) fn ask<'a>(
        &mut self,
        asked: Asked,
        message: impl FnOnce(RequestNumber) -> ClientMessage<'a>,
    ) -> Result<RequestNumber, CommandError> {
        let request = self.reserve()?;
        let message = message(request);
        let payload = match &message {
            ClientMessage::Create(client::Create { options, .. })
            | ClientMessage::JoinOrCreate(client::JoinOrCreate { options, .. }) => *options,
            _ => &[][..],
        };
        let encode = |out: &mut Vec<u8>| message.encode(FORMAT, out);
        let count = self.write_counted(asked.room(), payload, encode)?;
        self.requests.sent(request, asked, count);
        Ok(request)
    }

    /// Sends a message that expects an answer only if something is asked. Returns the number of
    /// the request then.
    pub(super) fn tell<'a>(
        &mut self,
        asked: Option<Asked>,
        payload: &[u8],
        message: impl FnOnce(Option<RequestNumber>) -> ClientMessage<'a>,
    ) -> Result<Option<RequestNumber>, CommandError> {
        self.check_open()?;
        let request = asked.map(|_| self.requests.reserve()).transpose()?;
        let message = message(request);
        let count = self.write_counted(None, payload, |out| message.encode(FORMAT, out))?;
        if let Some((request, asked)) = request.zip(asked) {
            self.requests.sent(request, asked, count);
        }
        Ok(request)
    }

    pub(super) fn leave(&mut self, room: RoomNumber) -> Result<RequestNumber, CommandError> {
        self.rooms.get(room)?;
        self.ask(Asked::Leave { room }, |request| {
            ClientMessage::Leave(client::Leave { request, room })
        })
    }

    pub(super) fn request(
        &mut self,
        room: RoomNumber,
        index: u32,
        payload: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let request = self.reserve()?;
        let converted = self.rooms.get(room)?.to_node(room, index, payload)?;
        let (number, payload) = converted.as_ref().map_or((index, payload), |(n, p)| (*n, &p[..]));
        let count = self.write_counted(Some(room), payload, |out| {
            write_request(FORMAT, out, room, request, number, "", payload);
        })?;
        self.requests.sent(request, Asked::Message { room, index }, count);
        Ok(request)
    }

    pub(super) fn send(
        &mut self,
        room: RoomNumber,
        index: u32,
        payload: &[u8],
    ) -> Result<(), CommandError> {
        self.check_open()?;
        let converted = self.rooms.get(room)?.to_node(room, index, payload)?;
        let (index, payload) = converted.as_ref().map_or((index, payload), |(n, p)| (*n, &p[..]));
        self.write_counted(Some(room), payload, |out| {
            write_send(FORMAT, out, room, index, "", payload);
        })
        .map(drop)
    }

    /// Sends a message that is not counted. While nothing can be sent, it is dropped.
    pub(super) fn send_message(&mut self, message: &ClientMessage<'_>) -> Result<(), CommandError> {
        self.check_open()?;
        let is_for_connection =
            matches!(message, ClientMessage::Pong(_) | ClientMessage::Goodbye(client::Goodbye {}));
        if !(self.can_send() || self.is_open() && is_for_connection) {
            return Ok(());
        }
        self.write(|out| message.encode(FORMAT, out))
    }

    pub(super) fn resync(&mut self, room: RoomNumber) -> Result<(), CommandError> {
        let can_send = self.can_send();
        self.rooms.wait_for_snapshot(room, can_send)?;
        self.send_message(&ClientMessage::Resync(client::Resync { room }))
    }

    pub(super) fn ping(&mut self) -> Result<u64, CommandError> {
        self.check_open()?;
        let nonce = self.pulse.ping()?;
        self.send_message(&ClientMessage::Ping(client::Ping { nonce }))?;
        Ok(nonce)
    }

    pub(super) fn goodbye(&mut self) {
        // An error means that the connection is closed already.
        if self.send_message(&ClientMessage::Goodbye(client::Goodbye {})).is_ok() {
            let was_away = self.phase == Phase::Away;
            self.phase = Phase::Leaving;
            if !was_away {
                self.outbound.close(NORMAL_CLOSURE);
            }
        }
    }

    pub(super) fn check_open(&self) -> Result<(), CommandError> {
        match self.phase {
            Phase::Talking | Phase::Away => Ok(()),
            Phase::Leaving | Phase::Finished => Err(CommandError::Closed),
        }
    }

    pub(super) fn reserve(&mut self) -> Result<RequestNumber, CommandError> {
        self.check_open()?;
        self.requests.reserve()
    }

    /// Sends a counted message, and keeps it until the node confirms it. Returns its count.
    #[inline]
    pub(super) fn write_counted(
        &mut self,
        room: Option<RoomNumber>,
        payload: &[u8],
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, CommandError> {
        let (can_send, is_kept) = (self.can_send(), self.resumption.is_kept());
        if !can_send && !is_kept {
            return Err(CommandError::Away);
        }
        let (bytes, bytes_max) = (payload.len(), self.bytes_max);
        if bytes > bytes_max {
            return Err(CommandError::TooLarge { bytes, bytes_max });
        }
        if !is_kept {
            return self.write(write).map(|()| 0);
        }
        let body = self.resumption.keep(room, bytes_max, write)?;
        if can_send {
            // Its length was checked.
            let _ = self.outbound.message(usize::MAX, |out| out.extend_from_slice(body));
            self.pulse.sent();
        }
        Ok(self.resumption.log.sent())
    }

    #[inline]
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), CommandError> {
        let bytes_max = self.bytes_max;
        let written = self.outbound.message(bytes_max, write);
        written.map_err(|bytes| CommandError::TooLarge { bytes, bytes_max })?;
        self.pulse.sent();
        Ok(())
    }

    pub(super) fn advance(&mut self, now: Duration, is_unread: bool) {
        if is_unread {
            self.pulse.set_now(now);
        } else {
            self.check_pulse(now);
        }
        self.acknowledge_if_due();
        self.retry_subscriptions();
        self.retry_registration();
        self.continue_entering();
    }

    fn check_pulse(&mut self, now: Duration) {
        match self.pulse.advance(now) {
            Due::Nothing => {}
            Due::Ping => self.probe(),
            Due::Silent { silence } => self.fail(ClientError::Silent { silence }),
        }
        self.tell_weak();
    }

    /// Reports that the connection is weak, or no longer.
    #[inline]
    pub(super) fn tell_weak(&mut self) {
        if let Some(is_weak) = self.pulse.take_news() {
            self.events.push_back(Event::Weak { is_weak });
        }
    }

    /// All events were polled: frees their queue, if it is large.
    pub(super) fn free_events(&mut self) {
        if self.events.is_empty() && self.events.capacity() > IDLE_EVENTS_MAX {
            self.events = VecDeque::new();
        }
    }

    /// When [`advance`](Self::advance) next has something to do.
    pub(super) fn due_at(&self, is_unread: bool) -> Option<Duration> {
        let acknowledge_at = self.resumption.acknowledge_at().filter(|_| self.can_send());
        let retry_at = [self.channels.retry_at(), self.registrations.retry_at];
        let retry_at = retry_at.into_iter().flatten().min().filter(|_| self.can_send());
        let pulse = self.pulse.due_at().filter(|_| !is_unread);
        let schemas_at = self.entering.due_at().filter(|_| self.can_send());
        [pulse, acknowledge_at, retry_at, schemas_at].into_iter().flatten().min()
    }

    /// Sends a keep-alive ping.
    pub(super) fn probe(&mut self) {
        let nonce = self.pulse.probe();
        // A ping fails only if the node's limit is too small for any message.
        if self.send_message(&ClientMessage::Ping(client::Ping { nonce })).is_err() {
            self.pulse.sent();
        }
    }

    /// The connection may be dead.
    pub(super) fn suspect(&mut self) {
        if self.phase == Phase::Talking && self.welcomed {
            self.probe();
            self.pulse.suspect();
        }
    }

    /// The node ended the transport, on WebSocket by a close frame.
    pub(super) fn end(&mut self, close_code: Option<u16>) {
        match self.phase {
            Phase::Talking => self.fail(ClientError::Ended { close_code }),
            Phase::Leaving => self.finish(None),
            Phase::Away | Phase::Finished => {}
        }
    }

    /// Ends the session: nothing more is sent or received.
    pub(super) fn finish(&mut self, error: Option<ClientError>) {
        if self.is_finished() {
            return;
        }
        self.phase = Phase::Finished;
        self.outbound.close(error.as_ref().map_or(NORMAL_CLOSURE, ClientError::close_code));
        self.pulse.stop();
        self.rooms.clear();
        self.abandoned = Abandoned::default();
        let unconfirmed = self.resumption.unconfirmed_sends();
        self.resumption.clear();
        (self.channels, self.registrations) = Default::default();
        self.entering.clear();
        for (request, _) in self.requests.give_up_all() {
            self.failed(request, Failure::Closed);
        }
        if unconfirmed > 0 {
            self.events.push_back(Event::Unconfirmed { sends: unconfirmed });
        }
        self.events.push_back(Event::Closed { error });
    }
}
