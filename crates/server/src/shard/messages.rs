//! Messages of clients, on the way to the parts of a shard that they are for.

use std::borrow::Cow;

use playfield_room::Error;
use playfield_wire::client::ClientMessage;
use playfield_wire::message::MessageRef;
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, client, server};

use crate::shard::Shard;
use crate::shard::connection::Speaker;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::Act;
use crate::shard::mail::join::JoinTarget;
use crate::shard::session::Session;
use crate::shard::session::messages::{RoomWish, work, wrong_format};
use crate::tickets::is_ticket;

impl Shard {
    /// Handles one message, which came as text, as binary, or by a transport that has only one
    /// kind.
    #[inline(always)]
    pub(in crate::shard) fn handle_body(
        &mut self,
        key: ConnectionKey,
        from: Speaker,
        body: &[u8],
        is_text: Option<bool>,
    ) {
        self.env.counters.messages_in += 1;
        self.links.visit.read(body.len());
        let Speaker { format, is_counted, is_device, tickets_only } = from;
        let Some(within) = self.sessions.take(key, self.env.now, body.len()) else {
            return outlet!(self).handle_first(key, body, is_text);
        };
        if is_device {
            outlet!(self).heard_device(key);
        }
        if is_text.is_some_and(|is_text| is_text != format.is_text()) {
            return outlet!(self).fail(key, ErrorCode::WrongFormat, wrong_format(format));
        }
        let decoded = ClientMessage::decode(format, body);
        let message = match &decoded {
            Ok(message) => message,
            Err(error) => {
                return outlet!(self).fail(key, ErrorCode::BadMessage, &error.to_string());
            }
        };
        if is_counted {
            outlet!(self).count_received(key, message, body.len());
        }
        if let Err(excess) = within
            && !outlet!(self).exceed(key, excess, Some(message))
        {
            return;
        }
        if tickets_only && !outlet!(self).is_open_to_ticket_holders(key, message) {
            return;
        }
        self.links.visit.did(work(message));
        // The most frequent messages are taken apart: as a whole, they would be copied and dropped.
        let (room, request, message, payload) = match decoded {
            Ok(ClientMessage::Request(client::Request { room, request, message, payload })) => {
                (room, Some(request), message, payload)
            }
            Ok(ClientMessage::Send(client::Send { room, message, payload })) => {
                (room, None, message, payload)
            }
            Ok(message) => return self.handle_message(key, format, &message),
            Err(_) => return,
        };
        self.handle_user_message(key, room, &message, payload, request);
    }

    /// Handles a message that is not for a room alone.
    fn handle_message(&mut self, key: ConnectionKey, format: Format, message: &ClientMessage<'_>) {
        match *message {
            // These are for rooms, and taken apart above.
            ClientMessage::Request(_) | ClientMessage::Send(_) => {}
            ClientMessage::Ack(client::Ack { received }) => {
                outlet!(self).acknowledged(key, received);
            }
            ClientMessage::Resync(client::Resync { room }) => {
                if let Some(seat) = outlet!(self).seat_of(key, room, None) {
                    outlet!(self).act(key, seat, Act::Resync);
                }
            }
            ClientMessage::Leave(client::Leave { request, room }) => {
                if outlet!(self).is_new_request(key, request)
                    && let Some(seat) = outlet!(self).seat_of(key, room, Some(request))
                {
                    outlet!(self).act(key, seat, Act::Leave { request });
                }
            }
            ClientMessage::Ping(client::Ping { nonce }) => {
                let time_us = self.env.now.as_micros() as u64;
                outlet!(self).send(key, &ServerMessage::Pong(server::Pong { nonce, time_us }));
            }
            ClientMessage::Pong(client::Pong { nonce }) => outlet!(self).ponged(key, nonce),
            ClientMessage::Goodbye(client::Goodbye {}) => outlet!(self).let_go(key),
            ClientMessage::Hello(_) => {
                outlet!(self).fail(key, ErrorCode::HelloExpected, "a second hello");
            }
            ClientMessage::Join(client::Join { request, ref room }) => {
                if outlet!(self).is_new_request(key, request) {
                    if is_ticket(room) {
                        outlet!(self).join_by_ticket(key, request, room);
                    } else {
                        outlet!(self).join(key, request, JoinTarget::Room(room.to_string()), None);
                    }
                }
            }
            ClientMessage::JoinByKey(client::JoinByKey {
                request,
                ref room_type,
                key: ref room_key,
            }) => {
                if let Some(room_type) = outlet!(self).known_type(key, request, room_type) {
                    outlet!(self).join(
                        key,
                        request,
                        JoinTarget::Key(room_type, room_key.to_string()),
                        None,
                    );
                }
            }
            ClientMessage::Create(client::Create {
                request,
                ref room_type,
                private,
                code,
                key: ref room_key,
                options,
            }) => {
                let wanted = RoomWish { private, code, key: room_key.as_deref(), options, format };
                if let Some(spec) = outlet!(self).spec(key, request, room_type, &wanted) {
                    outlet!(self).join(key, request, JoinTarget::New(spec), None);
                }
            }
            ClientMessage::JoinOrCreate(client::JoinOrCreate {
                request,
                ref room_type,
                key: ref room_key,
                options,
            }) => {
                let (private, code) = (false, false);
                let wanted = RoomWish { private, code, key: room_key.as_deref(), options, format };
                if let Some(spec) = outlet!(self).spec(key, request, room_type, &wanted) {
                    outlet!(self).join(key, request, JoinTarget::Any(spec), None);
                }
            }
            ClientMessage::List(client::List { request, ref room_type, ref filter, limit }) => {
                outlet!(self).list(key, request, room_type.as_deref(), filter, limit);
            }
            ClientMessage::Schema(client::Schema { request, ref room_type }) => {
                outlet!(self).tell_schema(key, request, room_type);
            }
            ClientMessage::Subscribe(client::Subscribe {
                request,
                ref channel,
                since,
                presence,
            }) => {
                self.topics.subscribe(&mut outlet!(self), key, request, channel, since, presence);
            }
            ClientMessage::Unsubscribe(client::Unsubscribe { channel }) => {
                self.topics.unsubscribe_client(&mut outlet!(self), key, channel);
            }
            ClientMessage::Publish(client::Publish { request, ref channel, payload }) => {
                self.topics.publish_for_client(&mut outlet!(self), key, request, channel, payload);
            }
            ClientMessage::Members(client::Members { request, ref channel }) => {
                self.topics.ask_members(&mut outlet!(self), key, request, channel);
            }
            ClientMessage::History(client::History { request, ref channel, since, limit }) => {
                self.topics.ask_history(&mut outlet!(self), key, request, channel, since, limit);
            }
            ClientMessage::Register(client::Register {
                request,
                ref device,
                ref metadata,
                ref tags,
            }) => {
                self.topics.register(
                    &mut outlet!(self),
                    key,
                    request,
                    device,
                    metadata.clone(),
                    tags.clone(),
                );
            }
            ClientMessage::Report(client::Report { request, payload }) => {
                self.topics.report(&mut outlet!(self), key, request, payload);
            }
            ClientMessage::Answer(client::Answer { command, ref error, payload }) => {
                self.topics.answer_command(
                    &mut outlet!(self),
                    key,
                    command,
                    error.clone(),
                    payload,
                );
            }
        }
    }

    #[inline]
    fn handle_user_message(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        let session = self.sessions.get(key);
        let is_converted = session.is_some_and(Session::speaks_earlier_schema);
        let seat = session.and_then(|session| session.seat_to_send(room, request));
        let Some(seat) = seat.or_else(|| outlet!(self).seat_or_error(key, room, request)) else {
            return;
        };
        if is_converted || seat.shard != self.env.shard {
            return self.convert_and_deliver(key, (room, seat), message, payload, request);
        }
        self.host.deliver(&mut below!(self), seat.room, seat.member, message, payload, request);
    }

    /// Gives a room a message that is converted first, or goes to another shard. Not inlined: the
    /// way of other messages stays short.
    #[inline(never)]
    fn convert_and_deliver(
        &mut self,
        key: ConnectionKey,
        (room, seat): (RoomNumber, Seat),
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        let session = self.sessions.get(key);
        match session.and_then(|session| session.converted(room, message, payload)) {
            None => self.deliver(key, seat, message, payload, request),
            Some(Ok((number, payload))) => {
                self.deliver(key, seat, &MessageRef::Index(number), &payload, request);
            }
            Some(Err(error)) => {
                let error = Error::new(ErrorCode::BadPayload, error.to_string());
                let room = request.is_none().then_some(room);
                outlet!(self).send_error(key, request, room, &error);
            }
        }
    }

    /// Gives a room a message of its member.
    fn deliver(
        &mut self,
        key: ConnectionKey,
        seat: Seat,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        if seat.shard == self.env.shard
            || self.host.takes_at_once(&mut self.outbound, &self.env, seat)
        {
            self.host.deliver(&mut below!(self), seat.room, seat.member, message, payload, request);
            return;
        }
        let message = match message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(Cow::Borrowed(name)),
        };
        let payload = Cow::Borrowed(payload);
        outlet!(self).act(key, seat, Act::Message { message, payload, request });
    }
}
