//! One attacker: a connection that sends as much as its socket accepts, and reads what arrives. It
//! connects again when the node closes the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mio::net::TcpStream;
use socket2::{Domain, Socket, Type};

use super::answers::{Answers, kind};
use super::attack::Attack;
use super::flood::Done;
use super::returning::{Next, Session};
use super::script::{self, Script};
use super::server::Places;

/// The first byte of a record of a TLS handshake (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;

/// The beginning of an answer of the console.
const PAGE: &[u8] = b"HTTP/1.1 200 ";

/// What all attackers do.
pub(super) struct Plan {
    attack: Attack,
    node: SocketAddr,
    script: Script,
    fat: Vec<String>,
}

/// One of them.
pub(super) struct Attacker {
    /// `None` if it could not connect again.
    pub(super) stream: Option<TcpStream>,
    /// The connection before, if it stays open until the node closes it.
    replaced: Option<TcpStream>,
    /// How often it has connected.
    connections: usize,
    /// What is sent before the batches; answers add to it.
    opening: Vec<u8>,
    /// How many bytes of the opening, and of the current batch, are sent.
    opened: usize,
    batched: usize,
    answers: Answers,
    is_answered: bool,
    /// Of those that act on what the node answers.
    session: Option<Session>,
}

impl Plan {
    pub(super) fn new(attack: Attack, node: SocketAddr, places: &Places) -> io::Result<Self> {
        let script = Script::of(attack, places)?;
        let node = if attack == Attack::ConsolePolls { places.console } else { node };
        Ok(Self { attack, node, script, fat: places.fat.clone() })
    }

    /// Connects from an address of the attacker's own.
    fn connect(&self, number: usize, connections: usize) -> io::Result<TcpStream> {
        let addresses = self.attack.addresses();
        let number = number * addresses + connections % addresses;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        let address = Ipv4Addr::new(127, 1, (number / 250) as u8, (number % 250) as u8 + 1);
        socket.bind(&SocketAddr::from((address, 0)).into())?;
        if self.attack.resets() {
            socket.set_linger(Some(Duration::ZERO))?;
        }
        socket.connect(&self.node.into())?;
        socket.set_nonblocking(true)?;
        Ok(TcpStream::from_std(socket.into()))
    }

    /// Whether attackers act on what the node answers.
    fn acts(&self) -> bool {
        self.attack == Attack::Joins || self.attack.has_sessions()
    }

    /// Whether answers are in native framing, and `packed`.
    fn reads_answers(&self) -> bool {
        !matches!(
            self.attack,
            Attack::Bombs
                | Attack::Json
                | Attack::JsonPairs
                | Attack::Handshakes
                | Attack::ConsolePolls
        )
    }
}

impl Attacker {
    pub(super) fn connect(plan: &Plan, number: usize) -> io::Result<Self> {
        let mut attacker = Self {
            stream: None,
            replaced: None,
            connections: 0,
            opening: Vec::new(),
            opened: 0,
            batched: 0,
            answers: Answers::default(),
            is_answered: false,
            session: plan.acts().then(Session::default),
        };
        attacker.reconnect(plan, number)?;
        Ok(attacker)
    }

    /// Disconnects, and connects again with the same session if there is one. On an error it stays
    /// disconnected, and can try again.
    pub(super) fn reconnect(&mut self, plan: &Plan, number: usize) -> io::Result<()> {
        self.replaced = self.stream.take().filter(|_| plan.attack == Attack::TakeOvers);
        (self.opened, self.batched, self.is_answered) = (0, 0, false);
        self.answers = Answers::default();
        self.opening = match &mut self.session {
            Some(session) => session.opening(plan.attack, &plan.fat),
            None => plan.script.opening.clone(),
        };
        if plan.attack == Attack::TakeOvers {
            script::register(&mut self.opening, number, self.connections);
        }
        self.stream = Some(plan.connect(number, self.connections)?);
        self.connections += 1;
        Ok(())
    }

    /// Whether it has joined all its rooms.
    pub(super) fn is_ready(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_ready)
    }

    /// Reads and writes until the socket would block. Returns `false` when the connection is over.
    pub(super) fn act(&mut self, plan: &Plan, buffer: &mut [u8], done: &mut Done) -> bool {
        self.read(plan, buffer, done) && self.write(plan, done)
    }

    fn read(&mut self, plan: &Plan, buffer: &mut [u8], done: &mut Done) -> bool {
        loop {
            let Some(stream) = &mut self.stream else { return true };
            match stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    done.received += count as u64;
                    if !self.heard(plan, &buffer[..count], done) {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// What arrived. Returns `false` if the attacker is done with the connection.
    fn heard(&mut self, plan: &Plan, bytes: &[u8], done: &mut Done) -> bool {
        if !std::mem::replace(&mut self.is_answered, true) && bytes[0] == TLS_HANDSHAKE {
            done.flights += 1;
        }
        if plan.attack == Attack::Handshakes {
            return false;
        }
        if plan.attack == Attack::ConsolePolls {
            // One that is cut is missed.
            done.pages += bytes.windows(PAGE.len()).filter(|part| *part == PAGE).count() as u64;
        }
        if !plan.reads_answers() {
            return true;
        }
        let is_refused = plan.attack == Attack::Refused;
        let Self { answers, session, opening, opened, .. } = self;
        let mut stays = true;
        let keeps = |kind| session.is_some() && Session::keeps(kind);
        let mut heard = Vec::new();
        answers.read(bytes, keeps, |of, body| {
            done.answers[usize::from(of)] += 1;
            stays &= !is_refused && of != kind::REGISTERED;
            if plan.acts() {
                heard.push((of, body.to_vec()));
            }
        });
        if let Some(session) = session {
            let before = session.resumed;
            for (kind, body) in heard {
                match session.hear(plan.attack, &plan.fat, kind, &body) {
                    Next::Wait => {}
                    Next::Send(bytes) => {
                        opening.drain(..std::mem::take(opened));
                        opening.extend_from_slice(&bytes);
                    }
                    Next::Reconnect => stays = false,
                }
            }
            done.resumed += session.resumed - before;
        }
        stays
    }

    fn write(&mut self, plan: &Plan, done: &mut Done) -> bool {
        // With a token it goes before it hears anything, so the token stays the same.
        let goes = plan.script.goes || plan.attack == Attack::Replays && self.is_ready();
        loop {
            let is_open = self.opened == self.opening.len();
            if is_open && goes {
                return false;
            }
            let bytes = if is_open { &plan.script.batch } else { &self.opening };
            let sent = if is_open { &mut self.batched } else { &mut self.opened };
            if bytes.is_empty() {
                return true;
            }
            let Some(stream) = &mut self.stream else { return true };
            match stream.write(&bytes[*sent..]) {
                Ok(count) => {
                    *sent += count;
                    done.sent += count as u64;
                    if is_open && *sent == bytes.len() {
                        *sent = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}
