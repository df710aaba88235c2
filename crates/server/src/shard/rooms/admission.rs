//! Joining a room: which room, on which shard, and whether it agrees.
//!
//! The session's shard picks the room from the directory, which reserves the seat. The room's shard
//! creates the room, if need be, and asks it. A [`JoinRequest`] goes from one to the other: with
//! the connection, if the session is in no room yet and may move, or else by mail.

use std::sync::Arc;

use playfield_room::{Admission, Creator, Entrant, Error, Pause, Stage};
use playfield_wire::ErrorCode;

use crate::shard::frames::Stay;
use crate::shard::keys::{Seat, link};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{JoinRequest, Joiner};
use crate::shard::rooms::founding::shutting_down;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::{MemberLink, RemoteLink};
use crate::shard::rooms::member::Member;
use crate::shard::work::{Founder, Host};

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
                below.env.node.remove_room(join.id);
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
            let directory = &below.env.node.directory;
            if directory.is_awaited(join.id) {
                // The player it is created for is on the way.
                self.parked.push((joiner, join));
                return;
            }
            if join.target.is_by_key() && directory.find(join.id).is_some() {
                return self.await_key(below, joiner, join);
            }
            let text = format!("no room has the id {:?}", join.id);
            return self.refuse(below, &joiner, join, Error::new(ErrorCode::RoomNotFound, text));
        };
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        if hosted.room.stage() != Stage::Open && join.target.is_by_key() {
            return self.await_key(below, joiner, join);
        }
        let Joiner { shard, connection, format, .. } = joiner;
        let number = join.number;
        let (lanes, is_here) = (below.outbound.lanes, shard == below.env.shard);
        let is_journaled = hosted.room.journaled().is_some();
        let member_link = if is_here && !is_journaled {
            MemberLink::Local(connection)
        } else {
            let (stay, address) = (Stay { connection, room: number }, Arc::clone(&joiner.address));
            let lane = if is_journaled { lanes.held(shard) } else { shard };
            MemberLink::Remote(Box::new(RemoteLink::new(lane, stay, address)))
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
        let lane = if is_here && is_journaled { lanes.inputs() } else { below.env.shard };
        let seat = Seat { shard: lane, room, member };
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
        if is_journaled {
            // Why it was refused may tell what the journal does not have yet.
            let refused = ShardMail::Refused { connection, join: Box::new(join), error };
            return below.outbound.post(lanes.held(shard), refused);
        }
        self.refuse(below, &joiner, join, error);
    }

    /// Makes a join wait for a key that is about to be free: its room is ending, or its end is not
    /// in the journal yet.
    fn await_key(&mut self, below: &mut Below<'_>, joiner: Joiner, join: JoinRequest) {
        let room = self.by_id.get(&join.id).and_then(|room| self.rooms.get_mut(*room));
        let is_journaled = room.is_none_or(|hosted| hosted.room.journaled().is_some());
        let journaled = below.outbound.journaled.as_ref().filter(|_| is_journaled);
        if journaled.is_some_and(|journaled| journaled.is_stalled()) {
            outlet!(below).cancel(&join);
            return self.refuse(below, &joiner, join, Pause::Journal.error());
        }
        self.parked.push((joiner, join));
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

    /// Returns whether joins or searches wait for a room.
    pub(in crate::shard) fn has_parked(&self) -> bool {
        !(self.parked.is_empty() && self.parked_foundings.is_empty())
    }

    /// Tries the joins again that wait for a room to be created, and the searches that wait for a
    /// key.
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
        for founding in std::mem::take(&mut self.parked_foundings) {
            self.found(below, founding);
        }
    }
}
