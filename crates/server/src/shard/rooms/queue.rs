//! The turn of those who wait for snapshots: members, and sessions on their way back.

use std::sync::Arc;
use std::time::Duration;

use playfield_wire::RoomNumber;
use playfield_wire::client::ResumeRoom;

use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::member::{ResumeCopy, ToMember};
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::MemberLink;
use crate::shard::rooms::member::Standing;
use crate::shard::session::resuming::Step;
use crate::shard::work::{Host, Waiting};

impl RoomHost {
    /// Puts someone into the queue for a snapshot.
    pub(in crate::shard) fn queue_snapshot_now(&mut self, below: &mut Below<'_>, waiting: Waiting) {
        let now = below.env.now;
        self.queue_snapshot(below, waiting, now);
    }

    /// Puts someone into the queue for a snapshot, not before `at`.
    pub(in crate::shard) fn queue_snapshot(
        &mut self,
        below: &mut Below<'_>,
        waiting: Waiting,
        at: Duration,
    ) {
        if at > below.env.now {
            below.sessions.snapshots.wait(waiting, at);
        } else if let Some(host) = self.payer(below, waiting) {
            below.sessions.snapshots.line_up(&mut below.links.work, waiting, host);
        }
    }

    /// Someone has waited until its limits allow a snapshot. A member that asked for one, and has
    /// been sent more meanwhile, first reads that.
    pub(in crate::shard) fn queue_due_snapshot(&mut self, below: &mut Below<'_>, waiting: Waiting) {
        if let Waiting::Member(room, key) = waiting
            && let Some(hosted) = self.rooms.get_mut(room)
            && let Some(member) = hosted.members.get_mut(key)
            && member.wants_snapshot
            && matches!(member.standing, Standing::Live)
            && !delivery!(below, self).is_held(&member.link)
        {
            return self.resync(below, room, key);
        }
        self.queue_snapshot_now(below, waiting);
    }

    /// The client of someone who may wait has come back, maybe from another address: the place goes
    /// with it.
    pub(in crate::shard) fn move_to_line(&mut self, below: &mut Below<'_>, waiting: Waiting) {
        if below.sessions.snapshots.is_in_line(waiting) {
            self.queue_snapshot_now(below, waiting);
        }
    }

    /// The address that is charged for the snapshot.
    fn payer(&mut self, below: &mut Below<'_>, waiting: Waiting) -> Option<Host> {
        let connection = match waiting {
            Waiting::Session(key) => key,
            Waiting::Member(room, member) => {
                match &self.rooms.get(room)?.members.get(member)?.link {
                    MemberLink::Local(connection) => *connection,
                    MemberLink::Remote(link) => return Some(Host(Arc::clone(&link.address))),
                }
            }
        };
        below.links.host(connection)
    }

    pub(in crate::shard) fn charge_waiting(
        &mut self,
        below: &mut Below<'_>,
        waiting: Waiting,
        took: Duration,
    ) {
        match waiting {
            Waiting::Session(key) => below.links.charge(key, below.env.now, took),
            Waiting::Member(room, key) => self.charge_member(below, room, key, took),
        }
    }

    /// A connection has drained: what it missed follows.
    pub(in crate::shard) fn catch_up_all(&mut self, below: &mut Below<'_>, key: ConnectionKey) {
        if outlet!(below).go_on_resuming(key) {
            return;
        }
        below.topics.catch_up_channels(&mut outlet!(below), key);
        let shard = below.env.shard;
        let Some(session) = below.sessions.get_mut(key) else { return };
        let seats: Vec<_> = session.rooms.iter().filter_map(|room| room.seat).collect();
        for seat in seats.into_iter().filter(|seat| seat.shard == shard) {
            self.catch_up(below, seat.room, seat.member);
        }
    }

    /// Serves a session on its way back, in its turn: at most one room brings its copy up to date.
    pub(in crate::shard) fn catch_up_session(&mut self, below: &mut Below<'_>, key: ConnectionKey) {
        let mut has_resumed = false;
        while let Some(step) = outlet!(below).next_step(key) {
            match step {
                Step::ResumeCopy(..) if has_resumed => {
                    let now = below.env.now;
                    return outlet!(below).queue_session(key, now);
                }
                Step::ResumeCopy(room, seat, copy) => {
                    if !self.resume_room(below, key, room, seat, copy) {
                        return;
                    }
                    has_resumed = true;
                }
                Step::SendAgain(last) => outlet!(below).send_again(key, last),
                Step::End => return outlet!(below).end_resume(key),
                Step::StartOver => return outlet!(below).drop_connection(key),
            }
        }
    }

    /// Brings the client's copy of a room up to date. If that is not done yet, the session goes on
    /// when it can be.
    fn resume_room(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        number: RoomNumber,
        seat: Seat,
        copy: Option<ResumeRoom>,
    ) -> bool {
        if below.links.is_loaded(key) {
            // It goes on when the client has read that.
            return false;
        }
        if seat.shard != below.env.shard {
            let Some(resumption) = below.sessions.resumption(key) else { return false };
            let resume_copy = ResumeCopy { number: resumption.resumes, copy };
            let Some(resuming) = resumption.resuming() else { return false };
            resuming.asked = Some(number);
            outlet!(below).tell(seat, ToMember::ResumeCopy(resume_copy));
            return false;
        }
        match self.bring_up_to_date(below, seat.room, seat.member, copy) {
            Ok(body) => outlet!(below).copy_resumed(key, number, &body),
            Err(ready_at) => {
                outlet!(below).queue_session(key, ready_at);
                return false;
            }
        }
        true
    }
}
