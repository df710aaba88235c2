//! One client's conversation: connect, join the room, receive patches.

use std::time::Instant;

use playfield_state::{Data, Format, PlayerId};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::check::{ClientCheck, RoomCheck, Taken};
use super::socket::{Cutter, Socket, put_message};
use super::window::{Arrivals, Window};
use crate::rooms::Transport;
use crate::rooms::case::Case;
use crate::rooms::table::{CountInputs, Opening, ROOM_TYPE};
use crate::workloads::colyseus::Colyseus;

/// The first byte of a patch.
const PATCH: u8 = 0x48;

/// One client.
pub(super) struct Client {
    pub(super) socket: Socket,
    /// `None` while a message is handled, and at the baseline, which sends no messages.
    pub(super) cutter: Option<Cutter>,
    /// The index of its room.
    pub(super) room: usize,
    /// The room's number in the client's session.
    pub(super) number: RoomNumber,
    check: Option<ClientCheck>,
    pub(super) arrivals: Arrivals,
    /// At the baseline: how many bytes of an incomplete message have arrived.
    pub(super) begun_bytes: usize,
    pub(super) lost: bool,
    /// Whether it was already counted as ready.
    pub(super) counted: bool,
}

/// A room and the clients that wait for it to be created.
pub(super) struct Room {
    check: RoomCheck,
    id: Option<String>,
    creating: bool,
    waiting: Vec<usize>,
    /// How many inputs the room reports as handled.
    pub(super) inputs: u64,
}

/// What a message means for other clients.
pub(super) enum Entry {
    None,
    /// The client may join a room.
    Welcomed,
    /// The room that others wait for has been created.
    Created,
}

impl Room {
    pub(super) fn new(workload: &Colyseus) -> Self {
        Self {
            check: RoomCheck::new(workload),
            id: None,
            creating: false,
            waiting: Vec::new(),
            inputs: 0,
        }
    }

    /// Creates the room, joins it, or waits until the first client has created it.
    pub(super) fn enter(&mut self, client: usize, case: &Case, out: &mut Vec<u8>) {
        let request = RequestNumber(1);
        match &self.id {
            Some(id) => {
                put(
                    case.transport,
                    out,
                    &ClientMessage::Join(client::Join { request, room: id.as_str().into() }),
                );
            }
            None if self.creating => self.waiting.push(client),
            None => {
                self.creating = true;
                let mut options = Vec::new();
                Opening { players: case.players }.encode(&mut options);
                let room_type = ROOM_TYPE.into();
                put(
                    case.transport,
                    out,
                    &ClientMessage::Create(client::Create {
                        request,
                        room_type,
                        private: false,
                        code: false,
                        key: None,
                        options: &options,
                    }),
                );
            }
        }
    }

    pub(super) fn take_waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting)
    }
}

impl Client {
    pub(super) fn new(socket: Socket, room: usize) -> Self {
        Self {
            socket,
            cutter: None,
            room,
            number: RoomNumber(0),
            check: None,
            arrivals: Arrivals::default(),
            begun_bytes: 0,
            lost: false,
            counted: false,
        }
    }

    /// Whether everyone has joined the room and the copy was correct.
    pub(super) fn is_seated(&self) -> bool {
        self.check.as_ref().is_some_and(ClientCheck::is_seated)
    }

    /// Handles a message. An error ends this client.
    pub(super) fn take(
        &mut self,
        room: &mut Room,
        message: &[u8],
        transport: Transport,
        window: &mut Window,
        out: &mut Vec<u8>,
        now: Instant,
    ) -> Result<Entry, String> {
        if is_patch(message) {
            window.arrived(1, message.len(), &mut self.arrivals, now);
        }
        let message = match ServerMessage::decode(Format::Packed, message) {
            Ok(message) => message,
            Err(error) => {
                window.fail(error.to_string());
                return Ok(Entry::None);
            }
        };
        let taken = match (message, &mut self.check) {
            (
                ServerMessage::Patch(server::Patch { room: number, base, version, body }),
                Some(check),
            ) if number == self.number => check.patch(&mut room.check, base, version, &body),
            (
                ServerMessage::Snapshot(server::Snapshot { room: number, version, body, .. }),
                Some(check),
            ) if number == self.number => check.snapshot(&mut room.check, version, &body),
            (ServerMessage::Joined(server::Joined { room: number, id, player, .. }), None) => {
                self.number = number;
                self.check = Some(ClientCheck::new(PlayerId(player)));
                let created = room.id.is_none();
                room.id.get_or_insert_with(|| id.into_owned());
                return Ok(if created { Entry::Created } else { Entry::None });
            }
            (ServerMessage::Welcome(_), None) => return Ok(Entry::Welcomed),
            (ServerMessage::Ping(server::Ping { nonce }), _) => {
                put(transport, out, &ClientMessage::Pong(client::Pong { nonce }));
                return Ok(Entry::None);
            }
            // Copies are compared with the model at every message, so digests are not needed.
            (ServerMessage::Pong(_) | ServerMessage::Check(_), _) => {
                return Ok(Entry::None);
            }
            (ServerMessage::Reply(server::Reply { payload, .. }), _) => {
                room.inputs =
                    u64::read(Format::Packed, &payload).map_err(|error| error.to_string())?;
                return Ok(Entry::None);
            }
            (other, _) => Err(format!("unexpected message {other:?}")),
        };
        match taken {
            Ok(Taken::Compared) if window.is_open() => window.compared += 1,
            Ok(Taken::Compared | Taken::Joining) => {}
            Err(what) if self.check.is_none() => return Err(what),
            Err(what) => window.fail(what),
        }
        Ok(Entry::None)
    }
}

/// The first message.
pub(super) fn hello(transport: Transport) -> Vec<u8> {
    let mut out = Vec::new();
    put(transport, &mut out, &ClientMessage::Hello(Hello::new(Format::Packed)));
    out
}

/// Appends a request for the number of inputs that a room has handled.
pub(super) fn count_inputs(transport: Transport, room: RoomNumber, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    CountInputs.encode(&mut payload);
    let message = MessageRef::Index(1);
    put(
        transport,
        out,
        &ClientMessage::Request(client::Request {
            room,
            request: RequestNumber(2),
            message,
            payload: &payload,
        }),
    );
}

pub(super) fn is_patch(message: &[u8]) -> bool {
    message.first() == Some(&PATCH)
}

/// Appends a message in the transport's framing.
pub(super) fn put(transport: Transport, out: &mut Vec<u8>, message: &ClientMessage<'_>) {
    let mut bytes = Vec::new();
    message.encode(Format::Packed, &mut bytes);
    put_message(transport, out, &bytes);
}
