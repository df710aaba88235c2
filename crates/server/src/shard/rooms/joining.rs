//! Joining a room, on the session's shard: which room, and what its client hears.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, LeaveReason, OnePerUser, split_reservation};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, excerpt};

use crate::addresses::Pace;
use crate::directory::keys::code;
use crate::directory::{Choice, Plan};
use crate::room_id::RoomId;
use crate::shard::allowance::Rate;
use crate::shard::connection::patience::Patience;
use crate::shard::frames::{Frame, Stay, ToSession};
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{
    Departure, JoinRequest, JoinTarget, Joiner, Purpose, RETRIES, Reading, RoomSpec,
};
use crate::shard::mail::member::Farewell;
use crate::shard::outbound::Effect;
use crate::shard::rooms::founding::shutting_down;
use crate::shard::rooms::seeking::may_be_elsewhere;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::{Extras, SessionRoom};
use crate::tickets::TicketPass;

/// The most codes drawn to find a free one.
const CODE_TRIES: usize = 16;

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

    /// Picks a room, or has the cluster find it.
    fn join_with(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        target: JoinTarget,
        retries: u8,
        ticket: Option<Box<TicketPass>>,
    ) {
        match &self.env.node.cluster {
            Some(cluster) if may_be_elsewhere(&self.env.node, cluster, &target) => {
                self.seek(key, request, target, retries, ticket);
            }
            _ => self.join_here(key, request, target, retries, ticket),
        }
    }

    /// Picks a room of this node.
    pub(super) fn join_here(
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
        // The miss was counted when its key was read as a code.
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
            JoinTarget::New(spec) if spec.code && spec.key.is_none() => {
                may_create?;
                let (plan, choice) = self.plan_with_code(spec)?;
                spec.key = plan.key;
                choice
            }
            JoinTarget::Any(spec) if retries > 0 || spec.key.is_some() => {
                let id = node.room_id(self.env.entropy.bytes());
                let plan = Plan::new(node, id, spec, self.env.shard);
                let even_full = takes_over(spec.room_type);
                node.directory.choose(&plan, &session.ids(), may_create, even_full)?
            }
            JoinTarget::New(spec) | JoinTarget::Any(spec) => {
                may_create?;
                let id = node.room_id(self.env.entropy.bytes());
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
            let id = node.room_id(self.env.entropy.bytes());
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
            self.env.node.remove_room(join.id);
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
    pub(super) fn tell_seated(&mut self, joiner: &Joiner, number: RoomNumber, seat: Seat) {
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
pub(super) fn give_back(ticket: Option<Box<TicketPass>>) {
    if let Some(ticket) = ticket {
        (ticket.give_back)();
    }
}
