//! The way of messages and mail to the parts of a shard that they are for.

use std::borrow::Cow;

use playfield_room::AskId;
use playfield_wire::client::ClientMessage;
use playfield_wire::message::MessageRef;
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber, client, server};

use crate::service::Answered;
use crate::shard::Shard;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::join::JoinTarget;
use crate::shard::mail::user::UserMail;
use crate::shard::mail::{Act, ShardMail};
use crate::shard::moment::Moment;
use crate::shard::pacing::Part;
use crate::shard::session::messages::{RoomWish, not_joined, work, wrong_format};
use crate::shard::snapshots::Waiting;
use crate::tickets::is_ticket;

impl Shard {
    /// Handles one message, which came as text, as binary, or by a transport that has only one
    /// kind.
    #[inline]
    pub(in crate::shard) fn handle_body(
        &mut self,
        key: ConnectionKey,
        body: &[u8],
        is_text: Option<bool>,
    ) {
        self.env.counters.messages_in += 1;
        self.links.visit.read(body.len());
        let Some(connection) = self.links.get_mut(key) else { return };
        if connection.has_session {
            connection.unfinished_since = Moment::NEVER;
            connection.lives(self.env.now);
        }
        let (tickets_only, is_counted) = (connection.tickets_only, connection.resumable);
        let (format, is_device) = (connection.dialect.format, connection.is_device);
        let Some(within) = self.sessions.take(key, self.env.now, body.len()) else {
            return outlet!(self).handle_first(key, body, is_text);
        };
        if is_device {
            outlet!(self).heard_device(key);
        }
        if is_text.is_some_and(|is_text| is_text != format.is_text()) {
            return outlet!(self).fail(key, ErrorCode::WrongFormat, wrong_format(format));
        }
        match ClientMessage::decode(format, body) {
            Ok(message) => {
                if is_counted {
                    outlet!(self).count_received(key, &message, body.len());
                }
                if let Err(excess) = within
                    && !outlet!(self).exceed(key, excess, Some(&message))
                {
                    return;
                }
                if tickets_only && !outlet!(self).is_open_to_ticket_holders(key, &message) {
                    return;
                }
                self.handle_message(key, format, &message);
            }
            Err(error) => outlet!(self).fail(key, ErrorCode::BadMessage, &error.to_string()),
        }
    }

    #[inline]
    fn handle_message(&mut self, key: ConnectionKey, format: Format, message: &ClientMessage<'_>) {
        self.links.visit.did(work(message));
        match *message {
            ClientMessage::Request(client::Request { room, request, ref message, payload }) => {
                self.handle_user_message(key, room, message, payload, Some(request));
            }
            ClientMessage::Send(client::Send { room, ref message, payload }) => {
                self.handle_user_message(key, room, message, payload, None);
            }
            ClientMessage::Ack(client::Ack { received }) => {
                outlet!(self).acknowledged(key, received)
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
                outlet!(self).fail(key, ErrorCode::HelloExpected, "a second hello")
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
        let Some(seat) = outlet!(self).seat_of(key, room, request) else { return };
        if request.is_some_and(|request| !outlet!(self).is_new_request(key, request)) {
            return;
        }
        if seat.shard == self.env.shard {
            self.host.deliver(&mut below!(self), seat.room, seat.member, message, payload, request);
            return;
        }
        let message = match message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(Cow::Owned(name.clone().into_owned())),
        };
        outlet!(self).act(key, seat, Act::Message { message, payload: payload.to_vec(), request });
    }
}

impl Shard {
    /// Carries out what concerns sessions of this shard, and passes on the rest.
    pub(in crate::shard) fn deliver_user_mail(&mut self) {
        while let Some((shard, mail)) = self.sessions.user_posts.pop_front() {
            if shard == self.env.shard {
                self.user_mail(mail);
            } else {
                self.outbound.post(shard, ShardMail::User(mail));
            }
        }
    }

    pub(in crate::shard) fn user_mail(&mut self, mail: UserMail) {
        match mail {
            UserMail::End(place, end) => outlet!(self).end_by_force(place, &end),
            UserMail::Open(place, user) => outlet!(self).open_waiting(place, &user),
            UserMail::Recheck(place) => self.topics.recheck_access(&mut outlet!(self), place),
            UserMail::Unsubscribe(what) => {
                self.topics.end_subscriptions_of(&mut outlet!(self), &what)
            }
        }
    }
}

impl Shard {
    /// Follows up every room that was called: the directory learns what changed, a room that wants
    /// a sync gets it, players of a room that ends get the last one and leave, and a room that
    /// ended is dropped. Then those who were refused get an error or another room. Connections that
    /// can't be kept are closed on the way, which calls rooms again.
    pub(in crate::shard) fn settle(&mut self) {
        loop {
            while let Some((connection, code, text)) = self.links.doomed.pop() {
                match code {
                    ErrorCode::TooFast => outlet!(self).close_too_fast(connection, &text),
                    _ => outlet!(self).fail(connection, code, &text),
                }
                self.apply_effects();
            }
            self.services.close_leaving(&mut below!(self));
            self.host.take_out_given_up(&mut below!(self));
            self.topics.deliver_device_mail(&mut outlet!(self));
            self.deliver_user_mail();
            self.apply_effects();
            if let Some(key) = self.host.touched.pop() {
                self.host.settle_room(&mut below!(self), key);
                continue;
            }
            // Now that the directory knows of rooms that are ending or have ended, none is picked
            // again.
            let Some((connection, join, error)) = self.host.queues.refusals.pop_front() else {
                break;
            };
            outlet!(self).refused(connection, *join, error);
            self.apply_effects();
        }
    }
}

impl Shard {
    /// Mail from another shard, or from the background.
    pub(crate) fn mail(&mut self, mail: ShardMail) {
        self.deliver_mail(mail);
        self.apply_effects();
    }

    pub(in crate::shard) fn deliver_mail(&mut self, mail: ShardMail) {
        match mail {
            ShardMail::Join { joiner, join } => self.host.admit(&mut below!(self), *joiner, *join),
            ShardMail::Act { room, member, act } => {
                self.host.act_for_other(&mut below!(self), room, member, act)
            }
            ShardMail::Go { room, member, why, farewell } => {
                self.host.vacate(&mut below!(self), room, member, why, farewell);
            }
            ShardMail::Lost { room, member } => {
                self.host.member_lost(&mut below!(self), room, member)
            }
            ShardMail::Measured { room, member, round_trip } => {
                self.host.measured(&mut below!(self), room, member, round_trip);
            }
            ShardMail::Return { room, member, away, address } => {
                self.host.member_returned(&mut below!(self), room, member, away, address);
            }
            ShardMail::Renew { room, member, renewal } => {
                self.host.renew_elsewhere(&mut below!(self), room, member, renewal);
            }
            ShardMail::Returned { connection, room, number, body } => {
                outlet!(self).renewed_elsewhere(connection, room, number, &body);
            }
            ShardMail::Live { room, member } => {
                self.host.member_live(&mut below!(self), room, member)
            }
            ShardMail::Receive { room, member, bytes } => {
                self.host.receive(&mut below!(self), room, member, bytes)
            }
            ShardMail::Seated { connection, number, seat } => {
                outlet!(self).seated(connection, number, seat);
            }
            ShardMail::Refused { connection, join, error } => {
                outlet!(self).refused(connection, *join, error);
            }
            ShardMail::Output { connection, number, done, took, bytes } => {
                self.links.charge(connection, self.env.now, took);
                outlet!(self).forward(connection, number, done, &bytes);
            }
            ShardMail::Holds { connection, number, before, after } => {
                outlet!(self).holds_elsewhere(connection, number, (before, after));
            }
            ShardMail::Ended { connection, number, snapshots, answered } => {
                let session = self.sessions.get_mut(connection);
                let room = session.and_then(|session| session.left(number, snapshots));
                // The session was taken out for another reason while its request was on the way.
                if let Some(request) = room.and_then(|room| room.leaving)
                    && answered != Some(request)
                {
                    outlet!(self).send_error(connection, Some(request), None, &not_joined(number));
                }
                outlet!(self).read_again(connection);
                // It may wait for this room.
                outlet!(self).go_on_returning(connection);
            }
            ShardMail::Relieve(address) => drop(outlet!(self).relieve(Some(&address))),
            ShardMail::Doom { connection, code, text, unless_away } => {
                if !(unless_away && self.links.is_held(connection)) {
                    self.links.doom(&mut self.env, connection, code, text);
                }
            }
            ShardMail::Found(founding) => self.host.found(&mut below!(self), *founding),
            ShardMail::Survey(survey) => self.host.survey(&mut below!(self), *survey),
            ShardMail::Search(search) => self.host.search(&mut below!(self), *search),
            ShardMail::Inspect(inspect) => self.host.inspect(&mut below!(self), *inspect),
            ShardMail::Capture(capturing) => self.host.capture(&mut below!(self), *capturing),
            ShardMail::Operate(operate) => self.host.operate(&mut below!(self), *operate),
            ShardMail::Reserve { room, who, wait, answers } => {
                self.host.reserve_from_outside(&mut below!(self), room, who, wait, answers);
            }
            ShardMail::Post { to, mail } => self.host.mail_to_room(&mut below!(self), to, mail),
            ShardMail::Answered { service, ask, reply } => {
                self.services.answered(
                    &mut below!(self),
                    service,
                    Answered { id: AskId(ask), reply },
                );
            }
            ShardMail::Answer { answer, part } => outlet!(self).http_answer(answer, part),
            ShardMail::Close { room, text } => self.host.close_room(&mut below!(self), room, &text),
            ShardMail::Authenticated { connection, decision, decided } => {
                outlet!(self).authenticated(connection, decision, *decided);
            }
            ShardMail::Channel(mail) => self.topics.channel_mail(&mut outlet!(self), *mail),
            ShardMail::Unsubscribe { channel, shard, session, live, leaves } => {
                self.topics.unsubscribe(
                    &mut outlet!(self),
                    channel,
                    (shard, session),
                    (live, leaves),
                );
            }
            ShardMail::Publication { channel, publication } => {
                self.topics.deliver_publication(&mut outlet!(self), channel, &publication);
            }
            ShardMail::Device(mail) => self.topics.device_mail(&mut outlet!(self), mail),
            ShardMail::User(mail) => self.user_mail(mail),
            ShardMail::Finished { room, mail } => self.host.finished(&mut below!(self), room, mail),
        }
    }
}

impl Shard {
    /// Writes snapshots for those whose turn it is, while there is time for them.
    pub(in crate::shard) fn write_snapshots(&mut self) {
        while let Some(waiting) = self.sessions.snapshots.next_due(self.env.now) {
            self.host.queue_snapshot_now(&mut below!(self), waiting);
        }
        self.pacing.begin_part(&self.env, Part::Snapshots);
        while !self.is_part_over()
            && let Some(waiting) = self.sessions.snapshots.next(self.env.now)
        {
            let began = self.env.stopwatch.read();
            match waiting {
                Waiting::Session(key) => self.host.catch_up_session(&mut below!(self), key),
                Waiting::Member(room, member) => {
                    self.host.serve_member(&mut below!(self), room, member)
                }
            }
            self.apply_effects();
            let took = self.env.stopwatch.read().saturating_sub(began);
            self.sessions.snapshots.took(self.env.now, took);
            self.host.charge_waiting(&mut below!(self), waiting, took);
        }
        self.pacing.end_part(&self.env);
    }
}
