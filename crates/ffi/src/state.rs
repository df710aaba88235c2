//! The state of a client: its connection, its handles, what it asked, and what the program has not
//! taken yet. It is locked by whoever uses it, and never while somebody waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use playfield_client::poll::{Buffers, Connection, NumberMap, QueueLimits, Room};
use playfield_client::session::{CommandError, Session, SubscriptionNumber};
use playfield_client::{Error, Position, RequestNumber, RoomNumber};
use playfield_wire::server;

use crate::channel::ChannelCell;
use crate::client::PfStatistics;
use crate::device::DeviceCell;
use crate::event::{PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode};
use crate::room::RoomCell;
use crate::settings::Settings;

/// The most commands of a client that may wait for an answer, or for their turn.
pub const PF_WAITING_MAX: usize = 65_536;

/// The most reports about the connection itself that wait. Past it the newest are dropped.
const REFUSALS_MAX: usize = 64;

/// Where a client is in its life.
pub(crate) enum Link {
    Setup(Box<Settings>),
    Open(Box<Connection>),
    Over,
}

/// A report that waits for `pf_client_next`, or the place where it waits.
#[derive(Debug)]
pub(crate) enum News {
    Report(Box<Report>),
    /// A reply in `packed`.
    Reply(PackedReply),
    /// An event in the room's queue.
    Room(u64),
    /// There is a newer state of the room.
    State(u64),
    /// An event in the channel's queue.
    Channel(u64),
    /// A command in the device's queue.
    Device(u64),
}

/// A reply in `packed`: there are many, so it is smaller than a [`Report`].
#[derive(Debug)]
pub(crate) struct PackedReply {
    pub(crate) request: u64,
    pub(crate) room: u64,
    pub(crate) bytes: Vec<u8>,
}

impl News {
    /// Returns whether it is a reply, or an event in `packed`: these come to the program together.
    pub(crate) fn comes_together(&self, rooms: &HashMap<u64, Arc<RoomCell>>) -> bool {
        match self {
            Self::Report(report) => report.kind == PfEventKind::Reply,
            Self::Reply(_) => true,
            Self::Room(room) => rooms.get(room).is_some_and(|room| room.is_next_packed()),
            Self::State(_) | Self::Channel(_) | Self::Device(_) => false,
        }
    }
}

/// A request that waits for its answer.
pub(crate) struct Asked {
    /// The number that the program knows.
    pub(crate) request: u64,
    pub(crate) what: What,
}

/// The matter of a request.
pub(crate) enum What {
    Enter(Box<Room>),
    Reply {
        room: u64,
        of: Arc<RoomCell>,
        index: u32,
        /// The program wants it in `packed`.
        is_packed: bool,
    },
    Leave {
        room: u64,
    },
    Subscribe {
        since: Option<Position>,
    },
    Register {
        device: String,
    },
    Report {
        device: u64,
        is_bytes: bool,
    },
    /// A list, a schema, a publication's offset, members, or a history.
    Value,
}

impl What {
    /// The kind of the answer.
    pub(crate) fn answer(&self) -> PfEventKind {
        match self {
            Self::Enter(_) => PfEventKind::Joined,
            Self::Subscribe { .. } => PfEventKind::Subscribing,
            Self::Register { .. } => PfEventKind::Registered,
            _ => PfEventKind::Reply,
        }
    }

    /// The answer to a request, without its content.
    pub(crate) fn report(&self, request: u64) -> Report {
        let (room, device) = match self {
            Self::Reply { room, .. } | Self::Leave { room } => (*room, 0),
            Self::Report { device, .. } => (0, *device),
            _ => (0, 0),
        };
        Report { room, device, ..Report::answer(self.answer(), request) }
    }
}

/// The room of a command, in one of the client's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: u32,
    pub(crate) number: RoomNumber,
}

/// The effect of a command on the session.
pub(crate) enum Given {
    Request(RequestNumber),
    Ping(u64),
    Subscription(SubscriptionNumber),
    Nothing,
}

type Act = Box<dyn FnOnce(&mut Session) -> Result<Given, CommandError> + Send>;

/// A command to the session.
pub(crate) trait Command {
    fn carry_out(self, session: &mut Session) -> Result<Given, CommandError>;

    /// The same command, to be carried out later.
    fn keep(self) -> Act;
}

impl<F: FnOnce(&mut Session) -> Result<Given, CommandError> + Send + 'static> Command for F {
    fn carry_out(self, session: &mut Session) -> Result<Given, CommandError> {
        self(session)
    }

    fn keep(self) -> Act {
        Box::new(self)
    }
}

/// A message to a room. Its payload is copied only if it has to wait.
pub(crate) struct Message<'a> {
    pub(crate) place: Place,
    pub(crate) index: u32,
    pub(crate) payload: &'a [u8],
    pub(crate) is_request: bool,
}

impl Command for Message<'_> {
    fn carry_out(self, session: &mut Session) -> Result<Given, CommandError> {
        let Message { place: Place { number, .. }, index, payload, is_request } = self;
        if is_request {
            session.request(number, index, payload).map(Given::Request)
        } else {
            session.send(number, index, payload).map(|()| Given::Nothing)
        }
    }

    fn keep(self) -> Act {
        let Message { place, index, payload, is_request } = self;
        let payload = payload.to_vec();
        Box::new(move |session| {
            Message { place, index, payload: &payload, is_request }.carry_out(session)
        })
    }
}

/// A command that waits for its turn.
pub(crate) struct Waiting {
    place: Option<Place>,
    asked: Option<Asked>,
    /// Where the failure of a command without an answer is reported.
    sender: Sender,
    act: Act,
}

impl Waiting {
    /// The connection has ended. Returns 1 if nobody waits for an answer.
    pub(crate) fn fail(self, state: &mut State, failure: &Failure) -> u64 {
        match self.asked {
            Some(Asked { request, what }) => {
                state.answer(what.report(request).because(failure.clone()));
                0
            }
            None => u64::from(self.sender != Sender::Nobody),
        }
    }
}

/// The sender of a command without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Nobody,
    /// It counts as a send, and its failure is not reported.
    Answer,
    Client,
    Room(u64),
    Device(u64),
}

/// A room that the session is in.
pub(crate) struct Seat {
    pub(crate) room: Room,
    pub(crate) joined: server::Joined<'static>,
    /// The request to enter it, until its copy is there; then its handle.
    pub(crate) entering: Option<u64>,
    pub(crate) handle: u64,
    /// How many events came before.
    pub(crate) events: usize,
}

pub(crate) struct State {
    pub(crate) link: Link,
    pub(crate) buffers: Buffers,
    /// `PF_EVENT_KIND_CONNECTED` was reported.
    pub(crate) is_welcomed: bool,
    pub(crate) is_closing: bool,
    pub(crate) lost_at: Option<Instant>,
    /// How the connection has ended.
    pub(crate) ended: Option<Error>,
    /// Counts the sessions of the connection.
    pub(crate) session: u32,
    pub(crate) news: VecDeque<News>,
    /// How many of these are answers to requests.
    answers: usize,
    refusals: usize,
    pub(crate) asked: NumberMap<RequestNumber, Asked>,
    pub(crate) pings: HashMap<u64, u64>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) seats: NumberMap<RoomNumber, Seat>,
    pub(crate) rooms: HashMap<u64, Arc<RoomCell>>,
    pub(crate) channels: HashMap<u64, Arc<ChannelCell>>,
    pub(crate) subscribing: HashMap<SubscriptionNumber, Asked>,
    pub(crate) subscriptions: HashMap<SubscriptionNumber, u64>,
    pub(crate) devices: HashMap<u64, Arc<DeviceCell>>,
    /// The registration that commands are for.
    pub(crate) device: u64,
    pub(crate) token_request: u64,
    pub(crate) counts: PfStatistics,
    pub(crate) unconfirmed: u64,
    pub(crate) kept: QueueLimits,
    requests: u64,
    pub(crate) is_corked: bool,
    /// Until when a thread waits for the socket.
    pub(crate) waits_until: Instant,
    /// When the socket was looked at for the events that the program takes now.
    pub(crate) looked_at: Option<Instant>,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let kept = settings.kept();
        Self {
            link: Link::Setup(Box::new(settings)),
            buffers: Buffers::default(),
            is_welcomed: false,
            is_closing: false,
            lost_at: None,
            ended: None,
            session: 0,
            news: VecDeque::new(),
            answers: 0,
            refusals: 0,
            asked: NumberMap::default(),
            pings: HashMap::new(),
            waiting: VecDeque::new(),
            seats: NumberMap::default(),
            rooms: HashMap::new(),
            channels: HashMap::new(),
            subscribing: HashMap::new(),
            subscriptions: HashMap::new(),
            devices: HashMap::new(),
            device: 0,
            token_request: 0,
            counts: PfStatistics::default(),
            unconfirmed: 0,
            kept,
            requests: 0,
            is_corked: false,
            waits_until: Instant::now(),
            looked_at: None,
        }
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// How many commands wait for an answer or for their turn.
    pub(crate) fn waits(&self) -> usize {
        self.asked.len() + self.pings.len() + self.subscribing.len() + self.waiting.len()
    }

    /// Keeps a report for `pf_client_next`.
    pub(crate) fn report(&mut self, report: Report) {
        if report.kind.is_answer() {
            self.answers += 1;
        } else if report.kind == PfEventKind::Error && report.room == 0 && report.device == 0 {
            if self.refusals >= REFUSALS_MAX {
                return;
            }
            self.refusals += 1;
        }
        self.news.push_back(News::Report(Box::new(report)));
    }

    /// The program takes a report.
    pub(crate) fn taken(&mut self, report: &Report) {
        if report.kind.is_answer() {
            self.answers -= 1;
        } else if report.kind == PfEventKind::Error && report.room == 0 && report.device == 0 {
            self.refusals -= 1;
        }
    }

    /// Reports the answer to a request.
    pub(crate) fn answer(&mut self, report: Report) {
        self.counts.answers += 1;
        self.report(report);
    }

    /// Reports a reply in `packed`.
    pub(crate) fn reply(&mut self, reply: PackedReply) {
        self.counts.answers += 1;
        self.answers += 1;
        self.news.push_back(News::Reply(reply));
    }

    /// The program takes a reply in `packed`.
    pub(crate) fn taken_reply(&mut self) {
        self.answers -= 1;
    }

    /// Drops reports that the program has not taken. Answers stay.
    pub(crate) fn drop_reports(&mut self, is_dropped: impl Fn(&Report) -> bool) {
        let refusals = &mut self.refusals;
        self.news.retain(|news| match news {
            News::Report(report) if !report.kind.is_answer() && is_dropped(report) => {
                let is_refusal = report.kind == PfEventKind::Error;
                *refusals -= usize::from(is_refusal && report.room == 0 && report.device == 0);
                false
            }
            _ => true,
        });
    }

    /// Checks that commands can be given.
    pub(crate) fn check_connected(&self) -> Outcome {
        let text = match &self.link {
            Link::Open(_) if self.is_welcomed => return Ok(()),
            Link::Setup(_) => {
                "the client is not connected: call pf_client_connect, and wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Open(_) if self.ended.is_none() => {
                "the client is still connecting: wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Open(_) | Link::Over => {
                return Err(Failure::new(PfCode::Closed, "the connection has ended"));
            }
        };
        Err(Failure::new(PfCode::Usage, text))
    }

    /// Answers that nobody has taken count, as some come before the program polls.
    fn check_waiting(&self) -> Outcome {
        if self.waits() + self.answers >= PF_WAITING_MAX {
            let text = format!("{PF_WAITING_MAX} commands wait already; call pf_client_next");
            return Err(Failure::new(PfCode::Busy, text));
        }
        Ok(())
    }

    /// Gives a command that is answered. Returns the number of the request.
    pub(crate) fn ask(
        &mut self,
        place: Option<Place>,
        what: What,
        act: impl Command,
    ) -> Outcome<u64> {
        self.check_connected()?;
        self.check_waiting()?;
        let request = self.next_request();
        self.counts.requests += 1;
        self.give(place, Some(Asked { request, what }), Sender::Nobody, act);
        Ok(request)
    }

    /// Answers a request that can't be made. Returns its number.
    pub(crate) fn refuse(&mut self, what: What, error: Error) -> Outcome<u64> {
        self.check_connected()?;
        self.check_waiting()?;
        let request = self.next_request();
        self.counts.requests += 1;
        self.refused(Some(Asked { request, what }), Sender::Nobody, error);
        Ok(request)
    }

    /// Gives a command without an answer. A failure that comes later is reported to its sender.
    pub(crate) fn tell(
        &mut self,
        place: Option<Place>,
        sender: Sender,
        act: impl Command,
    ) -> Outcome {
        self.check_connected()?;
        if let Some(error) = &self.ended {
            return Err(error.clone().into());
        }
        if !self.takes_commands() {
            self.check_waiting()?;
        }
        self.counts.sends += 1;
        self.give(place, None, sender, act);
        Ok(())
    }

    fn takes_commands(&self) -> bool {
        let is_open = matches!(&self.link, Link::Open(connection) if connection.takes_commands());
        is_open && self.waiting.is_empty()
    }

    /// Gives a command to the session, or has it wait for its turn.
    fn give(
        &mut self,
        place: Option<Place>,
        asked: Option<Asked>,
        sender: Sender,
        act: impl Command,
    ) {
        if !self.takes_commands() && self.ended.is_none() {
            self.waiting.push_back(Waiting { place, asked, sender, act: act.keep() });
            return self.flush();
        }
        self.carry_out(place, asked, sender, act);
        self.flush();
    }

    fn carry_out(
        &mut self,
        place: Option<Place>,
        asked: Option<Asked>,
        sender: Sender,
        act: impl Command,
    ) {
        if let Some(error) = self.ended.clone() {
            return self.refused(asked, sender, error);
        }
        // A room of an earlier session has a number that may be another's now.
        if place.is_some_and(|place| place.session != self.session) {
            return self.refused(asked, sender, Room::new_session());
        }
        let given = match &mut self.link {
            Link::Open(connection) => connection.session().map(|session| act.carry_out(session)),
            Link::Setup(_) | Link::Over => None,
        };
        let given = given.unwrap_or(Err(CommandError::Closed));
        match (given, asked) {
            (Ok(Given::Request(number)), Some(asked)) => {
                self.asked.insert(number, asked);
            }
            (Ok(Given::Ping(nonce)), Some(asked)) => {
                self.pings.insert(nonce, asked.request);
            }
            (Ok(Given::Subscription(number)), Some(asked)) => {
                self.subscribing.insert(number, asked);
            }
            (Ok(_), _) => {}
            (Err(error), asked) => {
                let ended = place.and_then(|place| self.left(place));
                self.refused(asked, sender, ended.unwrap_or_else(|| error.into()));
            }
        }
    }

    /// Why this client is no longer in a room.
    fn left(&self, place: Place) -> Option<Error> {
        let of = |cell: &&Arc<RoomCell>| cell.place() == place;
        self.rooms.values().find(of).and_then(|cell| cell.room().ended())
    }

    /// A command is not carried out.
    pub(crate) fn refused(&mut self, asked: Option<Asked>, sender: Sender, error: Error) {
        if let Some(Asked { request, what }) = asked {
            let answer = what.report(request).because(error);
            return self.answer(answer);
        }
        let report = Report::new(PfEventKind::Error).because(error);
        match sender {
            Sender::Nobody | Sender::Answer => {}
            Sender::Client => self.report(report),
            Sender::Room(room) if self.rooms.contains_key(&room) => {
                self.report(Report { room, ..report });
            }
            Sender::Device(device) if self.devices.contains_key(&device) => {
                self.report(Report { device, ..report });
            }
            Sender::Room(_) | Sender::Device(_) => {}
        }
    }

    /// Gives the commands that have waited, as far as the session takes them.
    pub(crate) fn go_on(&mut self) {
        while let Link::Open(connection) = &self.link
            && connection.takes_commands()
            && let Some(Waiting { place, asked, sender, act }) = self.waiting.pop_front()
        {
            self.carry_out(place, asked, sender, act);
        }
        if self.is_closing
            && self.waiting.is_empty()
            && self.ended.is_none()
            && let Link::Open(connection) = &mut self.link
        {
            self.is_closing = false;
            connection.close(&mut self.buffers);
        }
    }

    /// Sends what commands have written, unless it is held back.
    pub(crate) fn flush(&mut self) {
        if !self.is_corked
            && let Link::Open(connection) = &mut self.link
        {
            connection.flush(&mut self.buffers);
        }
    }

    /// Leaves a room after the commands that were given before.
    pub(crate) fn forsake(&mut self, place: Place) {
        if self.ended.is_some() || place.session != self.session {
            return;
        }
        self.seats.remove(&place.number);
        let act = move |session: &mut Session| {
            session.forsake(place.number);
            Ok(Given::Nothing)
        };
        self.give(Some(place), None, Sender::Nobody, act);
    }

    /// Fails the commands to rooms of earlier sessions that wait. Returns how many were sends.
    pub(crate) fn end_session(&mut self) -> u64 {
        let mut sends = 0;
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.place.is_none_or(|place| place.session == self.session) {
                self.waiting.push_back(waiting);
                continue;
            }
            let Waiting { asked, sender, .. } = waiting;
            sends += u64::from(asked.is_none() && sender != Sender::Nobody);
            if asked.is_some() {
                self.refused(asked, Sender::Nobody, Room::new_session());
            }
        }
        sends
    }

    /// Tells the node that a command has no answer.
    pub(crate) fn answer_later(&mut self, command: u64) {
        self.give(None, None, Sender::Nobody, move |session: &mut Session| {
            session.answer(command, Err("the device has not answered")).map(|()| Given::Nothing)
        });
    }

    /// Gives a command without an answer that is no send, if there is a connection.
    pub(crate) fn tell_quietly(&mut self, act: impl FnOnce(&mut Session) + Send + 'static) {
        if self.ended.is_none() && self.is_welcomed {
            self.give(None, None, Sender::Nobody, |session: &mut Session| {
                act(session);
                Ok(Given::Nothing)
            });
        }
    }
}
