//! The clients: all in one process on one core, which reads, checks and timestamps messages.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use playfield_state::{Data, PlayerId};
use playfield_wire::client::{self, ClientMessage, write_send};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use super::check::{ClientCheck, RoomCheck, Taken};
use super::measure::{Audience, Outcome, timed};
use super::room::{CountInputs, Opening, ROOM_TYPE, Steer, workload};
use super::window::{Arrivals, Failure, Window};
use super::{Options, ROLE, Side};
use crate::harness::dialogue::{Dialogue, FORMAT, Frame};
use crate::harness::fleet::{Fleet, Links, Next, Script, wrong};
use crate::harness::machine::{DRIVER_CORE, pin, raise_descriptors};
use crate::harness::process::Server;
use crate::harness::source::Source;
use crate::harness::tls::tls;
use crate::workloads::colyseus::Colyseus;

/// How many connections are in progress at once: fewer than any server's backlog.
pub(super) const CONNECTING_MAX: usize = 128;
/// How often, and at what interval, rooms are asked how many inputs they handled before missing
/// ones count as lost.
const COUNTS: u32 = 20;
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// How often a client without inputs sends a ping: well within the 5 s for which a room bears
/// silence.
const PING_EVERY: Duration = Duration::from_secs(1);
/// The first byte of a patch.
const PATCH: u8 = 0x48;

/// Starts a server and runs a case against it.
pub(super) fn run(case: &Options, side: Side) -> Result<Outcome, Failure> {
    pin(DRIVER_CORE)?;
    raise_descriptors();
    let Options { rooms, players, hz, inputs_hz, transport, bytes, .. } = case;
    let mut server = ROLE.start(&[&side, rooms, players, hz, inputs_hz, transport, bytes])?;
    let outcome = run_on(&mut server, case, side);
    // A server that ended lost all its clients, but not to overload.
    match server.ended()? {
        Some(status) => Err(Failure::Fault(format!("the server's process ended: {status}"))),
        None => outcome,
    }
}

fn run_on(server: &mut Server, case: &Options, side: Side) -> Result<Outcome, Failure> {
    let is_secure = case.transport.is_secure() && side == Side::Node;
    let tls = is_secure.then(tls).transpose()?;
    let driver = Driver::new(case, side);
    let mut fleet = Fleet::new(driver, server.address, Source::Network(100), tls)?;
    fleet.connect(0..case.clients(), CONNECTING_MAX);
    fleet.until(|driver, _| driver.seated == case.clients() || driver.window.failure.is_some());
    let overload =
        fleet.fault.take().map(|fault| Failure::Overload(format!("can't join: {fault}")));
    match fleet.script.window.failure.take().or(overload) {
        Some(failure) => Err(failure),
        None => measure(fleet, server, case),
    }
}

fn measure(
    mut fleet: Fleet<Driver<'_>>,
    server: &mut Server,
    case: &Options,
) -> Result<Outcome, Failure> {
    let side = fleet.script.side;
    // The baseline receives nothing but inputs, since it does not time out idle clients.
    if side == Side::Node || case.inputs_hz > 0 {
        fleet.script.pacer = Some(Pacer::new(case));
    }
    let timed = timed(&mut fleet, server, case)?;
    let pacer = fleet.script.pacer.take();
    let inputs_sent = pacer.filter(|pacer| pacer.inputs).map_or(0, |pacer| pacer.sent);
    let inputs_handled = match side {
        Side::Node => inputs_handled(&mut fleet, inputs_sent),
        Side::Bare => 0,
    };
    let Driver { window, lost, .. } = fleet.script;
    let outcome = timed.outcome(case, window, lost, fleet.fault);
    Ok(Outcome { inputs_sent, inputs_handled, ..outcome })
}

/// Asks the rooms how many inputs they handled, until the number equals the inputs sent or stops
/// growing.
fn inputs_handled(fleet: &mut Fleet<Driver<'_>>, sent: u64) -> u64 {
    let mut handled = 0;
    for _ in 0..COUNTS {
        if handled == sent {
            break;
        }
        let Fleet { script, links, .. } = &mut *fleet;
        for first in (0..script.clients.len()).step_by(script.case.players as usize) {
            let mut payload = Vec::new();
            CountInputs.encode(&mut payload);
            let count = script.dialogue.framed(&ClientMessage::Request(client::Request {
                room: script.clients[first].number,
                request: RequestNumber(2),
                message: MessageRef::Index(1),
                payload: &payload,
            }));
            // A lost connection is noticed where it is read.
            let _ = links.send(first, &count);
        }
        fleet.run(COUNT_EVERY);
        handled = fleet.script.rooms.iter().map(|room| room.inputs).sum();
    }
    handled
}

/// Whether a node says this to clients that it has no time for, or that have no time for it.
fn is_overload(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Timeout | ErrorCode::TooSlow | ErrorCode::Busy)
}

/// All clients, and what is known of their rooms.
struct Driver<'a> {
    case: &'a Options,
    side: Side,
    dialogue: Dialogue,
    clients: Vec<Client>,
    rooms: Vec<Room>,
    window: Window,
    /// Nothing is sent without.
    pacer: Option<Pacer>,
    /// Clients whose copies are complete.
    seated: usize,
    lost: u64,
    corrupt_one: bool,
    messages: u64,
}

struct Client {
    /// The room's number in the client's session.
    number: RoomNumber,
    check: Option<ClientCheck>,
    arrivals: Arrivals,
    /// At the baseline: how many bytes of an incomplete message have arrived.
    begun_bytes: usize,
}

impl Client {
    fn new() -> Self {
        let (number, arrivals) = (RoomNumber(0), Arrivals::default());
        Self { number, check: None, arrivals, begun_bytes: 0 }
    }
}

/// A room and the clients that wait for it to be created.
struct Room {
    check: RoomCheck,
    id: Option<String>,
    is_creating: bool,
    waiting: Vec<usize>,
    /// How many inputs the room reports as handled.
    inputs: u64,
}

impl Room {
    fn new(workload: &Colyseus) -> Self {
        let (check, waiting) = (RoomCheck::new(workload), Vec::new());
        Self { check, id: None, is_creating: false, waiting, inputs: 0 }
    }
}

impl<'a> Driver<'a> {
    fn new(case: &'a Options, side: Side) -> Self {
        let workload = workload(case.players);
        Self {
            case,
            side,
            dialogue: case.transport.dialogue(),
            clients: (0..case.clients()).map(|_| Client::new()).collect(),
            rooms: (0..case.rooms).map(|_| Room::new(&workload)).collect(),
            window: Window::default(),
            pacer: None,
            seated: 0,
            lost: 0,
            corrupt_one: case.corrupt_one,
            messages: 0,
        }
    }

    /// Has a client create its room, join it, or wait until the first one has created it.
    fn enter(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        let room = &mut self.rooms[client / self.case.players as usize];
        let request = RequestNumber(1);
        let mut options = Vec::new();
        let message = match &room.id {
            Some(id) => ClientMessage::Join(client::Join { request, room: id.as_str().into() }),
            None if room.is_creating => {
                room.waiting.push(client);
                return Ok(());
            }
            None => {
                room.is_creating = true;
                Opening { players: self.case.players }.encode(&mut options);
                ClientMessage::Create(client::Create {
                    request,
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

    fn message(&mut self, client: usize, body: &[u8], links: &mut Links) -> io::Result<()> {
        self.messages += 1;
        let of = &mut self.clients[client];
        let room = &mut self.rooms[client / self.case.players as usize];
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
                of.number = number;
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
                return self.enter(client, links);
            }
            (ServerMessage::Ping(server::Ping { nonce }), _) => {
                return links.send(client, &self.dialogue.pong(nonce)).map(drop);
            }
            // Copies are compared with the model at every message, so digests are not needed.
            (ServerMessage::Pong(_) | ServerMessage::Check(_), _) => return Ok(()),
            (ServerMessage::Reply(server::Reply { payload, .. }), _) => {
                room.inputs = u64::read(FORMAT, &payload).map_err(io::Error::other)?;
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
        match taken {
            Ok(Taken::Compared) => self.window.compared += u64::from(self.window.is_open()),
            Ok(Taken::Joining) => {}
            Err(what) => self.window.fail(Failure::Fault(what)),
        }
        let is_seated = of.check.as_ref().is_some_and(ClientCheck::is_seated);
        self.seated += usize::from(is_seated && !was_seated);
        Ok(())
    }
}

impl Audience for Driver<'_> {
    fn open(&mut self, expected: usize) {
        let arrivals = self.clients.iter_mut().map(|client| &mut client.arrivals);
        self.window.open(expected, arrivals);
    }

    fn close(&mut self, period: Duration) -> u64 {
        let arrivals = self.clients.iter().map(|client| &client.arrivals);
        self.window.close(Instant::now(), period, arrivals)
    }
}

impl Script for Driver<'_> {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        if self.side == Side::Bare {
            links.ready += 1;
            self.seated += 1;
            return Ok(());
        }
        links.send(client, &self.dialogue.opening(false)).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        if self.side == Side::Bare {
            let (of, bytes) = (&mut self.clients[client], self.case.bytes);
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
        let Some(pacer) = &mut self.pacer else { return Ok(Duration::MAX) };
        while let Some(client) = pacer.due(links.now, self.clients.len()) {
            let message = pacer.message(self.dialogue, self.clients[client].number);
            // A lost connection is noticed where it is read.
            let _ = links.send(client, &message);
        }
        Ok(pacer.gap.max(Duration::from_millis(1)))
    }

    /// The others go on.
    fn lost(&mut self, client: usize, why: io::Error, links: &mut Links) -> io::Result<Next> {
        links.ready += 1;
        self.lost += 1;
        let text = format!("client {client}: {why}");
        self.window.fail(match why.kind() {
            ErrorKind::InvalidData => Failure::Fault(text),
            _ => Failure::Overload(text),
        });
        Ok(Next::Stay)
    }

    fn progress(&self) -> u64 {
        self.messages
    }
}

/// The messages of clients on their own, spread evenly over time: inputs, or pings if there are none.
struct Pacer {
    begin: Instant,
    /// The time between two clients.
    gap: Duration,
    sent: u64,
    inputs: bool,
}

impl Pacer {
    fn new(case: &Options) -> Self {
        let inputs = case.inputs_hz > 0;
        let period = if inputs { Duration::from_secs(1) / case.inputs_hz } else { PING_EVERY };
        let gap = period / case.clients().max(1) as u32;
        Self { begin: Instant::now(), gap, sent: 0, inputs }
    }

    /// The next client that is due.
    fn due(&mut self, now: Instant, clients: usize) -> Option<usize> {
        let elapsed = now.saturating_duration_since(self.begin).as_nanos();
        if elapsed < u128::from(self.sent) * self.gap.as_nanos() {
            return None;
        }
        self.sent += 1;
        Some(((self.sent - 1) % clients as u64) as usize)
    }

    /// The message of a client whose room has this number in its session.
    fn message(&self, dialogue: Dialogue, room: RoomNumber) -> Vec<u8> {
        if !self.inputs {
            return dialogue.framed(&ClientMessage::Ping(client::Ping { nonce: self.sent }));
        }
        let (mut payload, mut body, mut out) = (Vec::new(), Vec::new(), Vec::new());
        Steer { x: (self.sent % 7) as f32, y: 0.5 }.encode(&mut payload);
        write_send(FORMAT, &mut body, room, 0, "Steer", &payload);
        dialogue.message(&mut out, &body);
        out
    }
}
