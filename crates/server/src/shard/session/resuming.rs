//! A session whose client has come back: step by step it is sent what it missed, and then takes
//! part again.
//!
//! Its rooms bring their copies up to date one after the other: first those that the client knows,
//! then, among the counted messages that it has not handled, each that it joined by one of them.
//! Until all is sent, the session is held: what is counted goes into its log, and is sent in its
//! turn. Between two rooms it waits in the [queue for snapshots](crate::shard::snapshots); where
//! the client has much to read, until it has read that; and for rooms of other shards.

use playfield_room::LeaveReason;
use playfield_wire::client::ResumeRoom;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RoomNumber};

use crate::shard::connection::Phase;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::member::{Farewell, ToMember};
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::resumption::{Presence, Resuming};
use crate::shard::session::{Session, SessionRoom};

/// The next step of a session on its way back.
pub(in crate::shard) enum Step {
    /// A room brings the client's copy up to date.
    ResumeCopy(RoomNumber, Seat, Option<ResumeRoom>),
    /// Counted messages are sent again, up to this one.
    SendAgain(u64),
    /// Nothing is missing any more.
    End,
    /// Rooms had more to say meanwhile than is kept: the client has to come back once more, to
    /// learn what is lost.
    StartOver,
}

impl Resuming {
    /// The next step of the session; `None` while a room of another shard has not answered.
    fn next(&mut self, session: &Session, gone: u64, sent: u64) -> Option<Step> {
        let joined = |room: &&SessionRoom| {
            room.request.is_none() && room.seat.is_some() && room.joined_at > 0
        };
        let rooms = || session.rooms.iter().filter(joined);
        if let Some(asked) = self.asked.take_if(|asked| rooms().all(|room| room.number != *asked)) {
            // It has left that room meanwhile.
            self.up_to_date.push(asked);
        }
        if self.asked.is_some() {
            return None;
        }
        let due = || rooms().filter(|room| !self.up_to_date.contains(&room.number));
        let known = |room: &&SessionRoom| room.joined_at <= self.received;
        let named = self.copies.iter().find_map(|copy| {
            let room = due().filter(known).find(|room| room.number == copy.room)?;
            Some((room, Some(*copy)))
        });
        let new = |room: &&SessionRoom| (self.began..=self.sent).contains(&room.joined_at);
        let next = named
            .or_else(|| due().find(known).map(|room| (room, None)))
            .or_else(|| due().find(new).map(|room| (room, None)));
        if let Some((room, copy)) = next
            && let Some(seat) = room.seat
        {
            return Some(Step::ResumeCopy(room.number, seat, copy));
        }
        if gone > self.sent {
            return Some(Step::StartOver);
        }
        let joined = due().map(|room| room.joined_at).filter(|at| *at > self.sent);
        let next = joined.min().unwrap_or(sent);
        Some(if self.sent < sent { Step::SendAgain(next) } else { Step::End })
    }
}

impl Outlet<'_> {
    /// Goes on with a session that is on its way back, if it is one.
    pub(in crate::shard) fn go_on_resuming(&mut self, key: ConnectionKey) -> bool {
        let is_resuming =
            self.sessions.resumption(key).is_some_and(|resumption| resumption.resuming().is_some());
        if is_resuming {
            self.queue_session(key, self.env.now);
        }
        is_resuming
    }

    pub(in crate::shard) fn next_step(&mut self, key: ConnectionKey) -> Option<Step> {
        let connection = self.links.get_mut(key)?;
        if connection.phase != Phase::Open || connection.doomed {
            return None;
        }
        let session = self.sessions.get_mut(key)?;
        let resumption = session.resumption.as_mut()?;
        let (gone, sent) = (resumption.log.gone(), resumption.log.sent());
        let mut presence = std::mem::replace(&mut resumption.presence, Presence::Here);
        let step = match &mut presence {
            Presence::Resuming(resuming) => resuming.next(session, gone, sent),
            Presence::Here | Presence::Away { .. } => None,
        };
        if let Some(resumption) = session.resumption.as_mut() {
            resumption.presence = presence;
        }
        step
    }

    /// On the session's shard: a room elsewhere has sent what brings the client's copy up to date.
    pub(in crate::shard) fn copy_resumed_elsewhere(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        number: u32,
        body: &[u8],
    ) {
        let Some(resumption) = self.sessions.resumption(key) else { return };
        // The answer to a connection that was lost since says nothing of this one.
        if resumption.resumes == number
            && let Some(resuming) = resumption.resuming()
            && resuming.asked.take_if(|asked| *asked == room).is_some()
        {
            self.copy_resumed(key, room, body);
            self.go_on_resuming(key);
        }
    }

    pub(in crate::shard) fn copy_resumed(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        body: &[u8],
    ) {
        if let Some(resumption) = self.sessions.resumption(key)
            && let Some(resuming) = resumption.resuming()
        {
            resuming.up_to_date.push(room);
        }
        if !body.is_empty() {
            self.links.write_again(key, body);
        }
    }

    /// Sends counted messages that the client has not handled, up to the one with the number
    /// `last`.
    pub(in crate::shard) fn send_again(&mut self, key: ConnectionKey, last: u64) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let format = connection.dialect.format;
        let Some(resumption) = self.sessions.resumption(key) else { return };
        // Nothing is added to it meanwhile.
        let log = std::mem::take(&mut resumption.log);
        let Some(resuming) = resumption.resuming() else { return };
        let mut missing = std::mem::take(&mut resuming.left);
        let first = std::mem::replace(&mut resuming.sent, last) + 1;
        for (count, (_, body)) in (log.gone() + 1..).zip(log.unacknowledged()) {
            if count < first {
                continue;
            }
            if count > last {
                break;
            }
            self.links.write_again(key, body);
            if !missing.is_empty()
                && let Ok(ServerMessage::Left(server::Left { room, .. })) =
                    ServerMessage::decode(format, body)
            {
                missing.retain(|&other| other != room);
            }
        }
        let Some(resumption) = self.sessions.resumption(key) else { return };
        resumption.log = log;
        resumption.log.sent_again();
        if let Some(resuming) = resumption.resuming() {
            resuming.left = missing;
        }
    }

    /// The client has all that it missed, and is sent what is new.
    pub(in crate::shard) fn end_resume(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.held = false;
        connection.lagging = false;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(resumption) = session.resumption.as_mut() else { return };
        let presence = std::mem::replace(&mut resumption.presence, Presence::Here);
        let Presence::Resuming(resuming) = presence else { return };
        let seats: Vec<_> = session
            .rooms
            .iter()
            .filter_map(|room| {
                let is_told = room.request.is_some() || resuming.up_to_date.contains(&room.number);
                Some((room.seat?, is_told))
            })
            .collect();
        // Why it left these was forgotten, but it must know that it did.
        for room in resuming.left {
            let (code, text) = (ErrorCode::ConnectionLost, "the player left the room meanwhile");
            let left =
                ServerMessage::Left(server::Left { request: None, room, code, text: text.into() });
            self.send(key, &left);
        }
        self.outbound.effects.push_back(Effect::ResumeEnded(key));
        for (seat, is_told) in seats {
            if !is_told {
                // The client will never learn that it has joined this: nothing more may come of it.
                self.go(seat, LeaveReason::ConnectionLost, Farewell::None);
            } else {
                // What changed since its copy was brought up to date follows.
                self.tell(seat, ToMember::ResumeEnded);
            }
        }
    }
}
