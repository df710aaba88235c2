//! The state of a client: its nodes, its handles, what it asked, and what the program has not taken
//! yet. It is locked by whoever uses it, and never while somebody waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_client::poll::{Buffers, QueueLimits, Room};
use playfield_client::session::{CommandError, Session, SubscriptionNumber};
use playfield_client::{Error, Position, RequestNumber, RoomNumber};
use playfield_wire::server;

use crate::channel::ChannelCell;
use crate::client::PfStatistics;
use crate::device::DeviceCell;
use crate::event::{PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode};
use crate::joins::{Join, Step, Ways};
use crate::node::{Link, Node};
use crate::room::RoomCell;
use crate::settings::Settings;

/// The most commands of a client that may wait for an answer, or for their turn.
pub const PF_WAITING_MAX: usize = 65_536;

/// The most reports about the connection itself that wait. Past it the newest are dropped.
const REFUSALS_MAX: usize = 64;

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
    Enter(Box<Join>),
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
    /// The request, if it is a join.
    pub(crate) fn into_join(self) -> Result<Asked, Self> {
        match self.asked {
            Some(asked @ Asked { what: What::Enter(_), .. }) => Ok(asked),
            asked => Err(Self { asked, ..self }),
        }
    }

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
    /// The node that the program has named; while another is served, that.
    pub(crate) node: Node,
    /// The nodes that joins were redirected to; while one is served, the first is in its place.
    pub(crate) others: Vec<Node>,
    /// The time for which a connection to another node outlasts the last room there.
    pub(crate) stays: Duration,
    pub(crate) buffers: Buffers,
    /// How the connection has ended.
    pub(crate) ended: Option<Error>,
    /// The program has closed the client.
    pub(crate) is_leaving: bool,
    /// Sends to other nodes that they had not confirmed.
    pub(crate) unconfirmed: u64,
    /// The report of the end, once the connections to other nodes are over.
    pub(crate) last: Option<Report>,
    /// Counts the sessions of all nodes.
    pub(crate) sessions: u32,
    /// Once the client connects.
    pub(crate) ways: Option<Ways>,
    /// The next steps of joins.
    pub(crate) steps: VecDeque<Step>,
    pub(crate) news: VecDeque<News>,
    /// How many of these are answers to requests.
    answers: usize,
    refusals: usize,
    pub(crate) rooms: HashMap<u64, Arc<RoomCell>>,
    pub(crate) channels: HashMap<u64, Arc<ChannelCell>>,
    pub(crate) subscribing: HashMap<SubscriptionNumber, Asked>,
    pub(crate) subscriptions: HashMap<SubscriptionNumber, u64>,
    pub(crate) devices: HashMap<u64, Arc<DeviceCell>>,
    /// The registration that commands are for.
    pub(crate) device: u64,
    pub(crate) counts: PfStatistics,
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
        let (kept, stays) = (settings.kept(), settings.stays());
        Self {
            node: Node::new(Link::Setup(Box::new(settings)), 0, None),
            others: Vec::new(),
            stays,
            buffers: Buffers::default(),
            ended: None,
            is_leaving: false,
            unconfirmed: 0,
            last: None,
            sessions: 0,
            ways: None,
            steps: VecDeque::new(),
            news: VecDeque::new(),
            answers: 0,
            refusals: 0,
            rooms: HashMap::new(),
            channels: HashMap::new(),
            subscribing: HashMap::new(),
            subscriptions: HashMap::new(),
            devices: HashMap::new(),
            device: 0,
            counts: PfStatistics::default(),
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
        let others = self.others.iter().map(Node::waits).sum::<usize>();
        self.node.waits() + others + self.subscribing.len()
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
        let text = match &self.node.link {
            Link::Open(_) if self.node.is_welcomed => return Ok(()),
            Link::Setup(_) => {
                "the client is not connected: call pf_client_connect, and wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Open(_) if self.ended.is_none() => {
                "the client is still connecting: wait for PF_EVENT_KIND_CONNECTED"
            }
            Link::Open(_) | Link::Over => {
                return Err(Failure::closed());
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
        let asked = Some(Asked { request, what });
        match place.filter(|place| place.session != self.node.session) {
            None => self.give(place, asked, Sender::Nobody, act),
            Some(place) => self.give_elsewhere(place, asked, Sender::Nobody, act),
        }
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
        let elsewhere = place.filter(|place| place.session != self.node.session);
        let takes_commands = match elsewhere {
            None => self.takes_commands(),
            Some(place) => {
                self.in_session(place.session, |state| state.takes_commands()) == Some(true)
            }
        };
        if !takes_commands {
            self.check_waiting()?;
        }
        self.counts.sends += 1;
        match elsewhere {
            None => self.give(place, None, sender, act),
            Some(place) => self.give_elsewhere(place, None, sender, act),
        }
        Ok(())
    }

    fn takes_commands(&self) -> bool {
        self.node.takes_commands() && self.node.waiting.is_empty()
    }

    /// Gives a command to the session, or has it wait for its turn.
    pub(crate) fn give(
        &mut self,
        place: Option<Place>,
        asked: Option<Asked>,
        sender: Sender,
        act: impl Command,
    ) {
        if !self.takes_commands() && self.ended.is_none() {
            self.node.waiting.push_back(Waiting { place, asked, sender, act: act.keep() });
            return self.flush();
        }
        self.carry_out(place, asked, sender, act);
        self.flush();
    }

    /// The same, in a session that is not the present one of the first node.
    #[cold]
    fn give_elsewhere(
        &mut self,
        place: Place,
        asked: Option<Asked>,
        sender: Sender,
        act: impl Command,
    ) {
        match self.other(place.session) {
            Some(other) => self.at(other, |state| state.give(Some(place), asked, sender, act)),
            // A room of an earlier session has a number that may be another's now.
            None => {
                let ended = self.ended.clone().or_else(|| self.left(place));
                self.refused(asked, sender, ended.unwrap_or_else(Room::new_session));
            }
        }
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
        let given = match &mut self.node.link {
            Link::Open(connection) => connection.session().map(|session| act.carry_out(session)),
            Link::Setup(_) | Link::Over => None,
        };
        let given = given.unwrap_or(Err(CommandError::Closed));
        match (given, asked) {
            (Ok(Given::Request(number)), Some(asked)) => {
                self.node.asked.insert(number, asked);
            }
            (Ok(Given::Ping(nonce)), Some(asked)) => {
                self.node.pings.insert(nonce, asked.request);
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
        while self.node.takes_commands()
            && let Some(Waiting { place, asked, sender, act }) = self.node.waiting.pop_front()
        {
            self.carry_out(place, asked, sender, act);
        }
        if self.node.is_closing
            && self.node.waiting.is_empty()
            && let Link::Open(connection) = &mut self.node.link
        {
            self.node.is_closing = false;
            connection.close(&mut self.buffers);
        }
    }

    /// Sends what commands have written, unless it is held back.
    pub(crate) fn flush(&mut self) {
        if !self.is_corked
            && let Link::Open(connection) = &mut self.node.link
        {
            connection.flush(&mut self.buffers);
        }
    }

    /// Sends the same to all nodes.
    pub(crate) fn flush_all(&mut self) {
        self.flush();
        for other in 0..self.others.len() {
            self.at(other, Self::flush);
        }
    }

    /// Leaves a room of the present session after the commands that were given before.
    pub(crate) fn forsake(&mut self, place: Place) {
        if self.ended.is_some() || place.session != self.node.session {
            return;
        }
        self.node.seats.remove(&place.number);
        let act = move |session: &mut Session| {
            session.forsake(place.number);
            Ok(Given::Nothing)
        };
        self.give(Some(place), None, Sender::Nobody, act);
    }

    /// Fails the commands to rooms of earlier sessions that wait. Returns how many were sends.
    pub(crate) fn end_session(&mut self) -> u64 {
        let mut sends = 0;
        for waiting in std::mem::take(&mut self.node.waiting) {
            if waiting.place.is_none_or(|place| place.session == self.node.session) {
                self.node.waiting.push_back(waiting);
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
        if self.ended.is_none() && self.node.is_welcomed {
            self.give(None, None, Sender::Nobody, |session: &mut Session| {
                act(session);
                Ok(Given::Nothing)
            });
        }
    }
}
