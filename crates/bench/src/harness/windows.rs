//! Clients that send a window of requests, wait for all answers, and send the next one.

use std::io;

use playfield_state::PlayerId;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::Side;
use super::dialogue::{Dialogue, FORMAT, Frame};
use super::fleet::{Fleet, Links, Next, Script, wrong};
use super::process::Server;
use super::source::Source;

/// The largest window: the numbers of its requests all take one byte.
pub(crate) const WINDOW_MAX: usize = 100;
/// The number of each client's room.
const ROOM: RoomNumber = RoomNumber(1);
const OPENING_MAX: usize = 64;

/// The answers that clients should get.
pub(crate) trait Answers {
    /// A client's request to enter its room.
    fn join(&self, client: usize) -> ClientMessage<'_>;

    /// Returns whether this message is the answer to a client's request with this place in its
    /// window.
    fn is_right(&mut self, client: usize, at: usize, body: &[u8]) -> bool;

    /// A client has entered its room.
    fn joined(&mut self, _client: usize, _player: PlayerId) {}

    /// A client sends a window.
    fn begins(&mut self, _client: usize) {}

    /// A client's window was answered.
    fn ends(&mut self, _client: usize) {}
}

/// All clients.
pub(crate) struct Windows<A> {
    pub(crate) answers: A,
    /// The number of answers so far.
    pub(crate) answered: u64,
    dialogue: Dialogue,
    side: Side,
    requests: Vec<u8>,
    window: usize,
    /// The number of answered requests of its window, by client.
    answered_by: Vec<u8>,
    /// The number of clients that wait for answers.
    waiting: usize,
    is_over: bool,
    /// The server is gone, and with it all connections.
    has_ended: bool,
}

/// The bytes of a window of requests with these payloads.
pub(crate) fn requests(
    dialogue: Dialogue,
    window: usize,
    payload: impl Fn(usize) -> Vec<u8>,
) -> Vec<u8> {
    let request = |at| {
        dialogue.framed(&ClientMessage::Request(client::Request {
            room: ROOM,
            request: request(at),
            message: MessageRef::Index(0),
            payload: &payload(at),
        }))
    };
    (0..window).flat_map(request).collect()
}

/// The number of a request of a window.
pub(crate) fn request(at: usize) -> RequestNumber {
    RequestNumber(1 + at as u32)
}

impl<A: Answers> Windows<A> {
    pub(crate) fn new(
        answers: A,
        dialogue: Dialogue,
        requests: Vec<u8>,
        window: usize,
        clients: usize,
    ) -> Self {
        Self {
            answers,
            answered: 0,
            dialogue,
            side: Side::Node,
            requests,
            window,
            answered_by: vec![0; clients],
            waiting: 0,
            is_over: true,
            has_ended: false,
        }
    }

    /// Connects all clients, and has each enter its room, if the server is a node.
    pub(crate) fn connect(
        self,
        server: &Server,
        side: Side,
        source: Source,
    ) -> io::Result<Fleet<Self>> {
        let clients = self.answered_by.len();
        let mut fleet = Fleet::new(Self { side, ..self }, server.address, source, None)?;
        fleet.connect(0..clients, OPENING_MAX);
        Ok(fleet)
    }

    /// The server has ended: connections may be lost, and its remaining output is read.
    pub(crate) fn ends_with_server(&mut self) {
        (self.is_over, self.has_ended) = (true, true);
    }

    fn send(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        self.answers.begins(client);
        links.send(client, &self.requests).map(drop)
    }

    fn hear(&mut self, client: usize, frame: Frame<'_>, links: &mut Links) -> io::Result<()> {
        let Frame::Message(body) = frame else {
            return links.send(client, &self.dialogue.reply(&frame, false)).map(drop);
        };
        let at = usize::from(self.answered_by[client]);
        if self.answers.is_right(client, at, body) {
            self.answered += 1;
            self.answered_by[client] += 1;
            if at + 1 == self.window {
                self.answered_by[client] = 0;
                self.answers.ends(client);
                if self.is_over {
                    self.waiting -= 1;
                } else {
                    self.send(client, links)?;
                }
            }
            return Ok(());
        }
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(_) => {
                links.send(client, &self.dialogue.framed(&self.answers.join(client)))?;
            }
            ServerMessage::Snapshot(_) => links.ready += 1,
            ServerMessage::Joined(server::Joined { room: ROOM, player, .. }) => {
                self.answers.joined(client, PlayerId(player));
            }
            ServerMessage::Patch(_) | ServerMessage::Ack(_) | ServerMessage::Check(_) => {}
            ServerMessage::Ping(server::Ping { nonce }) => {
                links.send(client, &self.dialogue.pong(nonce))?;
            }
            other => return Err(wrong(&format!("not expected now: {other:?}"))),
        }
        Ok(())
    }
}

impl<A: Answers> Script for Windows<A> {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        match self.side {
            Side::Bare => links.ready += 1,
            Side::Node => drop(links.send(client, &self.dialogue.opening(false))?),
        }
        Ok(())
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let dialogue = self.dialogue;
        dialogue.each(input, |frame| self.hear(client, frame, links))
    }

    fn lost(&mut self, client: usize, why: io::Error, _: &mut Links) -> io::Result<Next> {
        match self.has_ended && why.kind() != io::ErrorKind::InvalidData {
            true => Ok(Next::Stay),
            false => Err(io::Error::new(why.kind(), format!("client {client}: {why}"))),
        }
    }

    fn progress(&self) -> u64 {
        self.answered
    }
}

impl<A: Answers> Fleet<Windows<A>> {
    /// Sends the first window of every client.
    pub(crate) fn begin(&mut self) {
        let Self { script, links, .. } = self;
        script.is_over = false;
        for client in 0..script.answered_by.len() {
            // A lost connection is noticed where it is read.
            let _ = script.send(client, links);
            script.waiting += 1;
        }
    }

    /// Waits for the answers that are missing.
    pub(crate) fn end(&mut self) {
        self.script.is_over = true;
        self.until(|clients, _| clients.waiting == 0);
    }

    /// Says what was wrong. Returns whether anything was.
    pub(crate) fn said_fault(&self, of: &dyn std::fmt::Display) -> bool {
        self.fault.iter().for_each(|fault| eprintln!("{of}: {fault}"));
        self.fault.is_some()
    }
}
