//! The output of rooms, on its way to connections, other shards and the background.

use std::any::TypeId;
use std::future::pending;
use std::time::Duration;

use playfield_room::recording::RecordedKind;
use playfield_room::{
    Completion, Error, EventHeader, Held, Job, Link, Mail, NewRoom, PlayerId, Publication, Push,
    RoomOutput, Task,
};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};
use tokio::sync::oneshot;

use crate::background::Origin;
use crate::founding::Founding;
use crate::room_id::RoomId;
use crate::shard::connection::{Kind, Links};
use crate::shard::env::Env;
use crate::shard::frames::{Stay, ToSession};
use crate::shard::keys::{RoomKey, member_key};
use crate::shard::mail::ShardMail;
use crate::shard::outbound::Outbound;
use crate::shard::rooms::capture::Capture;
use crate::shard::rooms::host::{Below, Queues, RoomHost};
use crate::shard::rooms::link::MemberLink;
use crate::shard::rooms::member::{Member, Members, Standing};
use crate::shard::rooms::pausing::Waits;
use crate::shard::rooms::record::Record;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::sessions::Sessions;
use crate::shard::topics::Topics;
use crate::shard::topics::channels::payload_of;
use crate::shard::work::Founder;

/// Instead of a room's id: mail from outside the node's rooms.
const OUTSIDE: &str = "";

/// The maximum bytes of an event beside its payload.
pub(super) const EVENT_HEADER_BYTES_MAX: usize = 64;

/// All that a room's output can reach.
pub(crate) struct Delivery<'a> {
    pub(in crate::shard) env: &'a mut Env,
    pub(in crate::shard) links: &'a mut Links,
    pub(in crate::shard) sessions: &'a mut Sessions,
    pub(in crate::shard) topics: &'a mut Topics,
    pub(in crate::shard) outbound: &'a mut Outbound,
    pub(in crate::shard) queues: &'a mut Queues,
}

impl Delivery<'_> {
    pub(in crate::shard) fn outlet(&mut self) -> Outlet<'_> {
        let Self { env, links, sessions, outbound, .. } = self;
        Outlet { env, links, sessions, outbound }
    }

    pub(crate) fn post(&mut self, shard: u16, mail: ShardMail) {
        self.outbound.post(shard, mail);
    }

    /// Registers a room that another room requests, and has it created: later, if the other room's
    /// journal `holds` it.
    fn found(&mut self, new: NewRoom, founder: Founder, holds: bool) -> Result<(), Error> {
        let (shard, founding) =
            Founding::register(&self.env.node, self.env.shard, new, founder, 0)?;
        let is_here = shard == self.env.shard;
        let is_full = if is_here {
            self.outbound.local_foundings.len() >= self.env.node.config.limits.queues.mail
        } else {
            self.outbound.congested[usize::from(shard)]
        };
        if is_full {
            self.env.node.remove_room(founding.id);
            let text = "limits.queues.mail: the mailbox of the room's shard is full; try again";
            return Err(Error::new(ErrorCode::Busy, text));
        }
        if holds {
            let lane = self.outbound.lanes.held(self.env.shard);
            self.post(lane, ShardMail::Create { shard, founding: Box::new(founding) });
        } else if is_here {
            self.outbound.local_foundings.push(founding);
        } else {
            self.post(shard, ShardMail::Found(Box::new(founding)));
        }
        Ok(())
    }

    /// Sends mail from a room to another.
    pub(crate) fn post_to_room(&mut self, from: RoomId, to: &str, mail: Mail) {
        if to == OUTSIDE
            && let Mail::Answered { ask, reply } = mail
        {
            return self.env.node.asks.answer(ask, reply);
        }
        let Self { outbound, env, .. } = self;
        let place = RoomId::parse(to)
            .and_then(|id| Some((id, outbound.room_places.find(id, &env.node.directory)?)));
        let not_found =
            || Error::new(ErrorCode::RoomNotFound, format!("no room has the id {to:?}"));
        let Some((to, shard)) = place else {
            return self.undeliverable(mail, not_found);
        };
        // The question was accepted, so its answer is delivered in any case.
        let is_answer = matches!(mail, Mail::Answered { .. });
        let is_full = if shard == self.env.shard {
            self.outbound.local_mail.len() >= self.env.node.config.limits.queues.mail
        } else {
            self.outbound.congested[usize::from(shard)]
        };
        if is_full && !is_answer {
            // It may have ended since its place was learned.
            if self.env.node.directory.find(to).is_none() {
                return self.undeliverable(mail, not_found);
            }
            let text = "limits.queues.mail: the mailbox of the room's shard is full";
            return self.undeliverable(mail, || Error::new(ErrorCode::Busy, text));
        }
        debug_assert!(from != to || shard == self.env.shard, "a room is on its own shard");
        if shard == self.env.shard {
            self.outbound.local_mail.push_back((to, mail));
        } else {
            self.post(shard, ShardMail::Post { to, mail });
        }
    }

    /// Answers mail that can't be delivered, if it asks for an answer.
    pub(crate) fn undeliverable(&mut self, mail: Mail, why: impl FnOnce() -> Error) {
        self.env.counters.mail_dropped += 1;
        if let Mail::Asked { from, ask, .. } = mail {
            let Some(from) = from else {
                return self.env.node.asks.answer(ask, Err(why()));
            };
            let answer = Mail::Answered { ask, reply: Err(why()) };
            let place = RoomId::parse(&from.room_id)
                .and_then(|id| Some((id, self.env.node.directory.find(id)?.shard)));
            match place {
                Some((from, shard)) if shard == self.env.shard => {
                    self.outbound.local_mail.push_back((from, answer));
                }
                Some((from, shard)) => self.post(shard, ShardMail::Post { to: from, mail: answer }),
                None => {}
            }
        }
    }

    /// The member has left its room: its session is informed. `answered` is the request to leave
    /// that was answered, if it was one.
    pub(crate) fn part(&mut self, mut member: Member, answered: Option<RequestNumber>) {
        let _ = self.take_held(&mut member);
        self.leave(&member, answered);
    }
}

/// The output of one room, for the time of one call.
pub(crate) struct HostedRoomOutput<'a> {
    pub(crate) delivery: Delivery<'a>,
    pub(crate) members: &'a mut Members,
    /// The number of waiting players who have joined.
    pub(crate) admitted: &'a mut u32,
    pub(crate) room: RoomKey,
    pub(crate) id: RoomId,
    pub(crate) founder: &'a Founder,
    /// The record of messages, while an operator looks.
    pub(crate) record: Option<&'a mut Record>,
    /// The profile, while an operator has one made.
    pub(crate) capture: Option<&'a mut Capture>,
}

impl HostedRoomOutput<'_> {
    /// Counts a message that a member sends, and records it.
    #[inline]
    pub(crate) fn note_message(
        &mut self,
        from: (PlayerId, Format),
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        self.delivery.queues.traffic.received(self.room, payload.len());
        if self.record.is_some() {
            self.record_message(from, message, payload, request);
        }
    }

    #[cold]
    fn record_message(
        &mut self,
        from: (PlayerId, Format),
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        if let Some(record) = &mut self.record {
            let kind = RecordedKind::message(message, request);
            record.add(self.delivery.env.now, from.0, from.1, kind, payload);
        }
    }

    /// Begins to measure a message, if there is a profile.
    #[inline]
    pub(crate) fn begin_message(&self) -> Option<Duration> {
        self.capture.as_ref().map(|_| self.delivery.env.stopwatch.read())
    }

    /// Counts the message that was handled since.
    #[inline]
    pub(crate) fn end_message(
        &mut self,
        began: Option<Duration>,
        message: &MessageRef<'_>,
        payload: &[u8],
    ) {
        if let (Some(capture), Some(began)) = (&mut self.capture, began) {
            let took = self.delivery.env.stopwatch.read().saturating_sub(began);
            capture.handled(message, payload, took);
        }
    }

    /// Takes a request off the list of those that wait for an answer; false if it isn't there.
    fn is_answer(member: &mut Member, request: RequestNumber) -> bool {
        let Some(at) = member.unanswered.iter().rposition(|&unanswered| unanswered == request)
        else {
            return false;
        };
        member.unanswered.swap_remove(at);
        true
    }
}

impl RoomOutput for HostedRoomOutput<'_> {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        let key = member_key(link);
        let Some(member) = self.members.get_mut(key) else { return };
        if let Some(record) = &mut self.record {
            let kind = RecordedKind::Reply(request);
            record.add(self.delivery.env.now, member.player, member.format, kind, payload);
        }
        if Self::is_answer(member, request) {
            let kind = Kind::Counted(Some(member.number));
            self.delivery.write(self.room, member, kind, |format, out| {
                server::write_reply(format, out, request, payload);
            });
        }
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        let key = member_key(link);
        let Some(member) = self.members.get_mut(key) else { return };
        if error.code() == ErrorCode::TooFast {
            self.delivery.env.counters.messages_too_fast += 1;
        }
        if let Some(record) = &mut self.record {
            let kind = RecordedKind::Error(error.code(), request);
            record.add(
                self.delivery.env.now,
                member.player,
                member.format,
                kind,
                error.text().as_bytes(),
            );
        }
        if request.is_none_or(|request| Self::is_answer(member, request)) {
            let room = if request.is_none() { Some(member.number) } else { None };
            let text = error.text().into();
            let (code, retry_after_ms) = (error.code(), error.retry_after_ms());
            let message =
                ServerMessage::Error(server::Error { request, room, code, text, retry_after_ms });
            self.delivery.send(self.room, member, &message);
        }
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        let key = member_key(link);
        let Some(member) = self.members.get_mut(key) else { return };
        if let Some(record) = &mut self.record {
            let kind = RecordedKind::Event(event.index);
            record.add(self.delivery.env.now, member.player, member.format, kind, payload);
        }
        if let Some(capture) = &mut self.capture {
            capture.event(member.player, event, payload);
        }
        match &mut member.standing {
            Standing::Live => self.delivery.event(self.room, member, event, payload),
            Standing::Entering(_) => {
                self.delivery.hold_event((self.room, key), member, event, payload);
            }
        }
    }

    fn admitted(&mut self, link: Link, player: PlayerId) {
        let Some(member) = self.members.get_mut(member_key(link)) else { return };
        member.player = player;
        member.admit();
        *self.admitted += 1;
    }

    fn refused(&mut self, link: Link, why: &Error) {
        let key = member_key(link);
        let Some(join) = self.members.get_mut(key).and_then(Member::take_held) else { return };
        let Some(mut member) = self.members.remove(key) else { return };
        self.delivery.env.node.directory.release(self.id);
        let _ = self.delivery.take_held(&mut member);
        let error = why.clone();
        match member.link {
            MemberLink::Local(connection) => {
                self.delivery.queues.refusals.push_back((connection, join, error));
            }
            MemberLink::Remote(link) => {
                let refused = ShardMail::Refused { connection: link.connection(), join, error };
                self.delivery.post(link.shard, refused);
            }
        }
    }

    fn removed(&mut self, link: Link, why: &Error) {
        let key = member_key(link);
        let Some(mut member) = self.members.remove(key) else { return };
        let (code, text) = (why.code(), why.text().into());
        let message = match &member.standing {
            Standing::Live => {
                ServerMessage::Left(server::Left { request: None, room: member.number, code, text })
            }
            Standing::Entering(entering) if entering.seated => {
                ServerMessage::Error(server::Error {
                    request: Some(entering.request),
                    room: None,
                    code,
                    text,
                    retry_after_ms: why.retry_after_ms(),
                })
            }
            // The join that asked the room finds it gone, and answers.
            Standing::Entering(_) => {
                let _ = self.delivery.take_held(&mut member);
                return;
            }
        };
        self.delivery.send(self.room, &mut member, &message);
        // A client that sends far too much is not served elsewhere either.
        if why.code() == ErrorCode::TooFast {
            let text = why.text().to_owned();
            self.delivery.close(&member.link, ErrorCode::TooFast, text, false);
        }
        self.delivery.part(member, None);
    }

    fn publish(&mut self, publication: Publication) {
        let Publication { channel, payload } = publication;
        let delivery = &mut self.delivery;
        delivery.topics.publish(&mut outlet!(delivery), &channel, payload_of(payload));
    }

    fn push(&mut self, push: Push) {
        let delivery = &mut self.delivery;
        delivery.topics.push_to_devices(&mut outlet!(delivery), push);
    }

    fn spawn(&mut self, task: u64, work: Task) -> Result<(), Error> {
        let origin = Origin { shard: self.delivery.env.shard, room: self.room, task };
        self.delivery.outbound.background.spawn(origin, work)
    }

    fn waits(&mut self, player: PlayerId) {
        let standing = self.delivery.queues.standing.get_mut(&self.room);
        let waits = standing.and_then(|members| members.get_mut(&player));
        let Some(Waits { member, acts }) = waits else { return };
        let Some(member) = self.members.get_mut(*member) else { return };
        *acts += 1;
        match &mut member.link {
            MemberLink::Local(connection) => {
                let stay = Stay { connection: *connection, room: member.number };
                self.delivery.outlet().act_waits(stay);
            }
            MemberLink::Remote(link) => link.put(self.delivery.outbound, ToSession::Waits),
        }
    }

    fn fenced(&mut self) -> bool {
        let is_clustered = self.delivery.env.node.cluster.is_some();
        if is_clustered {
            self.delivery.queues.fenced.push(self.room);
        }
        is_clustered
    }

    fn completion(&mut self, save: u64) -> Completion {
        self.delivery.queues.saves.begins(self.delivery.env.now, self.room, save);
        let origin = Origin { shard: self.delivery.env.shard, room: self.room, task: save };
        self.delivery.outbound.background.completion(origin)
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<(), Error> {
        let origin = Origin { shard: self.delivery.env.shard, room: self.room, task };
        self.delivery.outbound.background.compute(origin, job)
    }

    fn create(&mut self, room: NewRoom) -> Result<(), Error> {
        self.delivery.found(room, self.founder.clone(), false)
    }

    fn find(&mut self, rust_type: TypeId, key: &str) -> Result<Option<String>, Error> {
        let node = &self.delivery.env.node;
        let room_type = node.first_of(rust_type)?;
        Ok(node.directory.find_by_key(room_type, key).map(|id| id.to_string()))
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.delivery.post_to_room(self.id, to, mail);
    }

    fn hold(&mut self, held: Held) -> Result<(), Error> {
        let Delivery { env, outbound, .. } = &mut self.delivery;
        let lane = outbound.lanes.held(env.shard);
        let mail = match held {
            Held::Spawn(task, work) => {
                let (begin, begins) = oneshot::channel();
                let work = async move {
                    if begins.await.is_err() {
                        // The node ends.
                        pending::<()>().await;
                    }
                    work.await
                };
                self.spawn(task, Box::pin(work))?;
                ShardMail::Begin(Box::new(move || {
                    // The node may end.
                    let _ = begin.send(());
                }))
            }
            Held::Compute(task, job) => {
                let origin = Origin { shard: env.shard, room: self.room, task };
                ShardMail::Begin(outbound.background.compute_later(origin, job)?)
            }
            Held::Create(room) => return self.delivery.found(*room, self.founder.clone(), true),
            held => ShardMail::Held { room: self.id, held },
        };
        self.delivery.post(lane, mail);
        Ok(())
    }
}

impl RoomHost {
    /// Sends what a journaled room has made, now that the journal has the cause.
    pub(in crate::shard) fn send_held(&mut self, below: &mut Below<'_>, room: RoomId, held: Held) {
        let mut delivery = delivery!(below, self);
        match held {
            Held::Publish(Publication { channel, payload }) => {
                let delivery = &mut delivery;
                delivery.topics.publish(&mut outlet!(delivery), &channel, payload_of(payload));
            }
            Held::Push(push) => {
                let delivery = &mut delivery;
                delivery.topics.push_to_devices(&mut outlet!(delivery), push);
            }
            Held::Post(to, mail) => delivery.post_to_room(room, &to, mail),
            Held::Spawn(..) | Held::Compute(..) | Held::Create(_) => {}
        }
    }
}
