//! Strict clients: each checks that what it receives continues what it has.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_session::Received;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::history::History;
use crate::harness::dialogue::{Dialogue, FORMAT, Frame, Transport, join_or_create, opening};
use crate::harness::fleet::{Fleet, Links, Script, wrong};
use crate::harness::source::Source;

/// The most clients without a welcome yet.
const OPENING_MAX: usize = 64;

/// All clients.
pub(super) struct Clients {
    is_resumable: bool,
    all: Vec<Client>,
    pub(super) counts: Counts,
    /// The next event is read with a wrong number.
    pub(super) corrupt: bool,
}

/// The numbers of what all have received.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) events: u64,
    pub(super) patches: u64,
    joined: usize,
    settled: usize,
}

/// The time until all clients were back.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    /// Until each had its welcome.
    pub(super) welcomed: Duration,
    /// Until each had all events and all changes too.
    pub(super) settled: Duration,
}

/// The events that clients have received by the time that they are settled.
#[derive(Clone, Copy)]
pub(super) struct Missed {
    /// Events that rooms sent since the cut, by their own count, summed over clients.
    pub(super) events: u64,
    /// The smallest number of those of one client.
    pub(super) events_min: u64,
}

#[derive(Default)]
struct Client {
    token: Vec<u8>,
    received: Received,
    /// The room's number and epoch.
    room: Option<(RoomNumber, u64)>,
    history: History,
    /// The number of counted messages that it has sent.
    sent: u32,
    /// The room's hour, by the answer to the last request.
    hour: Option<u64>,
    /// Waits for that answer, and for what happened until then.
    settles: bool,
    /// Expects the welcome of a resumed session.
    resumes: bool,
}

impl Clients {
    /// Opens all sessions, and waits until each is in a room.
    pub(super) fn fleet(
        node: SocketAddr,
        sessions: usize,
        is_resumable: bool,
    ) -> io::Result<Fleet<Self>> {
        let all = (0..sessions).map(|_| Client::default()).collect();
        let clients = Self { is_resumable, all, counts: Counts::default(), corrupt: false };
        let mut fleet = Fleet::new(clients, node, Source::Network(90), None)?;
        fleet.connect(0..sessions, OPENING_MAX);
        fleet.until(|clients, _| clients.counts.joined == sessions);
        Ok(fleet)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Messages that settled clients missed since the last cut.
    pub(super) fn missed(&self) -> Missed {
        let events = self
            .all
            .iter()
            .map(|client| client.hour.map_or(0, |hour| client.history.events_since_cut(hour)));
        Missed { events: events.clone().sum(), events_min: events.min().unwrap_or(0) }
    }
}

/// Resets all connections.
pub(super) fn cut(fleet: &mut Fleet<Clients>) {
    for (number, client) in fleet.script.all.iter_mut().enumerate() {
        fleet.links.close(number);
        client.history.cut();
    }
}

/// Connects again, and waits until each session is resumed and settled.
pub(super) fn come_back(fleet: &mut Fleet<Clients>) -> Returned {
    fleet.script.counts.settled = 0;
    let (began, all) = (Instant::now(), fleet.script.len());
    fleet.connect(0..all, OPENING_MAX);
    let welcomed = began.elapsed();
    fleet.until(|clients, _| clients.counts.settled == all);
    Returned { welcomed, settled: began.elapsed() }
}

/// Asks each room which hour it is, and waits until each client has every event and every change
/// up to then.
pub(super) fn settle(fleet: &mut Fleet<Clients>) -> io::Result<()> {
    let Fleet { script, links, .. } = fleet;
    script.counts.settled = 0;
    for (number, client) in script.all.iter_mut().enumerate() {
        client.ask(number, links)?;
    }
    let all = script.len();
    fleet.until(|clients, _| clients.counts.settled == all);
    Ok(())
}

/// Acknowledges everything received, so that the node can drop it.
pub(super) fn acknowledge(fleet: &mut Fleet<Clients>) -> io::Result<()> {
    let Fleet { script, links, .. } = fleet;
    for (number, client) in script.all.iter_mut().enumerate() {
        client.acknowledge(number, links)?;
    }
    fleet.run(Duration::from_millis(200));
    Ok(())
}

impl Script for Clients {
    fn opened(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        let opening = self.all[number].opening(self.is_resumable);
        links.send(number, &opening).map(drop)
    }

    fn receive(&mut self, number: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let Self { all, counts, corrupt, .. } = self;
        let client = &mut all[number];
        let handled = TCP.each(input, |frame| match frame {
            Frame::Message(body) => client.message(number, body, counts, corrupt, links),
            Frame::Upgraded | Frame::Ping(_) => Ok(()),
        })?;
        if client.settles && client.hour.is_some_and(|hour| client.history.reaches(hour)) {
            client.settles = false;
            counts.settled += 1;
        }
        if client.received.is_due() {
            client.acknowledge(number, links)?;
        }
        Ok(handled)
    }

    fn progress(&self) -> u64 {
        let Counts { events, patches, joined, settled } = self.counts;
        events + patches + (joined + settled) as u64
    }
}

const TCP: Dialogue = Dialogue::new(Transport::Tcp);

impl Client {
    /// The hello, and in a new session the request for a room.
    fn opening(&mut self, is_resumable: bool) -> Vec<u8> {
        let rooms = self.room.map(|(room, epoch)| ResumeRoom {
            room,
            epoch,
            version: self.history.version,
        });
        let resume = (!self.token.is_empty()).then(|| Resume {
            token: self.token.clone().into(),
            received: self.received.count(),
            rooms: rooms.into_iter().collect(),
        });
        self.resumes = resume.is_some();
        let mut out = opening(&Hello { resumable: is_resumable, resume, ..Hello::new(FORMAT) });
        if !self.resumes {
            self.sent += 1;
            TCP.say(&mut out, &join_or_create("clock"));
        }
        out
    }

    /// Asks the room which hour it is.
    fn ask(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        let Some((room, _)) = self.room.filter(|_| links.is_open(number)) else { return Ok(()) };
        self.sent += 1;
        (self.settles, self.hour) = (true, None);
        let (request, message) = (RequestNumber(self.sent), MessageRef::Index(0));
        let now = client::Request { room, request, message, payload: b"\0" };
        links.send(number, &TCP.framed(&ClientMessage::Request(now))).map(drop)
    }

    fn acknowledge(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        if self.token.is_empty() || !links.is_open(number) {
            return Ok(());
        }
        let ack = client::Ack { received: self.received.acknowledge() };
        links.send(number, &TCP.framed(&ClientMessage::Ack(ack))).map(drop)
    }

    fn message(
        &mut self,
        number: usize,
        body: &[u8],
        counts: &mut Counts,
        corrupt: &mut bool,
        links: &mut Links,
    ) -> io::Result<()> {
        let message = ServerMessage::decode(FORMAT, body).map_err(io::Error::other)?;
        if message.is_counted() {
            self.received.handled(body.len());
        }
        match message {
            ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) => {
                let is_whole = Resumed { lost: Vec::new(), received: self.sent.into() };
                if self.resumes && resumed.as_ref() != Some(&is_whole) {
                    return Err(wrong(&format!("not resumed as it was: {resumed:?}")));
                }
                links.ready += 1;
                self.token = resume.into_owned();
                if std::mem::take(&mut self.resumes) {
                    self.ask(number, links)?;
                }
            }
            ServerMessage::Joined(server::Joined { room, epoch, .. }) => {
                counts.joined += 1;
                self.room = Some((room, epoch));
            }
            ServerMessage::Snapshot(server::Snapshot { version, body, .. }) => {
                self.history.snapshot(version, &body)?;
            }
            ServerMessage::Patch(server::Patch { base, version, body, .. }) => {
                self.history.patch(base, version, &body)?;
                counts.patches += 1;
            }
            ServerMessage::Check(server::Check { version, digest, .. }) => {
                self.history.check(version, digest)?;
            }
            ServerMessage::Event(server::Event { sequence, payload, .. }) => {
                let sequence = sequence + u64::from(std::mem::take(corrupt));
                self.history.event(sequence, &payload)?;
                counts.events += 1;
            }
            ServerMessage::Reply(server::Reply { request, payload }) if request.0 == self.sent => {
                self.hour = Some(Reader::new(&payload).varint().map_err(io::Error::other)?);
            }
            ServerMessage::Error(server::Error { code, text, .. })
            | ServerMessage::Goodbye(server::Goodbye { code, text }) => {
                return Err(wrong(&format!("{code}: {text}")));
            }
            _ => {}
        }
        Ok(())
    }
}
