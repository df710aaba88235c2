//! Rooms of other shards: mail, from both ends.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{AskId, Mail};
use playfield_wire::{ErrorCode, RoomNumber};

use crate::addresses::Address;
use crate::service::Answered;
use crate::shard::connection::{Kind, Moving};
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey, Seat};
use crate::shard::mail::{Act, ShardMail};
use crate::shard::parcels::{Parcel, unpack};
use crate::shard::rooms::join::{Departure, Purpose};
use crate::shard::rooms::member::{MemberOutput, RemoteSession, Renewal};
use crate::shard::rooms::sync::mark_joined;
use crate::shard::session::Session;
use crate::shard::session::messages::not_joined;
use crate::shard::snapshots::Waiting;
use crate::shard::{SHUTTING_DOWN, Shard};

impl Shard {
    /// Mail from another shard, or from the background.
    pub(crate) fn mail(&mut self, mail: ShardMail) {
        match mail {
            ShardMail::Join { joiner, join } => self.admit(*joiner, *join),
            ShardMail::Act { room, member, act } => self.act_for_other(room, member, act),
            ShardMail::Go { room, member, why, farewell } => {
                self.vacate(room, member, why, farewell);
            }
            ShardMail::Lost { room, member } => self.lost_elsewhere(room, member),
            ShardMail::Measured { room, member, round_trip } => {
                self.measured(room, member, round_trip);
            }
            ShardMail::Return { room, member, away, address } => {
                self.returned_elsewhere(room, member, away, address);
            }
            ShardMail::Renew { room, member, renewal } => {
                self.renew_elsewhere(room, member, renewal);
            }
            ShardMail::Returned { connection, room, number, body } => {
                self.renewed_elsewhere(connection, room, number, &body);
            }
            ShardMail::Live { room, member } => self.live_elsewhere(room, member),
            ShardMail::Receive { room, member, bytes } => self.receive(room, member, bytes),
            ShardMail::Seated { connection, number, seat } => {
                self.seated(connection, number, seat);
            }
            ShardMail::Refused { connection, join, error } => {
                self.refused(connection, *join, error);
            }
            ShardMail::Output { connection, number, done, took, bytes } => {
                self.delivery.charge_connection(connection, self.now, took);
                self.forward(connection, number, done, &bytes);
            }
            ShardMail::Holds { connection, number, before, after } => {
                self.holds_elsewhere(connection, number, (before, after));
            }
            ShardMail::Ended { connection, number, snapshots, answered } => {
                let session = self.delivery.connections.session_mut(connection);
                let room = session.and_then(|session| session.left(number, snapshots));
                // The session was taken out for another reason while its request was on the way.
                if let Some(request) = room.and_then(|room| room.leaving)
                    && answered != Some(request)
                {
                    self.send_error(connection, Some(request), None, &not_joined(number));
                }
                self.read_again(connection);
                // It may wait for this room.
                self.go_on_returning(connection);
            }
            ShardMail::Relieve(address) => drop(self.relieve(Some(&address))),
            ShardMail::Doom { connection, code, text, unless_away } => {
                if !(unless_away && self.delivery.connections.is_held(connection)) {
                    self.delivery.doom_connection(connection, code, text);
                }
            }
            ShardMail::Found(founding) => self.found(*founding),
            ShardMail::Survey(survey) => self.survey(*survey),
            ShardMail::Search(search) => self.search(*search),
            ShardMail::Inspect(inspect) => self.inspect(*inspect),
            ShardMail::Capture(capturing) => self.capture(*capturing),
            ShardMail::Operate(operate) => self.operate(*operate),
            ShardMail::Reserve { room, who, wait, answers } => {
                self.reserve_from_outside(room, who, wait, answers);
            }
            ShardMail::Post { to, mail } => self.mail_to_room(to, mail),
            ShardMail::Answered { service, ask, reply } => {
                self.answered(service, Answered { id: AskId(ask), reply });
            }
            ShardMail::Answer { answer, part } => self.http_answer(answer, part),
            ShardMail::Close { room, text } => self.close_room(room, &text),
            ShardMail::Authenticated { connection, decision, decided } => {
                self.authenticated(connection, decision, *decided);
            }
            ShardMail::Channel(mail) => self.delivery.channel_mail(*mail),
            ShardMail::Unsubscribe { channel, shard, session, live, leaves } => {
                self.delivery.unsubscribe(channel, (shard, session), (live, leaves));
            }
            ShardMail::Publication { channel, publication } => {
                self.delivery.deliver_publication(channel, &publication);
            }
            ShardMail::Device(mail) => self.device_mail(mail),
            ShardMail::User(mail) => self.user_mail(mail),
            ShardMail::Finished { room, mail } => self.finished(room, mail),
        }
    }

    fn finished(&mut self, room: RoomKey, mail: Mail) {
        // A room that ended meanwhile has no use for it.
        self.call(room, |any, at, out| {
            if !any.is_closed() {
                any.mail(at, mail, out);
            }
        });
    }

    /// On the session's shard: output of a room elsewhere.
    fn forward(&mut self, key: ConnectionKey, number: RoomNumber, done: u32, bytes: &[u8]) {
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let Some(session) = connection.session.as_deref_mut() else { return };
        let Some(room) = session.room_mut(number) else { return };
        room.acts = room.acts.saturating_sub(done);
        if bytes.is_empty() {
            return self.read_again(key);
        }
        let is_first = room.request.is_some();
        room.undelivered += bytes.len();
        connection.owes_receipts = true;
        let is_held = connection.held;
        for (at, parcel) in unpack(bytes, number).enumerate() {
            let connections = &mut self.delivery.connections;
            match parcel {
                // The room sends state again once the client is back.
                Parcel::Message(Kind::Fleeting, _) if is_held => {}
                Parcel::Message(kind, body) => {
                    connections.write(key, kind, |_, out| out.extend_from_slice(body));
                }
                Parcel::Lost(messages) => connections.lose(key, number, messages),
            }
            if is_first && at == 0 {
                mark_joined(&mut self.delivery, key, number);
            }
        }
        if is_held {
            // It is where it will be kept.
            self.send_receipts(key);
        }
        self.read_again(key);
    }

    /// On the room's shard: the session of a member has lost its connection.
    fn lost_elsewhere(&mut self, room: RoomKey, member: MemberKey) {
        let Some(session) = self.elsewhere(room, member) else { return };
        (session.held, session.doomed, session.renewal) = (true, false, None);
        let began = self.stopwatch.read();
        self.lost(Seat { shard: self.delivery.shard, room, member });
        self.charge_member_since(room, member, began);
    }

    /// On the room's shard: the session of a member has a connection again.
    fn returned_elsewhere(
        &mut self,
        room: RoomKey,
        member: MemberKey,
        away: Duration,
        address: Arc<Address>,
    ) {
        let Some(session) = self.elsewhere(room, member) else { return };
        (session.held, session.doomed, session.renewal) = (true, false, None);
        session.address = address;
        let began = self.stopwatch.read();
        self.returned(Seat { shard: self.delivery.shard, room, member }, away);
        self.charge_member_since(room, member, began);
    }

    /// Charges the client of a member for what was done since then.
    fn charge_member_since(&mut self, room: RoomKey, key: MemberKey, began: Duration) {
        let took = self.stopwatch.read().saturating_sub(began);
        self.charge_member(room, key, took);
    }

    /// Charges the client of a member for work that was done for it alone.
    pub(super) fn charge_member(&mut self, room: RoomKey, key: MemberKey, took: Duration) {
        let hosted = self.rooms.get_mut(room);
        if took > Duration::ZERO
            && let Some(member) = hosted.and_then(|hosted| hosted.members.get_mut(key))
        {
            self.delivery.charge((room, key), &mut member.output, self.now, took);
        }
    }

    /// On the room's shard: the copy of a client that has come back is the next to be renewed. What
    /// the member is sent until it is live again would not arrive.
    fn renew_elsewhere(&mut self, room: RoomKey, member: MemberKey, renewal: Renewal) {
        let Some(session) = self.elsewhere(room, member) else { return };
        (session.held, session.renewal) = (true, Some(renewal));
        self.queue_snapshot(Waiting::Member(room, member), self.now);
    }

    /// On the room's shard: the session of a member takes output again.
    fn live_elsewhere(&mut self, room: RoomKey, member: MemberKey) {
        let Some(session) = self.elsewhere(room, member) else { return };
        session.held = false;
        if session.in_flight == 0 {
            self.catch_up(room, member);
        }
        self.announce_join(room, member);
    }

    /// On the session's shard: reads on, if rooms elsewhere have done enough of what they were
    /// sent.
    fn read_again(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.delivery.connections.get_mut(key)
            && connection.pause.acts
            && !connection.session.as_deref().is_some_and(Session::has_acts_enough)
        {
            connection.pause.acts = false;
            self.resumed.push(key);
        }
    }

    /// On the room's shard: does what a member elsewhere asks for; later, if its client is behind
    /// with reading. A client of this shard would not be read meanwhile.
    fn act_for_other(&mut self, room: RoomKey, key: MemberKey, act: Act) {
        let high_bytes = self.delivery.node.config.outbox_high_bytes;
        if let Some(session) = self.elsewhere(room, key)
            && (session.is_behind(high_bytes) || !session.waiting.is_empty())
        {
            return session.waiting.push_back(act);
        }
        self.perform(room, key, act);
        self.note_done(room, key);
    }

    /// On the room's shard: an act was done. The member's shard is informed at the end of the turn.
    fn note_done(&mut self, room: RoomKey, key: MemberKey) {
        if let Some(session) = self.elsewhere(room, key) {
            session.done += 1;
            if session.done == 1 && session.out.is_empty() {
                self.delivery.remote_dirty.push((room, key));
            }
        }
    }

    /// The session of a member that sits elsewhere.
    fn elsewhere(&mut self, room: RoomKey, key: MemberKey) -> Option<&mut RemoteSession> {
        match &mut self.rooms.get_mut(room)?.members.get_mut(key)?.output {
            MemberOutput::Elsewhere(session) => Some(session),
            MemberOutput::Here(_) => None,
        }
    }

    /// On the session's shard: confirms to rooms elsewhere that their output was written.
    pub(super) fn send_receipts(&mut self, key: ConnectionKey) {
        let Some(session) = self.delivery.connections.session_mut(key) else { return };
        let mut receipts = Vec::new();
        for room in &mut session.rooms {
            let bytes = std::mem::take(&mut room.undelivered);
            if let Some(Seat { shard, room, member }) = room.seat
                && bytes > 0
            {
                receipts.push((shard, ShardMail::Receive { room, member, bytes }));
            }
        }
        for (shard, mail) in receipts {
            self.delivery.post(shard, mail);
        }
    }

    /// On the room's shard: output for a member elsewhere was written.
    fn receive(&mut self, room: RoomKey, key: MemberKey, bytes: usize) {
        let Some(session) = self.elsewhere(room, key) else { return };
        session.in_flight = session.in_flight.saturating_sub(bytes);
        if session.in_flight == 0 {
            self.catch_up(room, key);
        }
        let high_bytes = self.delivery.node.config.outbox_high_bytes;
        while let Some(session) = self.elsewhere(room, key)
            && !session.is_behind(high_bytes)
            && let Some(act) = session.waiting.pop_front()
        {
            self.perform(room, key, act);
            self.note_done(room, key);
        }
    }

    /// On the room's shard: what members elsewhere are owed goes into the mail.
    pub(super) fn ship_remote_output(&mut self) {
        for (room, key) in std::mem::take(&mut self.delivery.remote_dirty) {
            let member = self.rooms.get_mut(room).and_then(|hosted| hosted.members.get_mut(key));
            if let Some(member) = member {
                self.delivery.ship(member);
            }
        }
    }

    /// The next connection that leaves for another shard, and where it goes. Its key means nothing
    /// from here on.
    pub(crate) fn next_departure(&mut self) -> Option<(ConnectionKey, u16, Moving)> {
        while let Some(key) = self.departing.pop() {
            let departure = self
                .delivery
                .connections
                .get_mut(key)
                .and_then(|connection| connection.departure.take());
            // It may have been closed meanwhile.
            let Some(departure) = departure else { continue };
            let Departure { target, purpose } = *departure;
            if let Some(connection) = self.delivery.connections.remove(key) {
                self.sessions -= u64::from(connection.session.is_some());
                if let Some(session) = connection.session.as_deref()
                    && let Some(resumption) = session.resumption.as_ref()
                {
                    self.forget_session(session.number, key, resumption.home, target);
                }
                let moving = Moving { connection: Box::new(connection), purpose };
                return Some((key, target, moving));
            }
        }
        None
    }

    /// A connection arrived from another shard.
    pub(crate) fn arrive(&mut self, moving: Moving) -> ConnectionKey {
        let (key, purpose) = self.take_in(moving, true);
        if self.is_shutting_down {
            if let Purpose::Join(join) = purpose {
                self.cancel(&join);
            }
            self.goodbye(key, ErrorCode::ShuttingDown, SHUTTING_DOWN, None);
            return key;
        }
        match purpose {
            Purpose::Join(join) => {
                self.admit_here(key, *join);
                self.resumed.push(key);
            }
            Purpose::Resume(comeback) => self.send_to_session(key, comeback),
        }
        key
    }

    /// A connection came back, because the mailbox was full that it was to go through.
    pub(crate) fn come_back(&mut self, moving: Moving) -> ConnectionKey {
        let (key, purpose) = self.take_in(moving, false);
        match purpose {
            Purpose::Join(join) => {
                self.refuse_busy(key, *join);
                self.resumed.push(key);
            }
            Purpose::Resume(comeback) => self.try_again(key, comeback),
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
                    self.delivery.post(target, ShardMail::Join { joiner, join });
                }
                self.resumed.push(key);
            }
            Purpose::Resume(comeback) => self.try_again(key, comeback),
        }
        key
    }

    fn take_in(&mut self, moving: Moving, moved: bool) -> (ConnectionKey, Purpose) {
        let Moving { mut connection, purpose } = moving;
        let mut resumed = None;
        if let Some(session) = connection.session.as_deref_mut() {
            if moved {
                session.extras_mut().moved = true;
            }
            self.sessions += 1;
            let number = session.number;
            resumed = session.resumption.as_ref().map(|resumption| (number, resumption.home));
        }
        let key = self.delivery.connections.insert(*connection);
        self.note_place(key);
        self.go_on_returning(key);
        if let Some((number, home)) = resumed {
            self.by_session.insert(number, key, &self.delivery.connections);
            self.delivery.node.away.moved(number, home, self.delivery.shard);
        }
        self.look_at(key, self.now);
        (key, purpose)
    }

    /// Whether all mail to a shard went out; if not, nothing more is read from those who write to
    /// it.
    pub(crate) fn posted(&mut self, shard: u16, all: bool) {
        let was_congested =
            std::mem::replace(&mut self.delivery.congested[usize::from(shard)], !all);
        if all && was_congested {
            for (_, key) in self.waiting_for_mailbox.extract_if(.., |(to, _)| *to == shard) {
                if let Some(connection) = self.delivery.connections.get_mut(key) {
                    connection.pause.mailbox = false;
                    self.resumed.push(key);
                }
            }
        }
    }
}
