//! What a client says, and what is answered.

use std::collections::BTreeSet;

use playfield_room::{Error, PlayerId};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{RoomInfo, ServerMessage};
use playfield_wire::{ErrorCode, Format, PROTOCOL};

use super::join::Wish;
use super::mail::{Named, RoomAddress, ShardMail};
use super::{Shard, entropy};
use crate::auth::{Credentials, Identity};
use crate::slab::Key;

/// A client's relation to the node.
pub(crate) struct Session {
    pub(super) identity: Identity,
    pub(super) format: Format,
    /// The room types that the client was built with: name and fingerprint.
    pub(super) schemas: Vec<(String, u64)>,
    pub(super) seats: Vec<Seat>,
    pub(super) last_number: u32,
    /// It has gone to another shard, and goes no more.
    pub(super) moved: bool,
    /// Requests that are answered by another shard.
    pub(super) unanswered: BTreeSet<u32>,
}

/// A room that the session is in.
pub(super) struct Seat {
    /// By which messages name the room.
    pub(super) number: u32,
    pub(super) address: RoomAddress,
    /// The member in that room.
    pub(super) member: u64,
    pub(super) player: PlayerId,
}

impl Session {
    pub(super) fn seat(&self, number: u32) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.number == number)
    }
}

impl Shard {
    /// Handles one message. `kind` is what the transport says it is, if it says. `false`: it is not handled now, and is to be brought
    /// again when the connection takes input.
    pub(super) fn handle_bytes(&mut self, key: Key, bytes: &[u8], kind: Option<Format>) -> bool {
        self.net.stats.messages_in += 1;
        let Some(connection) = self.net.connections.get(key) else { return true };
        let Some(session) = &connection.session else {
            self.handle_hello(key, bytes, kind);
            return true;
        };
        let format = session.format;
        if kind.is_some_and(|kind| kind != format) {
            let text = format!(
                "this connection speaks {}, and a WebSocket message of the other kind came",
                format.name()
            );
            self.net.fail(key, ErrorCode::WrongFormat, &text);
            return true;
        }
        match ClientMessage::decode(format, bytes) {
            Ok(message) => self.handle(key, message),
            Err(error) => {
                self.net.fail(key, ErrorCode::BadMessage, &error.to_string());
                true
            }
        }
    }

    fn handle_hello(&mut self, key: Key, bytes: &[u8], kind: Option<Format>) {
        let plain = kind.unwrap_or(if bytes.first() == Some(&b'{') { Format::Json } else { Format::Packed });
        let (format, hello) = match ClientMessage::decode_first(bytes) {
            Ok((format, ClientMessage::Hello(hello))) => (format, hello),
            Ok(_) => {
                return self.net.fail_in(key, plain, ErrorCode::HelloExpected, "the first message is hello");
            }
            Err(error) => {
                let code = if error.unspoken_format().is_some() {
                    ErrorCode::WrongFormat
                } else {
                    ErrorCode::BadMessage
                };
                return self.net.fail_in(key, plain, code, &error.to_string());
            }
        };
        if kind.is_some_and(|kind| kind != plain_form(bytes)) {
            return self.net.fail_in(
                key,
                plain,
                ErrorCode::WrongFormat,
                "JSON comes as text, anything else as binary",
            );
        }
        if hello.protocol != PROTOCOL {
            let text = format!("this node speaks version {PROTOCOL} of the protocol, not {}", hello.protocol);
            return self.net.fail_in(key, plain, ErrorCode::UnsupportedProtocol, &text);
        }
        let credentials = Credentials { name: &hello.name, token: &hello.token };
        match self.node.authenticator.authenticate(credentials) {
            Ok(identity) => self.begin_session(key, format, identity, &hello),
            Err(error) => self.net.fail_in(key, format, error.code(), error.text()),
        }
    }

    fn begin_session(&mut self, key: Key, format: Format, identity: Identity, hello: &Hello<'_>) {
        let schemas =
            hello.schemas.iter().map(|schema| (schema.room_type.to_string(), schema.fingerprint)).collect();
        let session = Session {
            identity,
            format,
            schemas,
            seats: Vec::new(),
            last_number: 0,
            moved: false,
            unanswered: BTreeSet::new(),
        };
        let Some(connection) = self.net.connections.get_mut(key) else { return };
        connection.session = Some(Box::new(session));
        self.net.sessions += 1;
        let token: [u8; 16] = entropy();
        let number = u64::from_le_bytes(entropy());
        let config = &self.node.config;
        self.net.say(
            key,
            &ServerMessage::Welcome {
                protocol: PROTOCOL,
                session: number >> 11, // every client can hold 53 bits
                resume: token.as_slice().into(),
                heartbeat_ms: u32::try_from(config.heartbeat_ms).unwrap_or(u32::MAX),
                max_message_bytes: u32::try_from(config.max_message_bytes).unwrap_or(u32::MAX),
            },
        );
    }

    fn handle(&mut self, key: Key, message: ClientMessage<'_>) -> bool {
        match message {
            ClientMessage::Send { room, message, payload } => {
                return self.forward(key, room, message, payload, None);
            }
            ClientMessage::Request { room, request, message, payload } => {
                return self.forward(key, room, message, payload, Some(request));
            }
            ClientMessage::Hello(_) => {
                self.net.fail(key, ErrorCode::HelloExpected, "hello comes once, and first");
            }
            ClientMessage::Join { request, room } => self.wish(key, request, Wish::Join { id: &room }),
            ClientMessage::Create { request, room_type, private, options } => {
                self.wish(key, request, Wish::Create { room_type: &room_type, private, options });
            }
            ClientMessage::JoinOrCreate { request, room_type, options } => {
                self.wish(key, request, Wish::JoinOrCreate { room_type: &room_type, options });
            }
            ClientMessage::List { request, room_type, filter, limit } => {
                let filter: Vec<(&str, &str)> =
                    filter.iter().map(|(key, value)| (&**key, &**value)).collect();
                self.list(key, request, room_type.as_deref(), &filter, limit);
            }
            ClientMessage::Leave { request, room } => self.leave(key, request, room),
            ClientMessage::Resync { room } => self.resync(key, room),
            ClientMessage::Ping { nonce } => self.net.say(key, &ServerMessage::Pong { nonce }),
            ClientMessage::Goodbye => {
                let format = self.net.connections.get(key).map_or(Format::Packed, super::Connection::format);
                self.net.goodbye(key, format, ErrorCode::Left, "goodbye");
            }
            // Both are signs of life, which were noted when they came.
            ClientMessage::Ack { .. } | ClientMessage::Pong { .. } => {}
        }
        true
    }

    /// A user's message, for a room.
    fn forward(
        &mut self,
        key: Key,
        number: u32,
        message: MessageRef<'_>,
        payload: &[u8],
        request: Option<u32>,
    ) -> bool {
        let Some(session) =
            self.net.connections.get(key).and_then(|connection| connection.session.as_deref())
        else {
            return true;
        };
        if let Some(request) = request
            && session.unanswered.contains(&request)
        {
            self.refuse(key, Some(request), Some(number), &duplicate(request));
            return true;
        }
        let Some(seat) = session.seat(number) else {
            let error =
                Error::new(ErrorCode::NotJoined, format!("you are in no room with the number {number}"));
            self.refuse(key, request, Some(number), &error);
            return true;
        };
        let (address, member, player) = (seat.address, seat.member, seat.player);
        if address.shard == self.index {
            self.message(address.room, player, &message, payload, request);
            return true;
        }
        if self.node.mailboxes.is_full(address.shard, self.net.letters[address.shard].len()) {
            return self.wait_or_refuse(key, number, request, address.shard);
        }
        if let Some(request) = request
            && let Some(session) = self.net.session(key)
        {
            session.unanswered.insert(request);
        }
        let message = Named::of(&message);
        let payload = payload.to_vec();
        self.net.letters[address.shard].push(ShardMail::Message {
            room: address.room,
            member,
            message,
            payload,
            request,
        });
        true
    }

    /// The shard of the room is busy: a request is answered so; a send waits, and with it all that comes behind it.
    fn wait_or_refuse(&mut self, key: Key, number: u32, request: Option<u32>, shard: usize) -> bool {
        if request.is_some() {
            let error = Error::new(ErrorCode::Busy, "the room's shard has too much waiting; try again");
            self.refuse(key, request, Some(number), &error);
            return true;
        }
        if let Some(connection) = self.net.connection(key) {
            connection.waits_for = Some(shard);
            self.waiting.push(key);
        }
        false
    }

    fn list(&mut self, key: Key, request: u32, room_type: Option<&str>, filter: &[(&str, &str)], limit: u32) {
        let most = self.node.config.list_max;
        let limit = if limit == 0 { most } else { most.min(limit as usize) };
        let found = self.node.directory.list(room_type, filter, limit);
        let rooms = found
            .iter()
            .map(|listing| RoomInfo {
                id: listing.id.as_str().into(),
                room_type: listing.room_type.as_str().into(),
                players: listing.facts.players,
                capacity: listing.facts.capacity,
                locked: listing.facts.locked,
                metadata: listing
                    .facts
                    .metadata
                    .iter()
                    .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                    .collect(),
            })
            .collect();
        self.net.say(key, &ServerMessage::Listed { request, rooms });
    }

    fn leave(&mut self, key: Key, request: u32, number: u32) {
        let Some(session) = self.net.session(key) else { return };
        let Some(place) = session.seats.iter().position(|seat| seat.number == number) else {
            let error =
                Error::new(ErrorCode::NotJoined, format!("you are in no room with the number {number}"));
            return self.refuse(key, Some(request), Some(number), &error);
        };
        let seat = session.seats.remove(place);
        self.vacate(&seat);
        let text = "you left".into();
        self.net.say(
            key,
            &ServerMessage::Left { request: Some(request), room: number, code: ErrorCode::Left, text },
        );
    }

    fn resync(&mut self, key: Key, number: u32) {
        let Some(seat) = self.net.session(key).and_then(|session| session.seat(number)) else {
            let error =
                Error::new(ErrorCode::NotJoined, format!("you are in no room with the number {number}"));
            return self.refuse(key, None, Some(number), &error);
        };
        let (address, member) = (seat.address, seat.member);
        if address.shard == self.index {
            self.begin_again(address.room, member);
        } else {
            self.net.letters[address.shard].push(ShardMail::Resync { room: address.room, member });
        }
    }

    /// Takes a session out of all its rooms.
    pub(super) fn end_session(&mut self, session: Session) {
        for seat in &session.seats {
            self.vacate(seat);
        }
    }

    fn vacate(&mut self, seat: &Seat) {
        if seat.address.shard == self.index {
            self.member_left(seat.address.room, seat.member);
        } else {
            let letter = ShardMail::Leave { room: seat.address.room, member: seat.member };
            self.net.letters[seat.address.shard].push(letter);
        }
    }

    /// Answers with an error, which changes nothing else.
    pub(super) fn refuse(&mut self, key: Key, request: Option<u32>, room: Option<u32>, error: &Error) {
        self.net.refuse(key, request, room, error);
    }

    /// A connection has taken all it was owed: rooms for which it was too slow send what it missed.
    pub(super) fn drained(&mut self, key: Key) {
        let Some(connection) = self.net.connections.get_mut(key) else { return };
        for (address, member) in std::mem::take(&mut connection.credits) {
            self.net.letters[address.shard].push(ShardMail::Drained { room: address.room, member });
        }
        let here = self.index;
        let seats = connection
            .session
            .iter()
            .flat_map(|session| &session.seats)
            .filter(|seat| seat.address.shard == here);
        let late: Vec<(Key, u64)> = seats.map(|seat| (seat.address.room, seat.member)).collect();
        for (room, member) in late {
            self.catch_up(room, member);
        }
        if self.net.connections.get(key).is_some_and(|connection| !connection.input.is_empty()) {
            self.pump(key);
        }
    }
}

impl super::Net {
    pub(super) fn session(&mut self, key: Key) -> Option<&mut Session> {
        self.connections.get_mut(key)?.session.as_deref_mut()
    }

    pub(super) fn refuse(&mut self, key: Key, request: Option<u32>, room: Option<u32>, error: &Error) {
        let room = if request.is_some() { None } else { room };
        self.say(key, &ServerMessage::Error { request, room, code: error.code(), text: error.text().into() });
    }
}

pub(super) fn duplicate(request: u32) -> Error {
    Error::new(
        ErrorCode::DuplicateRequest,
        format!("the request {request} is still unanswered; use another number"),
    )
}

/// The form that bytes have: text or not.
fn plain_form(bytes: &[u8]) -> Format {
    if bytes.first() == Some(&b'{') { Format::Json } else { Format::Packed }
}
