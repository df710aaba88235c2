//! Joining a room: which room, on which shard, and whether it agrees.
//!
//! The session's shard picks the room from the directory, which reserves the seat. The room's shard
//! creates the room, if need be, and asks it. A [`JoinRequest`] goes from one to the other: with
//! the connection, if the session is in no room yet and may move, or else by mail.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{
    Admission, Creator, Entrant, Error, LeaveReason, OnePerUser, Stage, split_reservation,
};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, excerpt};

use crate::addresses::Pace;
use crate::directory::keys::code;
use crate::directory::{Choice, Plan};
use crate::room_id::RoomId;
use crate::shard::allowance::Rate;
use crate::shard::connection::patience::Patience;
use crate::shard::frames::{Frame, Stay, ToSession};
use crate::shard::keys::{ConnectionKey, Seat, link};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{
    Departure, JoinRequest, JoinTarget, Joiner, Purpose, RETRIES, Reading, RoomSpec,
};
use crate::shard::mail::member::Farewell;
use crate::shard::outbound::Effect;
use crate::shard::rooms::founding::shutting_down;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::{MemberLink, RemoteLink};
use crate::shard::rooms::member::Member;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::{Extras, SessionRoom};
use crate::shard::work::{Founder, Host};
use crate::tickets::TicketPass;

/// The most codes drawn to find a free one.
const CODE_TRIES: usize = 16;

impl RoomHost {
    /// On the room's shard: creates the room if it is new, and asks it to admit someone.
    pub(in crate::shard) fn admit(
        &mut self,
        below: &mut Below<'_>,
        joiner: Joiner,
        mut join: JoinRequest,
    ) {
        if below.env.is_shutting_down {
            outlet!(below).cancel(&join);
            return self.refuse(below, &joiner, join, shutting_down());
        }
        if std::mem::take(&mut join.create)
            && let Some(spec) = join.target.spec()
        {
            let creator = Creator::player(joiner.name.clone(), joiner.user.clone());
            let creator = (creator, Founder::Client(Host(Arc::clone(&joiner.address))));
            if let Err(error) = self.create_room(below, join.id, spec, creator, Vec::new()) {
                below.env.node.directory.remove(join.id);
                join.is_final = true;
                return self.refuse(below, &joiner, join, error);
            }
            let Some(&room) = self.by_id.get(&join.id) else { return };
            if let Some(hosted) = self.rooms.get_mut(room) {
                hosted.founding = true;
            }
            self.seat(below, joiner, join);
            return self.end_unless_founded(below, room);
        }
        self.seat(below, joiner, join);
    }

    /// Seats someone in a room that is there, or is about to be.
    fn seat(&mut self, below: &mut Below<'_>, mut joiner: Joiner, join: JoinRequest) {
        let Some(&room) = self.by_id.get(&join.id) else {
            if below.env.node.directory.is_awaited(join.id) {
                // The player it is created for is on the way.
                self.parked.push((joiner, join));
                return;
            }
            let text = format!("no room has the id {:?}", join.id);
            return self.refuse(below, &joiner, join, Error::new(ErrorCode::RoomNotFound, text));
        };
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        if hosted.room.stage() != Stage::Open && join.target.is_by_key() {
            // The key is free when the room has ended, which it is about to do.
            self.parked.push((joiner, join));
            return;
        }
        let Joiner { shard, connection, format, .. } = joiner;
        let number = join.number;
        let member_link = if shard == below.env.shard {
            MemberLink::Local(connection)
        } else {
            let (stay, address) = (Stay { connection, room: number }, Arc::clone(&joiner.address));
            MemberLink::Remote(Box::new(RemoteLink::new(shard, stay, address)))
        };
        let member = Member::entering(
            member_link,
            format,
            joiner.snapshots,
            number,
            join.request,
            joiner.is_resumable,
        );
        let member = hosted.members.insert(member);
        let (mut name, mut user) = (std::mem::take(&mut joiner.name), joiner.user.take());
        let mut seat = None;
        if let Some(ticket) = &join.ticket {
            name = ticket.name.clone().unwrap_or(name);
            user = ticket.user.clone().or(user);
            seat = ticket.seat.clone();
        }
        let reservation = join.target.reservation().map(str::to_owned);
        let claims = std::mem::take(&mut joiner.claims);
        let link = link(member);
        let entrant = Entrant { link, format, name, user, claims, seat, reservation };
        let outcome = self.call(below, room, |any, at, out| {
            if any.is_closed() {
                return Err(Error::new(ErrorCode::RoomNotFound, "the room has just ended"));
            }
            any.join(at, entrant, out)
        });

        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let seat = Seat { shard: below.env.shard, room, member };
        // `None` if it was taken out again before the room had said yes.
        let entered = hosted.members.get_mut(member);
        let error = match (outcome, entered) {
            (Some(Ok(Admission::Waiting(player))), Some(waiting)) => {
                waiting.player = player;
                // The reserved seat stays so until the room has decided.
                waiting.hold(join);
                return outlet!(below).tell_seated(&joiner, number, seat);
            }
            (Some(Ok(Admission::Seated(player))), Some(seated)) => {
                seated.player = player;
                seated.admit();
                below.env.node.directory.seated(join.id, hosted.room.summary());
                hosted.founding = false;
                hosted.sync_awaited |= hosted.room.sync_hz() == 0;
                return outlet!(below).tell_seated(&joiner, number, seat);
            }
            (Some(Err(error)), _) => error,
            (Some(Ok(_)) | None, _) => Error::new(ErrorCode::RoomClosed, "the room ended"),
        };
        below.env.node.directory.seated(join.id, hosted.room.summary());
        hosted.members.remove(member);
        self.refuse(below, &joiner, join, error);
    }

    /// On the room's shard: the room, or its shard, did not agree.
    fn refuse(&mut self, below: &mut Below<'_>, joiner: &Joiner, join: JoinRequest, error: Error) {
        let &Joiner { shard, connection, .. } = joiner;
        let is_here = shard == below.env.shard;
        if is_here && !join.may_retry(error.code()) {
            return outlet!(below).refused(connection, join, error);
        }
        let join = Box::new(join);
        if is_here {
            // The directory may not know yet that the room is ending.
            return self.queues.refusals.push_back((connection, join, error));
        }
        below.outbound.post(shard, ShardMail::Refused { connection, join, error });
    }

    /// Tries the joins again that wait for a room to be created.
    pub(in crate::shard) fn retry_parked(&mut self, below: &mut Below<'_>) {
        for (joiner, join) in std::mem::take(&mut self.parked) {
            if joiner.shard == below.env.shard {
                // The session may have ended.
                match outlet!(below).joiner(joiner.connection) {
                    Some(joiner) => self.admit(below, joiner, join),
                    None => outlet!(below).cancel(&join),
                }
            } else {
                self.admit(below, joiner, join);
            }
        }
    }
}

impl Outlet<'_> {
    /// Picks a room for a session, and sends the request there.
    pub(in crate::shard) fn join(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        target: JoinTarget,
        ticket: Option<Box<TicketPass>>,
    ) {
        if let Err(error) = self.links.take_pace(self.env, key, Pace::Join) {
            give_back(ticket);
            return self.send_error(key, Some(request), None, &error);
        }
        self.join_with(key, request, target, RETRIES, ticket);
    }

    fn join_with(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        target: JoinTarget,
        retries: u8,
        ticket: Option<Box<TicketPass>>,
    ) {
        let is_user = ticket.as_ref().is_some_and(|ticket| ticket.user.is_some());
        match self.pick(key, request, target, retries, is_user) {
            Ok((shard, join)) => self.send_off(key, shard, JoinRequest { ticket, ..join }),
            Err(error) => {
                give_back(ticket);
                self.refuse_join(key, request, &error);
            }
        }
    }

    /// Refuses a join, and counts it if a limit is why. The text of such an error begins with the
    /// limit's name.
    pub(in crate::shard) fn refuse_join(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        why: &Error,
    ) {
        let counters = &mut self.env.counters;
        match why.text().split(':').next() {
            Some("limits.session.rooms") => counters.joins_refused += 1,
            Some("limits.session.rooms_created") => counters.creations_refused += 1,
            Some("limits.session.keys_missed") => counters.keys_refused += 1,
            Some("limits.rooms") => counters.rooms_refused += 1,
            Some("rooms.lateness") => counters.joins_refused_late += 1,
            Some("rooms.busy_percent") => counters.rooms_refused_busy += 1,
            _ => {}
        }
        self.send_error(key, Some(request), None, why);
    }

    fn pick(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        mut target: JoinTarget,
        retries: u8,
        is_user: bool,
    ) -> Result<(u16, JoinRequest), Error> {
        let node = &self.env.node;
        let gone = || Error::new(ErrorCode::Internal, "the session ended");
        let connection = self.links.get_mut(key).ok_or_else(gone)?;
        let address = Arc::clone(connection.tally.address());
        let session = self.sessions.get_mut(key).ok_or_else(gone)?;
        let is_user = is_user || session.user().is_some();
        // The room knows whether the same user is there.
        let takes_over = |room_type: u16| {
            let settings = &node.room_types[usize::from(room_type)].settings;
            is_user && settings.one_per_user == OnePerUser::TakeOver
        };
        let rooms_max = node.config.limits.session.rooms;
        if session.rooms.len() >= rooms_max {
            let text = format!("limits.session.rooms: this session is in {rooms_max} rooms");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if self.env.is_shutting_down {
            return Err(shutting_down());
        }
        if self.env.is_frozen {
            return Err(Error::new(ErrorCode::Busy, "the node is being upgraded; try again"));
        }
        let limits = &node.config.limits.session;
        let rate = Rate::new("limits.session.rooms_created", limits.rooms_created);
        let may_create = match target.spec() {
            Some(spec) => node.may_create(spec.room_type),
            None => Ok(()),
        };
        // It was counted when its key was read as a code.
        let is_counted = target.spec().is_some_and(|spec| matches!(spec.reading, Reading::Literal));
        let may_create = may_create.and_then(|()| {
            if is_counted {
                return Ok(());
            }
            session.allowances().creations.check(self.env.now, rate)?;
            let may = address.check(Pace::Room, self.env.now);
            self.env.counters.rooms_refused_by_address += u64::from(may.is_err());
            may
        });
        if let Some(spec) = target.spec_mut()
            && node.is_persistent(spec.room_type)
        {
            spec.read_as_code(&node.directory);
        }
        let choice = match &mut target {
            JoinTarget::Room(text) => {
                let reservation = split_reservation(text);
                let id = reservation.map_or(&**text, |(id, _)| id);
                let not_found = || {
                    let text = format!("no room has the id {:?}", excerpt(id, 64));
                    Error::new(ErrorCode::RoomNotFound, text)
                };
                let id = RoomId::parse(id).ok_or_else(not_found)?;
                if session.rooms.iter().any(|room| room.id == id) {
                    return Err(Error::new(
                        ErrorCode::AlreadyJoined,
                        "this session is in that room",
                    ));
                }
                let place = node.directory.find(id).ok_or_else(not_found)?;
                let even_full = reservation.is_some() || takes_over(place.room_type);
                node.directory.reserve(id, even_full)?;
                Choice { id, shard: place.shard, new: false }
            }
            JoinTarget::Key(room_type, text) => {
                let rate = Rate::new("limits.session.keys_missed", limits.keys_missed);
                session.allowances().misses.check(self.env.now, rate)?;
                if let Err(error) = address.check(Pace::MissedKey, self.env.now) {
                    self.env.counters.keys_refused_by_address += 1;
                    return Err(error);
                }
                let (rooms, even_full) = (session.ids(), takes_over(*room_type));
                let chosen = node.directory.reserve_by_key(*room_type, text, &rooms, even_full);
                if chosen.as_ref().is_err_and(|error| error.code() == ErrorCode::RoomNotFound) {
                    session.allowances_mut().misses.take(self.env.now, rate);
                    address.spend(Pace::MissedKey, self.env.now);
                }
                chosen?
            }
            JoinTarget::New(spec) if spec.code => {
                may_create?;
                let (plan, choice) = self.plan_with_code(spec)?;
                spec.key = plan.key;
                choice
            }
            JoinTarget::Any(spec) if retries > 0 || spec.key.is_some() => {
                let id = RoomId::from_random(self.env.entropy.bytes());
                let plan = Plan::new(node, id, spec, self.env.shard);
                let even_full = takes_over(spec.room_type);
                node.directory.choose(&plan, &session.ids(), may_create, even_full)?
            }
            JoinTarget::New(spec) | JoinTarget::Any(spec) => {
                may_create?;
                let id = RoomId::from_random(self.env.entropy.bytes());
                node.directory.plan(&Plan::new(node, id, spec, self.env.shard))?
            }
        };
        let Some(session) = self.sessions.get_mut(key) else { return Err(gone()) };
        if choice.new && !is_counted {
            session.allowances_mut().creations.take(self.env.now, rate);
            address.spend(Pace::Room, self.env.now);
        }
        let extras = session.extras_mut();
        extras.rooms_numbered += 1;
        let (number, id) = (RoomNumber(extras.rooms_numbered), choice.id);
        session.rooms.push(SessionRoom::entering(number, id, Some(request)));
        let (create, is_final, ticket) = (choice.new, false, None);
        let join = JoinRequest { request, number, id, target, create, retries, is_final, ticket };
        Ok((choice.shard, join))
    }

    /// Registers a new room under a code that no other room has.
    fn plan_with_code(&mut self, spec: &RoomSpec) -> Result<(Plan, Choice), Error> {
        let node = Arc::clone(&self.env.node);
        let mut taken = Error::new(ErrorCode::RoomExists, "all codes are taken");
        for _ in 0..CODE_TRIES {
            let id = RoomId::from_random(self.env.entropy.bytes());
            let key = Some(code::from_random(self.env.entropy.bytes()));
            let plan = Plan { key, ..Plan::new(&node, id, spec, self.env.shard) };
            match node.directory.plan(&plan) {
                Err(error) if error.code() == ErrorCode::RoomExists => taken = error,
                Err(error) => return Err(error),
                Ok(choice) => return Ok((plan, choice)),
            }
        }
        Err(taken)
    }

    fn send_off(&mut self, key: ConnectionKey, shard: u16, join: JoinRequest) {
        if shard == self.env.shard {
            return self.admit_here(key, join);
        }
        if self.outbound.congested[usize::from(shard)] {
            return self.refuse_busy(key, join);
        }
        let Some(connection) = self.links.get(key) else { return };
        let Some(session) = self.sessions.get(key) else { return };
        // The homes of its channels, and the registry of devices, know where it is.
        if session.extras().is_none_or(Extras::may_move)
            && session.rooms.len() == 1
            && !connection.is_device
        {
            let departure = Departure { target: shard, purpose: Purpose::Join(Box::new(join)) };
            self.depart(key, departure);
            self.sessions.departing.push_back(key);
        } else if let Some(joiner) = self.joiner(key) {
            let (joiner, join) = (Box::new(joiner), Box::new(join));
            self.outbound.post(shard, ShardMail::Join { joiner, join });
        }
    }

    /// A session of this shard, as one that joins.
    pub(in crate::shard) fn joiner(&self, key: ConnectionKey) -> Option<Joiner> {
        let connection = self.links.get(key)?;
        let session = self.sessions.get(key)?;
        Some(Joiner {
            shard: self.env.shard,
            connection: key,
            format: connection.dialect.format,
            name: session.name().to_owned(),
            user: session.user().map(str::to_owned),
            claims: session.claims(),
            snapshots: session.allowances().snapshots,
            is_resumable: connection.resumable,
            address: Arc::clone(connection.tally.address()),
        })
    }

    /// The room's shard can't take the request now.
    pub(in crate::shard) fn refuse_busy(&mut self, key: ConnectionKey, mut join: JoinRequest) {
        self.cancel(&join);
        join.is_final = true;
        let text = "limits.queues.mail: the mailbox of the room's shard is full; try again";
        self.refused(key, join, Error::new(ErrorCode::Busy, text));
    }

    /// Drops a request: its seat is free again, and the room that was to be created for it is not.
    pub(in crate::shard) fn cancel(&mut self, join: &JoinRequest) {
        let directory = &self.env.node.directory;
        if join.create && directory.is_awaited(join.id) {
            directory.remove(join.id);
        } else {
            directory.release(join.id);
        }
    }

    /// Admits a session of this shard to a room of this shard.
    pub(in crate::shard) fn admit_here(&mut self, key: ConnectionKey, join: JoinRequest) {
        match self.joiner(key) {
            Some(joiner) => {
                let (joiner, join) = (Box::new(joiner), Box::new(join));
                let effect = Effect::Mail(ShardMail::Join { joiner, join });
                self.outbound.effects.push_back(effect);
            }
            None => self.cancel(&join),
        }
    }

    /// Tells the session where it sits.
    fn tell_seated(&mut self, joiner: &Joiner, number: RoomNumber, seat: Seat) {
        let &Joiner { shard, connection, .. } = joiner;
        if shard == self.env.shard {
            self.seated(connection, number, seat);
        } else {
            let stay = Stay { connection, room: number };
            let frame = Frame::Session(stay, ToSession::Seated(seat));
            self.outbound.frames(shard, |out| frame.append(out));
        }
    }

    /// On the session's shard: the room agreed, or holds the player.
    pub(in crate::shard) fn seated(&mut self, key: ConnectionKey, number: RoomNumber, seat: Seat) {
        let connection = self.links.get(key);
        let heard = connection.map_or(self.env.now, |connection| connection.heard.time());
        let session = self.sessions.get_mut(key);
        let Some(room) = session.and_then(|session| session.room_mut(number)) else {
            // The session ended while its request was on the way.
            return self.go(seat, LeaveReason::ConnectionLost, Farewell::None);
        };
        room.seat = Some(seat);
        let node = &self.env.node;
        if let Some(place) = node.directory.find(room.id) {
            let settings = node.room_types[usize::from(place.room_type)].settings;
            room.patience = Patience::of(settings);
            room.grace = Duration::from_millis(settings.grace_ms);
            let asks_at = heard.saturating_add(room.patience.ask);
            self.links.look_by(key, asks_at);
            self.measure_for(key, number, settings);
        }
        if self.links.is_blocked(key) {
            self.note_blocked(key);
        }
        self.seated_away(key, seat);
    }

    /// On the session's shard: a session was refused. It gets the error, or another room if any
    /// would do.
    pub(in crate::shard) fn refused(
        &mut self,
        key: ConnectionKey,
        mut join: JoinRequest,
        error: Error,
    ) {
        if let Some(session) = self.sessions.get_mut(key) {
            session.remove(join.number);
        }
        if join.may_retry(error.code()) {
            let (request, retries, ticket) = (join.request, join.retries - 1, join.ticket.take());
            self.join_with(key, request, join.next_target(error.code()), retries, ticket);
        } else {
            give_back(join.ticket.take());
            let error = join.answer(error);
            self.send_error(key, Some(join.request), None, &error);
        }
    }

    /// Answers a request with an error, or sends one that answers none.
    pub(in crate::shard) fn send_error(
        &mut self,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        room: Option<RoomNumber>,
        error: &Error,
    ) {
        let (code, text) = (error.code(), error.text().into());
        let retry_after_ms = error.retry_after_ms();
        let message =
            ServerMessage::Error(server::Error { request, room, code, text, retry_after_ms });
        self.send(key, &message);
    }
}

/// The room was not entered: the ticket can be used again.
fn give_back(ticket: Option<Box<TicketPass>>) {
    if let Some(ticket) = ticket {
        (ticket.give_back)();
    }
}
