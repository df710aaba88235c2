//! One client's conversation: in, into the room, and then patches.

use std::time::Instant;

use playfield_state::{Data, Format, PlayerId};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::message::MessageRef;
use playfield_wire::server::ServerMessage;

use super::check::{ClientCheck, RoomCheck, Taken};
use super::socket::{Cutter, Socket, put_message};
use super::window::{Arrivals, Window};
use crate::rooms::Transport;
use crate::rooms::case::Case;
use crate::rooms::table::{CountInputs, Opening, ROOM_TYPE};
use crate::workloads::colyseus::Colyseus;

/// The kind of a patch, its first byte.
const PATCH: u8 = 0x48;

/// One client.
pub(super) struct Client {
    pub(super) socket: Socket,
    /// `None` while a message is handled, and where there are no messages.
    pub(super) cutter: Option<Cutter>,
    /// The place of its room among the rooms.
    pub(super) room: usize,
    /// The room's number in its session.
    pub(super) number: u32,
    check: Option<ClientCheck>,
    pub(super) arrivals: Arrivals,
    /// Of what the baseline sends: how much came of a message that is not whole yet.
    pub(super) begun_bytes: usize,
    pub(super) lost: bool,
    /// It counts as ready, where there is nothing to be seated at.
    pub(super) counted: bool,
}

/// A room and whoever waits for it to be there.
pub(super) struct Room {
    check: RoomCheck,
    id: Option<String>,
    creating: bool,
    waiting: Vec<usize>,
    /// How many inputs it says it handled.
    pub(super) inputs: u64,
}

/// What a message means for others.
pub(super) enum Entry {
    None,
    /// The client may enter a room.
    Welcomed,
    /// The room that others wait for is there.
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

    /// Creates the room, joins it, or waits until the first has created it.
    pub(super) fn enter(&mut self, client: usize, case: &Case, out: &mut Vec<u8>) {
        let request = 1;
        match &self.id {
            Some(id) => {
                put(case.transport, out, &ClientMessage::Join { request, room: id.as_str().into() })
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
                    &ClientMessage::Create {
                        request,
                        room_type,
                        private: false,
                        options: &options,
                    },
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
            number: 0,
            check: None,
            arrivals: Arrivals::default(),
            begun_bytes: 0,
            lost: false,
            counted: false,
        }
    }

    /// Everyone is in the room, and the copy was right.
    pub(super) fn is_seated(&self) -> bool {
        self.check.as_ref().is_some_and(ClientCheck::is_seated)
    }

    /// Takes a message. An error is the end of this client.
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
            (ServerMessage::Patch { room: number, base, version, body }, Some(check))
                if number == self.number =>
            {
                check.patch(&mut room.check, base, version, body)
            }
            (ServerMessage::Snapshot { room: number, version, body, .. }, Some(check))
                if number == self.number =>
            {
                check.snapshot(&mut room.check, version, body)
            }
            (ServerMessage::Joined { room: number, id, player, .. }, None) => {
                self.number = number;
                self.check = Some(ClientCheck::new(PlayerId(player)));
                let created = room.id.is_none();
                room.id.get_or_insert_with(|| id.into_owned());
                return Ok(if created { Entry::Created } else { Entry::None });
            }
            (ServerMessage::Welcome { .. }, None) => return Ok(Entry::Welcomed),
            (ServerMessage::Ping { nonce }, _) => {
                put(transport, out, &ClientMessage::Pong { nonce });
                return Ok(Entry::None);
            }
            // Copies are held to the model here, message by message, and to no digest.
            (ServerMessage::Pong { .. } | ServerMessage::Check { .. }, _) => {
                return Ok(Entry::None);
            }
            (ServerMessage::Reply { payload, .. }, _) => {
                room.inputs =
                    u64::read(Format::Packed, payload).map_err(|error| error.to_string())?;
                return Ok(Entry::None);
            }
            (other, _) => Err(format!("{other:?} was not expected")),
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

/// Appends the request for the number of inputs that a room handled.
pub(super) fn count_inputs(transport: Transport, room: u32, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    CountInputs.encode(&mut payload);
    let message = MessageRef::Index(1);
    put(transport, out, &ClientMessage::Request { room, request: 2, message, payload: &payload });
}

pub(super) fn is_patch(message: &[u8]) -> bool {
    message.first() == Some(&PATCH)
}

/// Appends a message as the transport carries it.
pub(super) fn put(transport: Transport, out: &mut Vec<u8>, message: &ClientMessage<'_>) {
    let mut bytes = Vec::new();
    message.encode(Format::Packed, &mut bytes);
    put_message(transport, out, &bytes);
}
