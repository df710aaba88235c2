//! Acts of members, here or on other shards, and what becomes of their sessions.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, LeaveReason, Mail, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use crate::addresses::AddressName;
use crate::shard::env::Env;
use crate::shard::frames::ToSession;
use crate::shard::keys::{MemberKey, RoomKey, Seat};
use crate::shard::mail::Act;
use crate::shard::mail::member::{Farewell, ResumeCopy, ToMember};
use crate::shard::outbound::Outbound;
use crate::shard::rooms::delivery::HostedRoomOutput;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::{MemberLink, RemoteLink};
use crate::shard::rooms::member::farewell_to;
use crate::shard::session::messages::duplicate;
use crate::shard::work::{Host, Waiting, WorkQueue};

impl RoomHost {
    /// Gives a member's message to its room.
    #[inline(always)]
    pub(in crate::shard) fn deliver(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        member: MemberKey,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        let Some((any, at, mut out)) = self.begin_call(below, room) else { return };
        let Some((player, format)) = out.sender(member, request) else { return };
        out.note_message((player, format), message, payload, request);
        let began = out.begin_message();
        any.message(at, player, message, payload, request, &mut out);
        out.end_message(began, message, payload);
    }

    /// Does what the session of a member says.
    pub(in crate::shard) fn heard(
        &mut self,
        below: &mut Below<'_>,
        seat: Seat,
        what: ToMember<'_>,
    ) {
        let Seat { room, member, .. } = seat;
        match what {
            ToMember::Act(act) => self.act_for_other(below, room, member, act),
            ToMember::Go { why, farewell } => self.vacate(below, room, member, why, farewell),
            ToMember::Lost => self.member_lost(below, room, member),
            ToMember::Measured(round_trip) => self.measured(below, room, member, round_trip),
            ToMember::Resumed { away, address } => {
                self.member_resumed(below, room, member, away, address);
            }
            ToMember::ResumeCopy(resume_copy) => {
                self.resume_copy_elsewhere(below, room, member, resume_copy);
            }
            ToMember::ResumeEnded => self.member_resume_ended(below, room, member),
            ToMember::Blocked => self.member_blocked(room, member),
            ToMember::Received(bytes) => self.receive(below, room, member, bytes),
        }
    }

    /// Does what a member of a room of this shard asks for.
    fn perform(&mut self, below: &mut Below<'_>, room: RoomKey, member: MemberKey, act: Act<'_>) {
        match act {
            Act::Message { message, payload, request } => {
                self.deliver(below, room, member, &message, &payload, request);
            }
            Act::Leave { request } => {
                self.vacate(below, room, member, LeaveReason::Left, Farewell::Asked(request));
            }
            Act::Resync => self.resync(below, room, member),
        }
    }

    /// Takes a member out of its room, with a last word for it.
    pub(in crate::shard) fn vacate(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        why: LeaveReason,
        farewell: Farewell,
    ) {
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let Some(mut member) = hosted.members.remove(key) else { return };
        if member.take_held().is_some() {
            below.env.node.directory.release(hosted.id);
        }
        let player = member.player;
        self.call(below, room, |any, at, out| {
            if !any.is_closed() {
                any.leave(at, player, why, out);
            }
        });
        if let Some(message) = farewell_to(farewell, &member) {
            delivery!(below, self).send(room, &mut member, &message);
        }
        let request = match farewell {
            Farewell::Asked(request) => Some(request),
            Farewell::None | Farewell::GraceOver | Farewell::TooMuch => None,
        };
        delivery!(below, self).part(member, request);
    }

    pub(in crate::shard) fn finished(&mut self, below: &mut Below<'_>, room: RoomKey, mail: Mail) {
        if let (Mail::Saved { save, .. }, Some(hosted)) = (&mail, self.rooms.get_mut(room)) {
            hosted.saved = hosted.saved.max(Some(*save));
        }
        // A room that ended meanwhile has no use for it.
        self.call(below, room, |any, at, out| {
            if !any.is_closed() {
                any.mail(at, mail, out);
            }
        });
        self.pause_fenced(below);
    }

    /// On the room's shard: the session of a member has lost its connection.
    fn member_lost(&mut self, below: &mut Below<'_>, room: RoomKey, member: MemberKey) {
        if let Some(link) = self.remote_link(room, member) {
            (link.held, link.doomed, link.resume_copy) = (true, false, None);
        }
        let began = below.env.stopwatch.read();
        if let Some(player) = self.player_of(room, member) {
            self.call(below, room, |any, at, out| any.lost(at, player, out));
        }
        self.charge_member_since(below, room, member, began);
    }

    /// On the room's shard: the session of a member has a connection again.
    fn member_resumed(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        member: MemberKey,
        away: Duration,
        address: AddressName,
    ) {
        if let Some(link) = self.remote_link(room, member) {
            (link.held, link.doomed, link.resume_copy) = (true, false, None);
            link.address = below.env.node.addresses.named(address, below.env.now);
        }
        let began = below.env.stopwatch.read();
        if let Some(player) = self.player_of(room, member) {
            self.call(below, room, |any, at, out| any.returned(at, player, away, out));
        }
        self.move_to_line(below, Waiting::Member(room, member));
        self.charge_member_since(below, room, member, began);
    }

    /// Charges the client of a member for what was done since then.
    fn charge_member_since(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        began: Duration,
    ) {
        let took = below.env.stopwatch.read().saturating_sub(began);
        self.charge_member(below, room, key, took);
    }

    /// Charges the client of a member for work that was done for it alone.
    pub(super) fn charge_member(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        took: Duration,
    ) {
        let hosted = self.rooms.get_mut(room);
        if took > Duration::ZERO
            && let Some(member) = hosted.and_then(|hosted| hosted.members.get_mut(key))
        {
            delivery!(below, self).charge(&member.link, took);
        }
    }

    /// On the room's shard: the copy of a client that has come back is the next to be renewed. What
    /// the member is sent until it is live again would not arrive.
    fn resume_copy_elsewhere(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        member: MemberKey,
        resume_copy: ResumeCopy,
    ) {
        let Some(link) = self.remote_link(room, member) else { return };
        (link.held, link.resume_copy) = (true, Some(resume_copy));
        self.queue_snapshot_now(below, Waiting::Member(room, member));
    }

    /// On the room's shard: the session of a member takes output again.
    fn member_resume_ended(&mut self, below: &mut Below<'_>, room: RoomKey, member: MemberKey) {
        let mut is_ready = true;
        if let Some(link) = self.remote_link(room, member) {
            (link.held, link.doomed) = (false, false);
            is_ready = !link.is_behind(below.env.turn);
        }
        if is_ready {
            self.catch_up(below, room, member);
        }
        self.announce_join(room, member);
    }

    /// On the room's shard: does what a member elsewhere asks for; later, if its client is behind
    /// with reading. A client of this shard would not be read meanwhile.
    fn act_for_other(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        key: MemberKey,
        act: Act<'_>,
    ) {
        let high_bytes = below.env.node.config.limits.session.outbox_bytes.high;
        if let Some(link) = self.remote_link(room, key)
            && (link.is_loaded(high_bytes) || !link.waiting.is_empty())
        {
            return link.waiting.push_back(act.into_owned());
        }
        self.perform(below, room, key, act);
        self.note_done(below, room, key);
    }

    /// Returns whether a message for this seat need not go by a lane: the room is journaled and of
    /// this shard, and nothing that comes before the message waits.
    pub(in crate::shard) fn takes_at_once(
        &mut self,
        outbound: &mut Outbound,
        env: &Env,
        seat: Seat,
    ) -> bool {
        if seat.shard != outbound.lanes.inputs() || outbound.has_input() {
            return false;
        }
        let high_bytes = env.node.config.limits.session.outbox_bytes.high;
        self.remote_link(seat.room, seat.member)
            .is_some_and(|link| !link.is_loaded(high_bytes) && link.waiting.is_empty())
    }

    /// Does what members elsewhere asked for, and what waits until their clients have read more.
    pub(in crate::shard) fn do_all_waiting(&mut self, below: &mut Below<'_>) {
        for room in self.rooms.keys() {
            self.do_waiting(below, room);
        }
    }

    /// Does the same for the members of one room.
    pub(in crate::shard) fn do_waiting(&mut self, below: &mut Below<'_>, room: RoomKey) {
        let members = self.rooms.get(room).map_or(Vec::new(), |hosted| hosted.members.keys());
        for key in members {
            while let Some(link) = self.remote_link(room, key)
                && let Some(act) = link.waiting.pop_front()
            {
                self.perform(below, room, key, act);
                self.note_done(below, room, key);
            }
        }
    }

    /// On the room's shard: an act of a member elsewhere was done.
    fn note_done(&mut self, below: &mut Below<'_>, room: RoomKey, key: MemberKey) {
        if let Some(link) = self.remote_link(room, key) {
            link.put(below.outbound, ToSession::Done);
        }
    }

    /// The address that is charged for what a member asks for whose session is on another shard, if
    /// work waits.
    pub(in crate::shard) fn payer_elsewhere(
        &mut self,
        work: &WorkQueue,
        seat: Seat,
    ) -> Option<Host> {
        if work.is_empty() {
            return None;
        }
        let link = self.remote_link(seat.room, seat.member)?;
        Some(Host(Arc::clone(&link.address)))
    }

    /// The link of a member whose session is on another shard.
    fn remote_link(&mut self, room: RoomKey, key: MemberKey) -> Option<&mut RemoteLink> {
        match &mut self.rooms.get_mut(room)?.members.get_mut(key)?.link {
            MemberLink::Remote(link) => Some(link),
            MemberLink::Local(_) => None,
        }
    }

    /// On the room's shard: more waits for the client of a member elsewhere than its transport
    /// takes.
    fn member_blocked(&mut self, room: RoomKey, key: MemberKey) {
        if let Some(link) = self.remote_link(room, key) {
            link.blocked = true;
        }
    }

    /// On the room's shard: messages for a member elsewhere were passed on.
    fn receive(&mut self, below: &mut Below<'_>, room: RoomKey, key: MemberKey, bytes: usize) {
        let Some(link) = self.remote_link(room, key) else { return };
        link.confirm(bytes);
        if !link.is_behind(below.env.turn) {
            self.catch_up(below, room, key);
        }
        let high_bytes = below.env.node.config.limits.session.outbox_bytes.high;
        while let Some(link) = self.remote_link(room, key)
            && !link.is_loaded(high_bytes)
            && let Some(act) = link.waiting.pop_front()
        {
            self.perform(below, room, key, act);
            self.note_done(below, room, key);
        }
    }

    /// The round trip to a member of a room of this shard was measured.
    fn measured(
        &mut self,
        below: &mut Below<'_>,
        room: RoomKey,
        member: MemberKey,
        round_trip: Duration,
    ) {
        if let Some(player) = self.player_of(room, member) {
            self.call(below, room, |any, at, out| any.measured(at, player, round_trip, out));
        }
    }

    /// Takes players out who have no connection, and whom their rooms have sent too much before
    /// they were in.
    pub(in crate::shard) fn take_out_given_up(&mut self, below: &mut Below<'_>) {
        while let Some((room, member)) = self.queues.given_up.pop() {
            self.vacate(below, room, member, LeaveReason::ConnectionLost, Farewell::TooMuch);
        }
    }
}

impl HostedRoomOutput<'_> {
    /// The player whose message is about to be handled, and the format of the player's messages. A
    /// request that is not handled is answered with an error.
    #[inline]
    fn sender(
        &mut self,
        key: MemberKey,
        request: Option<RequestNumber>,
    ) -> Option<(PlayerId, Format)> {
        let sender = self.members.get_mut(key)?;
        if let Some(request) = request {
            let unanswered_max = self.delivery.env.node.config.limits.session.requests;
            let is_known = sender.unanswered.contains(&request);
            if is_known || sender.unanswered.len() >= unanswered_max {
                self.refuse_request(key, request, is_known);
                return None;
            }
            sender.unanswered.push(request);
        }
        Some((sender.player, sender.format))
    }

    /// Refuses a request whose number waits for an answer, or that is one too many.
    #[cold]
    fn refuse_request(&mut self, key: MemberKey, request: RequestNumber, is_known: bool) {
        let Some(sender) = self.members.get_mut(key) else { return };
        let unanswered_max = self.delivery.env.node.config.limits.session.requests;
        let error = if is_known {
            duplicate(request)
        } else {
            let text = format!("limits.session.requests: {unanswered_max} requests are unanswered");
            Error::new(ErrorCode::Limit, text)
        };
        let message = ServerMessage::Error(server::Error {
            request: Some(request),
            room: None,
            code: error.code(),
            text: error.text().into(),
            retry_after_ms: None,
        });
        self.delivery.send(self.room, sender, &message);
    }
}
