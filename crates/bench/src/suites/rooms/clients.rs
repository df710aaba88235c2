//! The clients: they read, check and timestamp messages.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use playfield_state::{Data, PlayerId};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use super::asking::Asking;
use super::check::{ClientCheck, RoomCheck, Taken};
use super::measure::Audience;
use super::pacer::Pacer;
use super::room::{CountInputs, ROOM_TYPE, workload};
use super::window::{Arrivals, Failure, Window};
use super::{Options, Setup, Side};
use crate::harness::dialogue::{Dialogue, FORMAT, Frame};
use crate::harness::fleet::{Links, Next, Script, wrong};
use crate::workloads::colyseus::Colyseus;

/// The number of each client's first request, which is for a room.
const ENTER: RequestNumber = RequestNumber(1);
/// The number of the request for what a room has counted.
const COUNT: RequestNumber = RequestNumber(2);
/// The number of a client's last request.
const LEAVE: RequestNumber = RequestNumber(3);
/// The first byte of a patch.
const PATCH: u8 = 0x48;

/// All clients, and what is known of their rooms.
pub(in crate::suites) struct Clients {
    pub(super) setup: Setup,
    pub(super) side: Side,
    dialogue: Dialogue,
    pub(in crate::suites) all: Vec<Client>,
    rooms: Vec<Room>,
    pub(in crate::suites) window: Window,
    /// Nothing is sent without.
    pub(in crate::suites) pacers: Vec<Pacer>,
    pub(in crate::suites) asking: Asking,
    /// Clients whose copies are complete.
    pub(in crate::suites) seated: usize,
    pub(in crate::suites) lost: u64,
    corrupt_one: bool,
    messages: u64,
}

pub(in crate::suites) struct Client {
    /// The room's number in the client's session.
    pub(super) number: RoomNumber,
    check: Option<ClientCheck>,
    pub(in crate::suites) arrivals: Arrivals,
    /// When it sent the ping that is not answered.
    pub(super) pinged: Option<Instant>,
    is_welcome: bool,
    pub(super) is_in_room: bool,
    has_left: bool,
    /// At the baseline: how many bytes of an incomplete message have arrived.
    begun_bytes: usize,
}

impl Client {
    fn new() -> Self {
        Self {
            number: RoomNumber(0),
            check: None,
            arrivals: Arrivals::default(),
            pinged: None,
            is_welcome: false,
            is_in_room: false,
            has_left: false,
            begun_bytes: 0,
        }
    }
}

/// A room and the clients that wait for it to be created.
struct Room {
    check: RoomCheck,
    id: Option<String>,
    is_creating: bool,
    waiting: Vec<usize>,
    /// The number of inputs that the room reports as handled.
    inputs: u64,
}

impl Room {
    fn new(workload: &Colyseus) -> Self {
        let (check, waiting) = (RoomCheck::new(workload), Vec::new());
        Self { check, id: None, is_creating: false, waiting, inputs: 0 }
    }
}

impl Clients {
    pub(super) fn new(setup: Setup, side: Side) -> Self {
        let (case, workload) = (&setup.case, workload(setup.opening.seats));
        Self {
            side,
            dialogue: case.transport.dialogue(),
            all: (0..case.clients()).map(|_| Client::new()).collect(),
            rooms: (0..case.rooms).map(|_| Room::new(&workload)).collect(),
            window: Window::default(),
            pacers: Vec::new(),
            asking: Asking::new(setup.rooms_at_once),
            seated: 0,
            lost: 0,
            corrupt_one: case.corrupt_one,
            messages: 0,
            setup,
        }
    }

    pub(in crate::suites) fn case(&self) -> &Options {
        &self.setup.case
    }

    /// The clients of a room.
    pub(in crate::suites) fn players(&self, room: usize) -> Range<usize> {
        let players = self.setup.case.players as usize;
        room * players..(room + 1) * players
    }

    /// Returns the number of rooms at the node.
    pub(in crate::suites) fn rooms_made(&self) -> usize {
        self.rooms.iter().filter(|room| room.id.is_some()).count()
    }

    /// Begins to record, in intervals too.
    pub(in crate::suites) fn begin_record(&mut self, seconds: u32) {
        let expected = self.all.len() * (self.setup.case.hz * (seconds + 1)) as usize;
        self.window.open(expected, self.all.iter_mut().map(|client| &mut client.arrivals));
    }

    /// Ends the record, and returns the number of messages of the client that received the fewest.
    pub(in crate::suites) fn end_record(&mut self) -> u64 {
        let (now, period) = (Instant::now(), Duration::from_secs(1) / self.setup.case.hz);
        let clients = || self.all.iter().filter(|client| !client.has_left);
        let waiting = clients().filter(|client| !client.arrivals.is_uneven);
        for pinged in waiting.filter_map(|client| client.pinged) {
            self.window.waited(now.saturating_duration_since(pinged));
        }
        self.window.close(now, period, clients().map(|client| &client.arrivals))
    }

    /// Has the players of a room leave it.
    pub(in crate::suites) fn leave(&mut self, room: usize, links: &mut Links) {
        for client in self.players(room) {
            let of = &mut self.all[client];
            (of.is_in_room, of.has_left) = (false, true);
            let leave = client::Leave { request: LEAVE, room: of.number };
            // A lost connection is noticed where it is read.
            let _ = links.send(client, &self.dialogue.framed(&ClientMessage::Leave(leave)));
        }
    }

    /// Asks each room how many inputs it handled.
    pub(super) fn ask_for_counts(&self, links: &mut Links) {
        let mut payload = Vec::new();
        CountInputs.encode(&mut payload);
        for first in (0..self.all.len()).step_by(self.setup.case.players as usize) {
            let count = self.dialogue.framed(&ClientMessage::Request(client::Request {
                room: self.all[first].number,
                request: COUNT,
                message: MessageRef::Index(1),
                payload: &payload,
            }));
            let _ = links.send(first, &count);
        }
    }

    /// Returns the number of inputs that all rooms have reported as handled.
    pub(super) fn inputs_reported(&self) -> u64 {
        self.rooms.iter().map(|room| room.inputs).sum()
    }

    fn room_of(&self, client: usize) -> usize {
        client / self.setup.case.players as usize
    }

    /// Has a client create its room, join it, or wait until the first one has created it.
    fn enter(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        let at = self.room_of(client);
        let room = &mut self.rooms[at];
        let mut options = Vec::new();
        let message = match &room.id {
            Some(id) => {
                ClientMessage::Join(client::Join { request: ENTER, room: id.as_str().into() })
            }
            None if room.is_creating => {
                room.waiting.push(client);
                return Ok(());
            }
            None => {
                room.is_creating = true;
                self.setup.opening.encode(&mut options);
                ClientMessage::Create(client::Create {
                    request: ENTER,
                    room_type: ROOM_TYPE.into(),
                    private: false,
                    code: false,
                    key: None,
                    options: &options,
                })
            }
        };
        links.send(client, &self.dialogue.framed(&message)).map(drop)
    }

    /// Asks for what is due, for the first time or again.
    fn ask(&mut self, links: &mut Links) -> io::Result<()> {
        while let Some(room) = self.asking.next_room(links.now, self.rooms.len()) {
            for client in self.players(room) {
                if self.all[client].is_welcome {
                    self.enter(client, links)?;
                }
            }
        }
        while let Some(client) = self.asking.next_again(links.now) {
            self.enter(client, links)?;
        }
        Ok(())
    }

    /// The node is too busy for a client that asked to enter a room.
    fn refused(&mut self, client: usize, error: &server::Error<'_>, now: Instant) {
        let at = self.room_of(client);
        let room = &mut self.rooms[at];
        let Some(after) = error.retry_after() else {
            let text =
                format!("the refusal of client {client} has no time for a retry: {}", error.text);
            return self.window.fail(Failure::Fault(text));
        };
        let is_for_room = room.id.is_none();
        room.is_creating = false;
        self.asking.refused(client, is_for_room, now + after);
    }

    fn message(&mut self, client: usize, body: &[u8], links: &mut Links) -> io::Result<()> {
        self.messages += 1;
        let at = self.room_of(client);
        let (of, room) = (&mut self.all[client], &mut self.rooms[at]);
        if of.has_left {
            return Ok(());
        }
        let is_patch = body.first() == Some(&PATCH);
        if is_patch {
            self.window.arrived(1, body.len(), &mut of.arrivals, links.now);
        }
        let damaged;
        let body = if is_patch && self.window.is_open() && std::mem::take(&mut self.corrupt_one) {
            let mut bytes = body.to_vec();
            bytes[body.len() / 2] ^= 1;
            damaged = bytes;
            &damaged
        } else {
            body
        };
        let message = match ServerMessage::decode(FORMAT, body) {
            Ok(message) => message,
            Err(error) => {
                self.window.fail(Failure::Fault(error.to_string()));
                return Ok(());
            }
        };
        let was_seated = of.check.as_ref().is_some_and(ClientCheck::is_seated);
        let taken = match (message, &mut of.check) {
            (
                ServerMessage::Patch(server::Patch { room: number, base, version, body }),
                Some(check),
            ) if number == of.number => check.patch(&mut room.check, base, version, &body),
            (
                ServerMessage::Snapshot(server::Snapshot { room: number, version, body, .. }),
                Some(check),
            ) if number == of.number => check.snapshot(&mut room.check, version, &body),
            (ServerMessage::Joined(server::Joined { room: number, id, player, .. }), None) => {
                (of.number, of.is_in_room) = (number, true);
                of.check = Some(ClientCheck::new(PlayerId(player)));
                if room.id.is_none() {
                    room.id = Some(id.into_owned());
                    let waiting = std::mem::take(&mut room.waiting);
                    return waiting.into_iter().try_for_each(|other| self.enter(other, links));
                }
                return Ok(());
            }
            (ServerMessage::Welcome(_), None) => {
                links.ready += 1;
                of.is_welcome = true;
                return if at < self.asking.asked { self.enter(client, links) } else { Ok(()) };
            }
            (ServerMessage::Ping(server::Ping { nonce }), _) => {
                return links.send(client, &self.dialogue.pong(nonce)).map(drop);
            }
            (ServerMessage::Pong(_), _) => {
                if let Some(pinged) = of.pinged.take()
                    && !of.arrivals.is_uneven
                {
                    self.window.waited(links.now.saturating_duration_since(pinged));
                }
                return Ok(());
            }
            // Copies are compared with the model at every message, so digests are not needed.
            (ServerMessage::Check(_), _) => return Ok(()),
            (ServerMessage::Reply(server::Reply { payload, .. }), _) => {
                room.inputs = u64::read(FORMAT, &payload).map_err(io::Error::other)?;
                return Ok(());
            }
            (ServerMessage::Error(error), None)
                if error.request == Some(ENTER)
                    && error.code == ErrorCode::Busy
                    && self.setup.is_limited =>
            {
                self.refused(client, &error, links.now);
                return Ok(());
            }
            (
                ServerMessage::Error(server::Error { code, text, .. })
                | ServerMessage::Goodbye(server::Goodbye { code, text, .. }),
                _,
            ) if is_overload(code) => {
                self.window.fail(Failure::Overload(format!("client {client}: {code}: {text}")));
                return Ok(());
            }
            (other, None) => return Err(wrong(&format!("unexpected message {other:?}"))),
            (other, Some(_)) => Err(format!("unexpected message {other:?}")),
        };
        let is_counted = is_patch && self.window.is_open();
        match taken {
            Ok(Taken::Compared) => self.window.compared += u64::from(is_counted),
            Ok(Taken::Joining) => self.window.early += u64::from(is_counted),
            Err(what) => self.window.fail(Failure::Fault(what)),
        }
        let is_seated = of.check.as_ref().is_some_and(ClientCheck::is_seated);
        self.seated += usize::from(is_seated && !was_seated);
        Ok(())
    }
}

/// Returns whether a node sends this code because it, or the client, is too slow.
fn is_overload(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Timeout | ErrorCode::TooSlow | ErrorCode::Busy)
}

impl Audience for Clients {
    fn open(&mut self, case: &Options) {
        self.begin_record(case.seconds);
    }

    fn close(&mut self, _: &Options) -> u64 {
        self.end_record()
    }
}

impl Script for Clients {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        if self.side == Side::Bare {
            links.ready += 1;
            self.seated += 1;
            self.all[client].is_in_room = true;
            return Ok(());
        }
        links.send(client, &self.dialogue.opening(false)).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        if self.side == Side::Bare {
            let (of, bytes) = (&mut self.all[client], self.setup.case.bytes);
            let begun = of.begun_bytes + input.len();
            of.begun_bytes = begun % bytes;
            let messages = (begun / bytes) as u64;
            self.window.arrived(messages, input.len(), &mut of.arrivals, links.now);
            return Ok(input.len());
        }
        let dialogue = self.dialogue;
        dialogue.each(input, |frame| match frame {
            Frame::Message(body) => self.message(client, body, links),
            other => links.send(client, &dialogue.reply(&other, false)).map(drop),
        })
    }

    fn due(&mut self, links: &mut Links) -> io::Result<Duration> {
        self.ask(links)?;
        let Self { pacers, all, dialogue, asking, .. } = self;
        let waits = pacers.iter_mut().map(|pacer| pacer.send(all, *dialogue, links));
        let wait = waits.min().unwrap_or(Duration::MAX);
        Ok(if asking.goes_on() { wait.min(Duration::from_millis(1)) } else { wait })
    }

    /// The others go on.
    fn lost(&mut self, client: usize, why: io::Error, links: &mut Links) -> io::Result<Next> {
        links.ready += 1;
        self.lost += 1;
        self.window.fail(Failure::of_lost(client, &why));
        Ok(Next::Stay)
    }

    fn progress(&self) -> u64 {
        self.messages
    }
}
