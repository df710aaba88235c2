//! Messages of clients, and their handling.

use std::borrow::Cow;

use playfield_room::{Error, Pause, RoomType, check_key};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, RoomInfo, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, excerpt};

use crate::directory::keys::Key;
use crate::shard::allowance::Rate;
use crate::shard::connection::share::{WORK_OF_NODE, WORK_OF_ROOM};
use crate::shard::frames::Frame;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::Act;
use crate::shard::mail::join::{Reading, RoomSpec};
use crate::shard::mail::member::ToMember;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// The session's seat in a room where it may have none, or where its request has the number of
    /// another one. If it may not send, the client gets an error.
    #[cold]
    pub(in crate::shard) fn seat_or_error(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        request: Option<RequestNumber>,
    ) -> Option<Seat> {
        let seat = self.seat_of(key, room, request)?;
        request.is_none_or(|request| self.is_new_request(key, request)).then_some(seat)
    }

    /// The session's seat in a room; if it has none, the client gets an error.
    pub(in crate::shard) fn seat_of(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        request: Option<RequestNumber>,
    ) -> Option<Seat> {
        let session = self.sessions.get_mut(key)?;
        let seat = session.joined(room);
        // What crosses a `left` on the way is dropped, unless somebody waits for an answer.
        if seat.is_none() && (request.is_some() || !session.was_numbered(room)) {
            let about = if request.is_none() { Some(room) } else { None };
            self.send_error(key, request, about, &not_joined(room));
        }
        seat
    }

    pub(in crate::shard) fn is_new_request(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(key) else { return false };
        let is_new = !session.awaits_joined(request);
        if !is_new {
            self.send_error(key, Some(request), None, &duplicate(request));
        }
        is_new
    }

    pub(in crate::shard) fn known_type(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
    ) -> Option<u16> {
        if !self.is_new_request(key, request) {
            return None;
        }
        let room_type = self.env.node.room_type(name);
        if room_type.is_none() {
            self.send_error(key, Some(request), None, &unknown_type(name));
        }
        room_type
    }

    /// Reads a client's description of a room that may be created; `None` if it was refused.
    pub(in crate::shard) fn spec(
        &mut self,
        connection: ConnectionKey,
        request: RequestNumber,
        room_type: &str,
        wanted: &RoomWish<'_>,
    ) -> Option<RoomSpec> {
        let room_type = self.known_type(connection, request, room_type)?;
        let RoomWish { private, code, key, options, format } = *wanted;
        let checked = match key {
            Some(_) if code => Err(Error::new(
                ErrorCode::BadKey,
                "a room has a key of its own or a code, not both",
            )),
            Some(key) => check_key(key),
            None => Ok(()),
        };
        let node = &self.env.node;
        let name = &node.room_types[usize::from(room_type)].name;
        let session = self.sessions.get(connection);
        let options = match session.and_then(|session| session.converted_options(name, options)) {
            None => Ok(Cow::Borrowed(options)),
            Some(Ok(options)) => Ok(options),
            Some(Err(error)) => {
                // The next ones may be by this process's schema.
                let name = name.clone();
                self.switch(connection, &name, &[]);
                Err(Error::new(ErrorCode::BadPayload, error.to_string()))
            }
        };
        let node = &self.env.node;
        let criteria = checked.and(options).and_then(|options| {
            Ok((node.criteria(room_type, format, &options)?, options.into_owned()))
        });
        let (criteria, options) = match criteria {
            Ok(criteria) => criteria,
            Err(error) => {
                self.send_error(connection, Some(request), None, &error);
                return None;
            }
        };
        let key = key.map(|key| Key { text: key.into(), is_code: false });
        let reading = Reading::Undecided;
        Some(RoomSpec { room_type, key, code, reading, private, criteria, options, format })
    }

    /// Does what a member asks for, here or on its room's shard.
    pub(in crate::shard) fn act(&mut self, key: ConnectionKey, seat: Seat, act: Act<'_>) {
        let Seat { shard, .. } = seat;
        if shard == self.env.shard {
            return self.tell(seat, ToMember::Act(act.into_owned()));
        }
        if self.outbound.congested[usize::from(shard)] {
            // Nothing more is read from it until the mailbox has space.
            if let Some(connection) = self.links.get_mut(key) {
                connection.pause.mailbox = true;
                self.links.waiting_for_mailbox.push((shard, key));
            }
            if let Act::Message { request: Some(request), .. } | Act::Leave { request } = act {
                let error = if shard == self.outbound.lanes.inputs() {
                    Pause::Journal.error()
                } else {
                    let text =
                        "limits.queues.mail: the mailbox of the room's shard is full; try again";
                    Error::new(ErrorCode::Busy, text)
                };
                return self.send_error(key, Some(request), None, &error);
            }
        }
        if let Some(connection) = self.links.get_mut(key)
            && let Some(session) = self.sessions.get_mut(key)
        {
            if let Some(room) = session.room_at(seat) {
                room.acts += 1;
                if let Act::Leave { request } = act {
                    room.leaving = Some(request);
                }
            }
            connection.pause.acts = session.has_acts_enough();
        }
        self.outbound.frames(shard, |out| Frame::Member(seat, ToMember::Act(act)).append(out));
    }

    pub(in crate::shard) fn list(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        room_type: Option<&str>,
        filter: &[(Cow<'_, str>, Cow<'_, str>)],
        limit: u32,
    ) {
        let node = std::sync::Arc::clone(&self.env.node);
        let room_type = match room_type {
            None => None,
            Some(name) => match self.known_type(key, request, name) {
                Some(room_type) => Some(room_type),
                None => return,
            },
        };
        if !self.is_new_request(key, request) {
            return;
        }
        let Some(session) = self.sessions.get_mut(key) else { return };
        let rate = Rate::new("tuning.lists", node.config.tuning.lists);
        match session.allowances().lists.check(self.env.now, rate) {
            Ok(()) => session.allowances_mut().lists.take(self.env.now, rate),
            Err(error) => return self.send_error(key, Some(request), None, &error),
        }
        let list_max = node.config.limits.listed.rooms;
        let limit = if limit == 0 { list_max } else { list_max.min(limit as usize) };
        let listings = node.directory.list(room_type, filter, limit);
        let rooms = listings.iter().map(|listing| RoomInfo {
            id: listing.id.as_str().into(),
            room_type: Cow::Borrowed(&node.room_types[usize::from(listing.room_type)].name),
            key: listing.summary.key.as_deref().map(Cow::Borrowed),
            players: listing.summary.players,
            capacity: listing.summary.capacity,
            locked: listing.summary.locked,
            metadata: listing
                .summary
                .metadata
                .iter()
                .map(|(name, value)| (Cow::Borrowed(name.as_str()), Cow::Borrowed(value.as_str())))
                .collect(),
        });
        let rooms = rooms.collect();
        self.send(key, &ServerMessage::Listed(server::Listed { request, rooms }));
    }

    pub(in crate::shard) fn tell_schema(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
    ) {
        let Some(room_type) = self.known_type(key, request, name) else { return };
        let limit = self.env.node.config.tuning.schemas;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let rate = Rate::new("tuning.schemas", limit);
        match session.allowances().schemas.check(self.env.now, rate) {
            Ok(()) => session.allowances_mut().schemas.take(self.env.now, rate),
            Err(error) => return self.send_error(key, Some(request), None, &error),
        }
        self.switch(key, name, &[]);
        self.send_schema(key, Some(request), room_type);
    }

    pub(in crate::shard) fn send_schema(
        &mut self,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        room_type: u16,
    ) {
        let node = std::sync::Arc::clone(&self.env.node);
        let RoomType { name, schema, .. } = &node.room_types[usize::from(room_type)];
        let schema = ServerMessage::Schema(server::Schema {
            request,
            room_type: name.into(),
            schema: schema.as_bytes().into(),
        });
        self.send(key, &schema);
    }
}

/// Returns the units of work of a message: the more, the sooner the shard looks whether others come
/// first.
#[inline]
pub(in crate::shard) fn work(message: &ClientMessage<'_>) -> u32 {
    match message {
        ClientMessage::Request(_)
        | ClientMessage::Send(_)
        | ClientMessage::Publish(_)
        | ClientMessage::Report(_)
        | ClientMessage::Answer(_) => WORK_OF_ROOM,
        ClientMessage::Ack(_)
        | ClientMessage::Ping(_)
        | ClientMessage::Pong(_)
        | ClientMessage::Goodbye(client::Goodbye {}) => 0,
        ClientMessage::Hello(_)
        | ClientMessage::Join(_)
        | ClientMessage::JoinByKey(_)
        | ClientMessage::Create(_)
        | ClientMessage::JoinOrCreate(_)
        | ClientMessage::List(_)
        | ClientMessage::Schema(_)
        | ClientMessage::Leave(_)
        | ClientMessage::Resync(_)
        | ClientMessage::Subscribe(_)
        | ClientMessage::Unsubscribe(_)
        | ClientMessage::Members(_)
        | ClientMessage::History(_)
        | ClientMessage::Register(_) => WORK_OF_NODE,
    }
}

/// A room that a client wants created.
pub(in crate::shard) struct RoomWish<'a> {
    pub(in crate::shard) private: bool,
    pub(in crate::shard) code: bool,
    pub(in crate::shard) key: Option<&'a str>,
    pub(in crate::shard) options: &'a [u8],
    pub(in crate::shard) format: Format,
}

/// Why a message of the other kind is refused.
pub(in crate::shard) fn wrong_format(format: Format) -> &'static str {
    match format {
        Format::Packed => "messages in the format packed are binary",
        Format::Msgpack => "messages in the format msgpack are binary",
        Format::Json => "messages in the format json are text",
    }
}

pub(in crate::shard) fn not_joined(room: RoomNumber) -> Error {
    Error::new(ErrorCode::NotJoined, format!("this session is in no room {room}"))
}

pub(in crate::shard) fn duplicate(request: RequestNumber) -> Error {
    Error::new(ErrorCode::DuplicateRequest, format!("request {request} is still unanswered"))
}

pub(in crate::shard) fn unknown_type(name: &str) -> Error {
    Error::new(
        ErrorCode::UnknownRoomType,
        format!("the node has no room type {:?}", excerpt(name, 64)),
    )
}
