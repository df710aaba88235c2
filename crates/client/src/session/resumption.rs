//! A session that outlives its connections: what is kept for the next one, and how it goes on.

use std::borrow::Cow;
use std::time::Duration;

use playfield_session::{ACK_DELAY, Log, NeverSent, NotResumed, Passage, Received};
use playfield_wire::client::{self, ClientMessage, Hello, Resume, SchemaRef};
use playfield_wire::server;
use playfield_wire::{ErrorCode, RoomNumber};

use super::losses::Abandoned;
use super::protocol::{Phase, Protocol};
use super::transport::Outbound;
use super::{ClientError, CommandError, Event, FORMAT};

/// The most messages in a row that may be unreadable, without a counted one between them that is
/// read, before the client stops. A message that is counted comes again on each new connection.
pub const UNREADABLE_IN_A_ROW_MAX: u32 = 2;

/// A buffer with more capacity than this is freed.
const IDLE_SCRATCH_BYTES_MAX: usize = 4 << 10;

/// The content of each hello.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) name: String,
    pub(super) token: Vec<u8>,
    pub(super) schemas: Vec<(String, u64)>,
    pub(super) redirects: bool,
}

/// State that a client keeps for its next connection.
#[derive(Debug)]
pub(super) struct Resumption {
    pub(super) greeting: Greeting,
    /// Says whether the session is to outlive a connection.
    is_wanted: bool,
    /// The number of the session, after the first welcome.
    session: Option<u64>,
    /// The resume token; empty if the node does not keep the session.
    token: Vec<u8>,
    /// The time for which the node keeps the session after a lost connection.
    grace: Duration,
    /// The addresses of the node, of a welcome that was not noted yet.
    pub(super) addresses: Option<Vec<String>>,
    /// The messages that the node has not confirmed.
    pub(super) log: Log,
    unconfirmed_bytes_max: usize,
    received: Received,
    /// When what was received must be acknowledged.
    acknowledge_at: Option<Duration>,
    /// The number of schemas in this session that were not asked for.
    unasked_schemas: u64,
    /// Received messages are acknowledged at once, because the node waits for that.
    acknowledges_now: bool,
    /// The number of unreadable messages in a row.
    unreadable: u32,
    /// Why the connection was lost.
    lost: Option<ClientError>,
    /// This connection has resumed the session, and brought it forward.
    is_resumed: bool,
    has_progress: bool,
    /// The time that the node wants this client to wait, as it said on this connection.
    pub(super) retry_after: Option<Duration>,
    /// Says whether the program may give another token after one was refused.
    pub(super) renews_token: bool,
    /// The node has refused the token.
    pub(super) is_token_refused: bool,
    /// One message, until it is known to be short enough.
    scratch: Vec<u8>,
}

impl Resumption {
    pub(super) fn new(greeting: Greeting, is_wanted: bool, unconfirmed_bytes_max: usize) -> Self {
        Self {
            greeting,
            is_wanted,
            session: None,
            token: Vec::new(),
            grace: Duration::ZERO,
            addresses: None,
            log: Log::default(),
            unconfirmed_bytes_max,
            received: Received::default(),
            acknowledge_at: None,
            unasked_schemas: 0,
            acknowledges_now: false,
            unreadable: 0,
            lost: None,
            is_resumed: false,
            has_progress: false,
            retry_after: None,
            renews_token: false,
            is_token_refused: false,
            scratch: Vec::new(),
        }
    }

    /// Returns whether no connection was welcomed yet.
    pub(super) fn is_first(&self) -> bool {
        self.session.is_none()
    }

    /// Returns whether both ends keep the session when the connection is lost, as far as is known.
    pub(super) fn is_kept(&self) -> bool {
        self.is_wanted && (self.is_first() || !self.token.is_empty())
    }

    /// Returns whether a command would be refused, because too much waits to be confirmed.
    pub(super) fn is_full(&self) -> bool {
        self.log.bytes() >= self.unconfirmed_bytes_max
    }

    pub(super) fn unconfirmed_bytes(&self) -> usize {
        self.log.bytes()
    }

    /// Keeps a counted message, unless it is longer than `bytes_max`.
    pub(super) fn keep(
        &mut self,
        room: Option<RoomNumber>,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<&[u8], CommandError> {
        if self.is_full() {
            return Err(CommandError::Unconfirmed { bytes: self.log.bytes() });
        }
        let Self { log, scratch, .. } = self;
        scratch.clear();
        write(scratch);
        let bytes = scratch.len();
        if bytes > bytes_max {
            *scratch = Vec::new();
            return Err(CommandError::TooLarge { bytes, bytes_max });
        }
        // The limit was checked above. What was taken is never dropped.
        let body = log.push(room, usize::MAX, Passage::Sent, |out| out.extend_from_slice(scratch));
        if scratch.capacity() > IDLE_SCRATCH_BYTES_MAX {
            *scratch = Vec::new();
        }
        Ok(body)
    }

    /// A counted message of the node was handled.
    #[inline]
    pub(super) fn handled(&mut self, bytes: usize, now: Duration) {
        self.unreadable = 0;
        self.has_progress = true;
        if self.is_kept() {
            self.received.handled(bytes);
            self.acknowledge_at.get_or_insert(now.saturating_add(ACK_DELAY));
        }
    }

    /// A schema came that was not asked for.
    pub(super) fn heard_unasked_schema(&mut self) {
        self.unasked_schemas += 1;
        self.acknowledges_now = true;
    }

    /// A copy was brought forward.
    #[inline]
    pub(super) fn shown(&mut self) {
        self.has_progress = true;
    }

    /// Returns whether this connection has resumed the session, and brought it forward.
    pub(super) fn made_progress(&self) -> bool {
        self.is_resumed && self.has_progress
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    /// The node has ended this connection, but not what this client wants.
    pub(super) fn turned_away(&mut self, code: ErrorCode) {
        match code {
            // The node ended the session. The token still says to its successor what was lost.
            ErrorCode::ShuttingDown => self.grace = Duration::ZERO,
            // One more attempt, with another token.
            ErrorCode::Unauthorized => {
                self.renews_token = false;
                self.is_token_refused = true;
            }
            _ => {}
        }
    }

    /// Why the connection was lost.
    pub(super) fn lost(&self) -> Option<&ClientError> {
        self.lost.as_ref()
    }

    pub(super) fn acknowledge_at(&self) -> Option<Duration> {
        self.acknowledge_at
    }

    /// The node has handled this many counted messages.
    pub(super) fn acknowledged(&mut self, received: u64) -> Result<(), ClientError> {
        if !self.is_kept() {
            return Ok(());
        }
        self.has_progress |= received > self.log.gone();
        let acknowledged = self.log.acknowledge(received);
        acknowledged
            .map_err(|NeverSent { received, sent }| ClientError::NeverSent { received, sent })
    }

    /// The node has opened a session.
    fn opened(&mut self, welcome: &server::Welcome<'_>) {
        (self.session, self.unasked_schemas) = (Some(welcome.session), 0);
        self.renewed(welcome);
    }

    fn renewed(&mut self, welcome: &server::Welcome<'_>) {
        self.grace = welcome.grace();
        if self.greeting.redirects {
            self.addresses = Some(welcome.addresses.iter().map(ToString::to_string).collect());
        }
        let is_kept = self.is_wanted && !self.grace.is_zero();
        self.token = if is_kept { welcome.resume.to_vec() } else { Vec::new() };
        if self.token.is_empty() {
            (self.log, self.received, self.acknowledge_at) =
                (Log::default(), Received::default(), None);
        }
    }

    /// Returns the number of messages without an answer that the node has not confirmed.
    pub(super) fn unconfirmed_sends(&self) -> u64 {
        let bodies = self.log.unacknowledged();
        let sends = bodies.filter(|(_, body)| match ClientMessage::decode(FORMAT, body) {
            Ok(
                ClientMessage::Send(_)
                | ClientMessage::Publish(client::Publish { request: None, .. })
                | ClientMessage::Report(client::Report { request: None, .. })
                | ClientMessage::Answer(_),
            ) => true,
            // The others are requests, which fail. What this client wrote can be read.
            Ok(_) | Err(_) => false,
        });
        sends.count() as u64
    }

    /// The session is over.
    pub(super) fn clear(&mut self) {
        (self.log, self.acknowledge_at) = (Log::default(), None);
        (self.token, self.scratch) = (Vec::new(), Vec::new());
    }
}

impl Protocol {
    /// Sends the hello, the first message of a connection.
    pub(super) fn hello(&mut self) {
        let Resumption { greeting, is_wanted, token, received, acknowledge_at, .. } =
            &mut self.resumption;
        let mut resume = None;
        if !token.is_empty() {
            *acknowledge_at = None;
            resume = Some(Resume {
                token: Cow::Borrowed(token),
                received: received.acknowledge(),
                rooms: self.rooms.resume(),
            });
        }
        let schemas = greeting.schemas.iter().map(|(room_type, fingerprint)| SchemaRef {
            room_type: room_type.into(),
            fingerprint: *fingerprint,
        });
        let hello = ClientMessage::Hello(Hello {
            name: Cow::Borrowed(&greeting.name),
            token: Cow::Borrowed(&greeting.token),
            resumable: *is_wanted,
            resume,
            schemas: schemas.collect(),
            redirects: greeting.redirects,
            ..Hello::new(FORMAT)
        });
        // The node has not stated its limit yet.
        let _ = self.outbound.message(usize::MAX, |out| hello.encode(FORMAT, out));
    }

    /// Goes on over another transport.
    pub(super) fn reconnect(&mut self, outbound: Outbound) {
        (self.outbound, self.phase, self.welcomed) = (outbound, Phase::Talking, false);
        self.resumption.retry_after = None;
        (self.resumption.is_resumed, self.resumption.has_progress) = (false, false);
        self.hello();
    }

    /// Something ended the connection. The session outlives it, unless the node broke the protocol
    /// or can't be read.
    pub(super) fn fail(&mut self, error: ClientError) {
        let is_open = self.phase == Phase::Talking;
        if !is_open || !self.resumption.is_wanted || self.resumption.is_first() || error.is_final()
        {
            return self.finish(Some(error));
        }
        if error.is_unreadable() {
            self.resumption.unreadable += 1;
            let messages = self.resumption.unreadable;
            if messages > UNREADABLE_IN_A_ROW_MAX {
                let last = Box::new(error);
                return self.finish(Some(ClientError::Unreadable { messages, last }));
            }
        }
        self.phase = Phase::Away;
        self.outbound.close(error.close_code());
        self.pulse.stop();
        // A failed attempt to reconnect is not reported: the loss was.
        if self.welcomed {
            self.events.push_back(Event::ConnectionLost { error: error.clone() });
        }
        self.resumption.lost = Some(error);
    }

    /// The connection was lost, and there will be no other.
    pub(super) fn give_up(&mut self) {
        let error = match self.phase {
            Phase::Talking => Some(ClientError::Ended { close_code: None }),
            Phase::Away => self.resumption.lost.take(),
            Phase::Leaving | Phase::Finished => None,
        };
        self.finish(error);
    }

    /// Returns whether a goodbye of the node ends this connection only, and not the session.
    pub(super) fn is_passing(&self, code: ErrorCode) -> bool {
        let is_kept = self.phase == Phase::Talking && self.resumption.is_wanted;
        if !is_kept || self.resumption.is_first() {
            return false;
        }
        match code {
            // This process slept, and the node has waited long enough.
            ErrorCode::Timeout => true,
            // Another node, or the next one here, opens a new session.
            ErrorCode::ShuttingDown => true,
            ErrorCode::Limit | ErrorCode::Busy | ErrorCode::Internal => !self.welcomed,
            ErrorCode::Unauthorized => !self.welcomed && self.resumption.renews_token,
            _ => false,
        }
    }

    /// The node has answered the hello.
    pub(super) fn opened(&mut self, welcome: &server::Welcome<'_>) -> Result<(), ClientError> {
        match (self.resumption.session, &welcome.resumed) {
            (None, None) => {
                self.resumption.opened(welcome);
                self.events.push_back(Event::Welcome(welcome.to_static()));
                self.probe();
                Ok(())
            }
            (Some(_), None) => {
                self.open_again(welcome);
                Ok(())
            }
            (Some(session), Some(resumed))
                if session == welcome.session && !self.resumption.token.is_empty() =>
            {
                self.resumed(welcome, resumed)
            }
            (_, Some(_)) => Err(ClientError::OutOfTurn { message: "the welcome of a session" }),
        }
    }

    /// The session goes on.
    fn resumed(
        &mut self,
        welcome: &server::Welcome<'_>,
        resumed: &server::Resumed,
    ) -> Result<(), ClientError> {
        let received = resumed.received;
        match self.resumption.log.resume(received) {
            Ok(lost) if lost.is_empty() => {}
            Err(NotResumed::NeverSent(NeverSent { received, sent })) => {
                return Err(ClientError::NeverSent { received, sent });
            }
            // A client loses nothing that is not confirmed.
            Ok(_) | Err(NotResumed::Forgotten) => {
                return Err(ClientError::OutOfTurn { message: "a welcome that takes back an ack" });
            }
        }
        self.resumption.renewed(welcome);
        self.resumption.is_resumed = true;
        for lost in &resumed.lost {
            self.resumption.received.lost(lost.messages);
        }
        for (_, body) in self.resumption.log.unacknowledged() {
            let _ = self.outbound.message(usize::MAX, |out| out.extend_from_slice(body));
        }
        for room in self.rooms.take_resyncs() {
            let _ = self.send_message(&ClientMessage::Resync(client::Resync { room }));
        }
        self.subscribe_again();
        self.ping_again();
        self.events.push_back(Event::Resumed(resumed.clone()));
        self.lose_answers(received, &resumed.lost);
        Ok(())
    }

    /// The node has opened another session: the rooms are gone, and no answer will come.
    fn open_again(&mut self, welcome: &server::Welcome<'_>) {
        let unconfirmed = self.resumption.unconfirmed_sends();
        self.resumption.clear();
        self.resumption.received = Received::default();
        self.resumption.opened(welcome);
        self.entering.begin_session();
        for (request, asked) in self.requests.give_up_sent() {
            self.lose_answer(request, asked);
        }
        self.rooms.clear();
        self.abandoned = Abandoned::default();
        if unconfirmed > 0 {
            self.events.push_back(Event::Unconfirmed { sends: unconfirmed });
        }
        self.events.push_back(Event::NewSession(welcome.to_static()));
        self.register_again();
        self.subscribe_again();
        self.ping_again();
    }

    /// Measures the next connection's round trip, and shows the node that its welcome has arrived.
    fn ping_again(&mut self) {
        for nonce in self.pulse.ping_again() {
            let _ = self.send_message(&ClientMessage::Ping(client::Ping { nonce }));
        }
        self.probe();
    }

    /// Acknowledges what was handled, if it is time.
    pub(super) fn acknowledge_if_due(&mut self) {
        let Resumption { received, acknowledge_at, .. } = &mut self.resumption;
        let Some(at) = *acknowledge_at else { return };
        if self.phase != Phase::Talking
            || !self.welcomed
            || (at > self.pulse.now() && !received.is_due())
        {
            return;
        }
        self.acknowledge();
    }

    /// Acknowledges a schema that was not asked for, if one was handled. The node then reads later
    /// messages by it.
    #[inline]
    pub(super) fn acknowledge_switch(&mut self) {
        if std::mem::take(&mut self.resumption.acknowledges_now) {
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        self.resumption.acknowledge_at = None;
        // In a session that is not kept, nothing else is counted.
        let received = match self.resumption.is_kept() {
            true => self.resumption.received.acknowledge(),
            false => self.resumption.unasked_schemas,
        };
        let _ = self.send_message(&ClientMessage::Ack(client::Ack { received }));
    }
}
