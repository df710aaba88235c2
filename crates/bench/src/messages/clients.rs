//! The clients, and what they and the server say to each other.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::{Case, Options, Side};
use crate::connections::dialogue::{Dialogue, Frame, wrong};
use crate::crowd::{Crowd, Listens};

const FORMAT: Format = Format::Packed;
/// How many bytes of a message are in its answer.
pub(super) const ECHOED: usize = 8;
/// The number of each client's room.
const ROOM: RoomNumber = RoomNumber(1);
/// How many connections are opened at once.
const OPENING_MAX: usize = 64;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

impl Options {
    pub(super) fn dialogue(&self) -> Dialogue {
        Dialogue::new(self.transport)
    }
}

/// The payload of a message of a window: a length, and as many bytes.
fn payload(bytes: usize, at: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut length = bytes;
    while length > 127 {
        payload.push(length as u8 | 128);
        length >>= 7;
    }
    payload.push(length as u8);
    payload.extend((0..bytes).map(|byte| (byte * 7 + at * 31) as u8));
    payload
}

/// The messages of a window.
pub(super) fn requests(dialogue: Dialogue, case: Case) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..case.window {
        dialogue.say(
            &mut out,
            &ClientMessage::Request(client::Request {
                room: ROOM,
                request: request(at),
                message: MessageRef::Index(0),
                payload: &payload(case.bytes, at),
            }),
        );
    }
    out
}

/// The bodies of the answers to a window.
fn bodies(case: Case) -> Vec<Vec<u8>> {
    let answer = |at| {
        let payload = payload(case.bytes, at);
        let echoed = &payload[payload.len() - case.bytes..][..ECHOED];
        let payload = [&[ECHOED as u8], echoed].concat();
        let mut body = Vec::new();
        server::Reply { request: request(at), payload: (&payload).into() }
            .encode(FORMAT, &mut body);
        body
    };
    (0..case.window).map(answer).collect()
}

/// The answers to a window, as a server frames them.
pub(super) fn answers(dialogue: Dialogue, case: Case) -> Vec<u8> {
    let mut out = Vec::new();
    for body in bodies(case) {
        dialogue.answer(&mut out, &body);
    }
    out
}

fn request(at: usize) -> RequestNumber {
    RequestNumber(1 + at as u32)
}

/// All clients.
pub(super) struct Clients {
    crowd: Crowd,
    members: Members,
    count: usize,
    opening: Rc<[u8]>,
    pub(super) fault: Option<String>,
}

/// Everything but the sockets.
struct Members {
    side: Side,
    hello: Rc<[u8]>,
    join: Rc<[u8]>,
    dialogue: Dialogue,
    window: Rc<[u8]>,
    bodies: Vec<Vec<u8>>,
    /// How many of its window are answered, by client.
    answered_by: Vec<u8>,
    ready: usize,
    answered: u64,
    /// How many clients wait for answers.
    waiting: usize,
    is_over: bool,
    corrupt: bool,
}

impl Clients {
    pub(super) fn new(
        options: &Options,
        case: Case,
        server: SocketAddr,
        side: Side,
    ) -> io::Result<Self> {
        let dialogue = options.dialogue();
        let framed = |message: &ClientMessage<'_>| {
            let mut out = Vec::new();
            dialogue.say(&mut out, message);
            Rc::from(out)
        };
        let hello = Hello { resumable: false, ..Hello::new(FORMAT) };
        let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "desk".into(),
            key: None,
            options: &[],
        });
        let opening = match side {
            Side::Bare => Vec::new(),
            Side::Node => dialogue.opening(false),
        };
        let members = Members {
            side,
            hello: framed(&ClientMessage::Hello(hello)),
            join: framed(&join),
            dialogue,
            window: requests(dialogue, case).into(),
            bodies: bodies(case),
            answered_by: vec![0; options.count],
            ready: 0,
            answered: 0,
            waiting: 0,
            is_over: false,
            corrupt: options.corrupt_one && side == Side::Node,
        };
        let network = if side == Side::Bare { 50 } else { 60 };
        let crowd = Crowd::new(server, dialogue, network)?;
        Ok(Self { crowd, members, count: options.count, opening: opening.into(), fault: None })
    }

    pub(super) fn connect(&mut self) -> io::Result<()> {
        for client in 0..self.count {
            self.crowd.open(client, &self.opening)?;
            if self.members.side == Side::Bare {
                self.members.ready += 1;
            }
            self.until(|members| members.ready + OPENING_MAX > client)?;
        }
        let count = self.count;
        self.until(|members| members.ready == count)
    }

    /// Sends the first window of every client.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        for client in 0..self.count {
            self.crowd.send(client, &self.members.window)?;
            self.members.waiting += 1;
        }
        Ok(())
    }

    pub(super) fn answered(&self) -> u64 {
        self.members.answered
    }

    pub(super) fn until_answered(&mut self, count: u64) -> io::Result<()> {
        self.until(|members| members.answered >= count)
    }

    /// Goes on for this long.
    pub(super) fn run(&mut self, time: Duration) -> io::Result<()> {
        let began = Instant::now();
        self.until(|_| began.elapsed() >= time)
    }

    /// Waits for the answers that are missing.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.members.is_over = true;
        self.until(|members| members.waiting == 0)
    }

    /// Lets things happen until this is so, or nothing comes any more.
    fn until(&mut self, is_so: impl Fn(&Members) -> bool) -> io::Result<()> {
        let mut ends = Instant::now() + PATIENCE;
        while self.fault.is_none() && !is_so(&self.members) {
            let before = (self.members.answered, self.members.ready);
            if let Err(error) = self.crowd.turn(Duration::from_millis(100), &mut self.members) {
                self.fault = Some(error.to_string());
            }
            if before != (self.members.answered, self.members.ready) {
                ends = Instant::now() + PATIENCE;
            } else if Instant::now() > ends {
                self.fault = Some("nothing comes any more".to_owned());
            }
        }
        Ok(())
    }
}

impl Listens for Members {
    fn hear(&mut self, client: usize, heard: Frame<'_>) -> io::Result<Option<Rc<[u8]>>> {
        let Frame::Message(body) = heard else { return Ok(Some(Rc::clone(&self.hello))) };
        let at = usize::from(self.answered_by[client]);
        if body == self.bodies[at] && !self.corrupt {
            self.answered += 1;
            self.answered_by[client] += 1;
            if at + 1 < self.bodies.len() {
                return Ok(None);
            }
            self.answered_by[client] = 0;
            if self.is_over {
                self.waiting -= 1;
                return Ok(None);
            }
            return Ok(Some(Rc::clone(&self.window)));
        }
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(_) => Ok(Some(Rc::clone(&self.join))),
            ServerMessage::Joined(server::Joined { room: ROOM, .. }) => Ok(None),
            ServerMessage::Snapshot(_) => {
                self.ready += 1;
                Ok(None)
            }
            ServerMessage::Ack(_) | ServerMessage::Check(_) => Ok(None),
            ServerMessage::Ping(server::Ping { nonce }) => {
                let mut out = Vec::new();
                self.dialogue.pong(&mut out, nonce);
                Ok(Some(out.into()))
            }
            other => Err(wrong(&format!("not expected now: {other:?}"))),
        }
    }
}
