//! Attackers that act on what the node answers: they join a large room and leave it, or resume a
//! session in many large rooms.

use playfield_session::Received;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::answers::kind;
use super::attack::Attack;
use super::script::frame;

const FORMAT: Format = Format::Packed;

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Wait,
    /// Send this.
    Send(Vec<u8>),
    /// Disconnect, and connect again.
    Reconnect,
}

/// A session of such an attacker. It outlives its connections.
#[derive(Default)]
pub(super) struct Session {
    token: Vec<u8>,
    received: Received,
    requests: u32,
    /// The rooms that it is in, with their epochs.
    rooms: Vec<(RoomNumber, u64)>,
    /// The number of snapshots that have arrived on this connection.
    snapshots: usize,
    /// Whether the connection resumed the session.
    is_resumed: bool,
    /// The number of times that it was resumed and received a snapshot of each room.
    pub(super) resumed: u64,
    /// The session has joined all rooms.
    pub(super) is_ready: bool,
}

impl Session {
    /// The first bytes of a new connection.
    pub(super) fn opening(&mut self, attack: Attack, fat: &[String]) -> Vec<u8> {
        let mut out = PREAMBLE.to_vec();
        self.snapshots = 0;
        self.is_resumed = false;
        // All copies are named at version 0, which no room has: each needs a snapshot.
        let rooms = self.rooms.iter().map(|&(room, epoch)| ResumeRoom { room, epoch, version: 0 });
        let is_resumable = attack.has_sessions();
        let resume = (is_resumable && self.is_ready).then(|| Resume {
            token: self.token.clone().into(),
            received: self.received.count(),
            rooms: rooms.collect(),
        });
        let resumes = resume.is_some();
        let hello = Hello { resumable: is_resumable, resume, ..Hello::new(FORMAT) };
        frame(&mut out, FORMAT, &ClientMessage::Hello(hello));
        if !resumes {
            *self = Self { resumed: self.resumed, ..Self::default() };
            let joined = if is_resumable { fat } else { &fat[..1] };
            for room in joined {
                self.join(room, &mut out);
            }
        }
        out
    }

    /// Returns whether it needs the bodies of such messages.
    pub(super) fn keeps(kind: u8) -> bool {
        matches!(kind, kind::WELCOME | kind::JOINED)
    }

    /// Acts on a message. Its body is there if it is kept.
    pub(super) fn hear(&mut self, attack: Attack, fat: &[String], kind: u8, body: &[u8]) -> Next {
        match ServerMessage::decode(FORMAT, body) {
            Ok(ServerMessage::Welcome(server::Welcome { resume, resumed, .. })) => {
                self.is_resumed = resumed.is_some();
                self.token = resume.into_owned();
                // The session was over, so this is a new one, without rooms.
                if self.is_ready && !self.is_resumed {
                    self.is_ready = false;
                    return Next::Reconnect;
                }
            }
            Ok(ServerMessage::Joined(server::Joined { room, epoch, .. })) => {
                self.received.handled(body.len());
                self.rooms.push((room, epoch));
            }
            _ if kind == kind::SNAPSHOT => {
                self.snapshots += 1;
                return self.copied(attack, fat);
            }
            // A refusal. Another session may do better.
            _ if kind == kind::ERROR => {
                self.is_ready = false;
                return Next::Reconnect;
            }
            _ => {}
        }
        Next::Wait
    }

    /// A snapshot has arrived.
    fn copied(&mut self, attack: Attack, fat: &[String]) -> Next {
        if attack.has_sessions() {
            if self.snapshots < fat.len() {
                return Next::Wait;
            }
            self.is_ready = true;
            self.resumed += u64::from(self.is_resumed);
            return Next::Reconnect;
        }
        let mut out = Vec::new();
        if let Some((room, _)) = self.rooms.pop() {
            self.requests += 1;
            let leave =
                ClientMessage::Leave(client::Leave { request: RequestNumber(self.requests), room });
            frame(&mut out, FORMAT, &leave);
            self.join(&fat[0], &mut out);
        }
        Next::Send(out)
    }

    fn join(&mut self, room: &str, out: &mut Vec<u8>) {
        self.requests += 1;
        let request = RequestNumber(self.requests);
        frame(out, FORMAT, &ClientMessage::Join(client::Join { request, room: room.into() }));
    }
}
