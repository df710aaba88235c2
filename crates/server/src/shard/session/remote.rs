//! Mail of sessions and rooms of other shards.

use playfield_wire::{ErrorCode, RequestNumber};

use crate::shard::allowance::Allowance;
use crate::shard::connection::Kind;
use crate::shard::env::SHUTTING_DOWN;
use crate::shard::frames::{Frame, Stay, ToSession};
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{Departure, Purpose};
use crate::shard::mail::member::ToMember;
use crate::shard::outbound::Effect;
use crate::shard::session::messages::not_joined;
use crate::shard::session::moving::Moving;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::{Session, SessionRoom};

impl Outlet<'_> {
    /// On the session's shard: does what a room elsewhere says.
    pub(in crate::shard) fn hear(&mut self, stay: Stay, what: ToSession<'_>) {
        let Stay { connection: key, room: number } = stay;
        match what {
            ToSession::Seated(seat) => self.seated(key, number, seat),
            ToSession::Joined(body) => {
                self.switch_before(key, body);
                self.pass_on(stay, Kind::Counted(Some(number)), body);
                self.sessions.told_joined(key, number);
            }
            ToSession::Counted(body) => self.pass_on(stay, Kind::Counted(Some(number)), body),
            ToSession::Fleeting(body) => self.pass_on(stay, Kind::Fleeting, body),
            ToSession::Lost => self.lose_message(key, number),
            ToSession::Done => self.acts_done(stay, 1),
            ToSession::Waits => self.act_waits(stay),
            ToSession::Took(time) => self.links.charge(key, self.env.now, time),
            ToSession::Holds { before, after } => self.holds_events(stay, before, after),
            ToSession::CopyResumed { number: resumes, body } => {
                self.copy_resumed_elsewhere(key, number, resumes, body);
            }
            ToSession::Doom { code, text, unless_away } => {
                if !(unless_away && self.links.is_held(key)) {
                    self.links.doom(self.env, key, code, text.to_owned());
                }
            }
            ToSession::Left { snapshots, answered } => {
                let snapshots = Allowance::with_remaining(snapshots, self.env.now);
                self.left_elsewhere(stay, snapshots, answered);
            }
        }
    }

    /// An act of a member waits until its room goes on.
    pub(in crate::shard) fn act_waits(&mut self, stay: Stay) {
        if let Some(session) = self.sessions.get_mut(stay.connection)
            && let Some(room) = session.room_mut(stay.room)
        {
            room.acts += 1;
            let is_enough = session.has_acts_enough();
            if let Some(connection) = self.links.get_mut(stay.connection) {
                connection.pause.acts = is_enough;
            }
        }
    }

    /// A room has done so many acts of a member.
    pub(in crate::shard) fn acts_done(&mut self, stay: Stay, count: u32) {
        if let Some(room) = self.stay_mut(stay) {
            room.acts = room.acts.saturating_sub(count);
            self.read_again(stay.connection);
        }
    }

    fn stay_mut(&mut self, stay: Stay) -> Option<&mut SessionRoom> {
        self.sessions.get_mut(stay.connection)?.room_mut(stay.room)
    }

    /// Passes a message of a room elsewhere on to the client.
    fn pass_on(&mut self, stay: Stay, kind: Kind, body: &[u8]) {
        let key = stay.connection;
        let Some(room) = self.stay_mut(stay) else { return };
        room.undelivered += body.len();
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.owes_receipts = true;
        let is_held = connection.held;
        // A room sends state again once the client is back.
        if !(is_held && kind == Kind::Fleeting) {
            self.write(key, kind, |_, out| out.extend_from_slice(body));
        }
        if is_held {
            // It is where it will be kept.
            self.send_receipts(key);
        }
    }

    /// A session has left a room elsewhere.
    fn left_elsewhere(
        &mut self,
        stay: Stay,
        snapshots: Allowance,
        answered: Option<RequestNumber>,
    ) {
        let Stay { connection: key, room: number } = stay;
        let session = self.sessions.get_mut(key);
        let room = session.and_then(|session| session.left(number, snapshots));
        // The session was taken out for another reason while its request was on the way.
        if let Some(request) = room.and_then(|room| room.leaving)
            && answered != Some(request)
        {
            self.send_error(key, Some(request), None, &not_joined(number));
        }
        self.read_again(key);
        // It may wait for this room: to go on on its way back, or to end.
        self.go_on_resuming(key);
        self.expire_away(key);
    }

    /// On the session's shard: reads on, if rooms elsewhere have done enough of what they were
    /// sent.
    pub(in crate::shard) fn read_again(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.links.get_mut(key)
            && connection.pause.acts
            && !self.sessions.get(key).is_some_and(Session::has_acts_enough)
        {
            connection.pause.acts = false;
            self.links.resumed.push(key);
        }
    }

    /// On the session's shard: a write has left bytes behind. Rooms elsewhere send no patches until
    /// they are written, as those here.
    pub(in crate::shard) fn note_blocked(&mut self, key: ConnectionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        for of in &mut session.rooms {
            if let Some(seat) = of.seat
                && seat.shard != self.env.shard
                && !std::mem::replace(&mut of.told_blocked, true)
            {
                let frame = Frame::Member(seat, ToMember::Blocked);
                self.outbound.frames(seat.shard, |out| frame.append(out));
                if let Some(connection) = self.links.get_mut(key) {
                    connection.owes_receipts = true;
                }
            }
        }
    }

    /// On the session's shard: confirms to rooms elsewhere that their output was written.
    pub(super) fn send_receipts(&mut self, key: ConnectionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        for of in &mut session.rooms {
            let bytes = std::mem::take(&mut of.undelivered);
            let was_blocked = std::mem::take(&mut of.told_blocked);
            if let Some(seat) = of.seat
                && (bytes > 0 || was_blocked)
            {
                let frame = Frame::Member(seat, ToMember::Received(bytes));
                self.outbound.frames(seat.shard, |out| frame.append(out));
            }
        }
    }

    /// Says something to a seat of the session, here or on another shard.
    pub(in crate::shard) fn tell(&mut self, seat: Seat, what: ToMember<'static>) {
        if seat.shard == self.env.shard {
            self.outbound.effects.push_back(Effect::Mail(ShardMail::Member(seat, what)));
        } else {
            self.outbound.frames(seat.shard, |out| Frame::Member(seat, what).append(out));
        }
    }

    /// The next connection that leaves for another shard, and where it goes. Its key means nothing
    /// from here on.
    pub(crate) fn next_departure(&mut self) -> Option<(ConnectionKey, u16, Moving)> {
        while let Some(key) = self.sessions.departing.pop_front() {
            // It may have been closed meanwhile.
            let Some(departure) = self.take_departure(key) else { continue };
            let Departure { target, purpose } = departure;
            if let Some(connection) = self.links.remove(key) {
                let session = self.sessions.remove(key);
                self.sessions.count -= u64::from(session.is_some());
                if let Some(session) = &session
                    && let Some(resumption) = session.resumption.as_ref()
                {
                    self.forget_session(session.number, key, resumption.home, target);
                }
                let moving = Moving { connection: Box::new(connection), session, purpose };
                return Some((key, target, moving));
            }
        }
        None
    }

    /// A connection arrived from another shard.
    pub(crate) fn arrive(&mut self, moving: Moving) -> ConnectionKey {
        let (key, purpose) = self.take_in(moving, true);
        if self.env.is_shutting_down {
            if let Purpose::Join(join) = purpose {
                self.cancel(&join);
            }
            self.goodbye(key, ErrorCode::ShuttingDown, SHUTTING_DOWN, None);
            return key;
        }
        match purpose {
            Purpose::Join(join) => {
                self.admit_here(key, *join);
                self.links.resumed.push(key);
            }
            Purpose::Resume(request) => self.send_resume(key, request),
        }
        key
    }

    /// A connection came back, because the mailbox was full that it was to go through.
    pub(crate) fn bounced(&mut self, moving: Moving) -> ConnectionKey {
        let (key, purpose) = self.take_in(moving, false);
        match purpose {
            Purpose::Join(join) => {
                self.refuse_busy(key, *join);
                self.links.resumed.push(key);
            }
            Purpose::Resume(request) => self.retry_resume(key, request),
        }
        key
    }

    /// A connection came back, because the descriptor table of the other shard is full, or the way
    /// there. What it was to do there goes there without it.
    pub(crate) fn stay(&mut self, moving: Moving, target: u16) -> ConnectionKey {
        let (key, purpose) = self.take_in(moving, false);
        match purpose {
            Purpose::Join(join) => {
                if let Some(joiner) = self.joiner(key).map(Box::new) {
                    self.outbound.post(target, ShardMail::Join { joiner, join });
                }
                self.links.resumed.push(key);
            }
            Purpose::Resume(request) => self.retry_resume(key, request),
        }
        key
    }

    fn take_in(&mut self, moving: Moving, moved: bool) -> (ConnectionKey, Purpose) {
        let Moving { connection, session, purpose } = moving;
        let key = self.links.insert(*connection);
        let mut resumed = None;
        if let Some(mut session) = session {
            if moved {
                session.extras_mut().moved = true;
            }
            self.sessions.count += 1;
            let number = session.number;
            resumed = session.resumption.as_ref().map(|resumption| (number, resumption.home));
            self.sessions.insert(key, session);
        }
        self.note_place(key);
        self.go_on_resuming(key);
        if let Some((number, home)) = resumed {
            self.sessions.note_resumable(number, key);
            self.env.node.away.moved(number, home, self.env.shard);
        }
        self.links.look_at(key, self.env.now);
        (key, purpose)
    }

    /// Whether all mail to a shard went out; if not, nothing more is read from those who write to
    /// it.
    pub(crate) fn posted(&mut self, shard: u16, all: bool) {
        let was_congested =
            std::mem::replace(&mut self.outbound.congested[usize::from(shard)], !all);
        if all && was_congested {
            for (_, key) in self.links.waiting_for_mailbox.extract_if(.., |(to, _)| *to == shard) {
                if let Some(connection) = self.links.slab.get_mut(key) {
                    connection.pause.mailbox = false;
                    self.links.resumed.push(key);
                }
            }
        }
    }
}
