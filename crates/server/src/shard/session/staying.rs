//! Sessions that stay without a connection, until they are resumed or over.

use std::time::Duration;

use playfield_room::LeaveReason;

use crate::addresses::Address;
use crate::shard::connection::{Connection, Phase};
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::{Departure, Purpose};
use crate::shard::mail::member::{Farewell, ToMember};
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::resumption::{Presence, Resumption};

/// The interval between checks of whether a session that is over has left its rooms.
const PARTING_RETRY: Duration = Duration::from_secs(1);

impl Outlet<'_> {
    /// Returns whether the session of a connection that is lost is kept. If so, it is counted.
    pub(super) fn may_stay_away(&mut self, key: ConnectionKey) -> bool {
        let Some(connection) = self.links.get(key) else { return false };
        if !connection.resumable
            || connection.phase != Phase::Open
            || connection.doomed
            || self.env.is_shutting_down
        {
            return false;
        }
        let address = connection.tally.address();
        match self.env.node.away.enter(address) {
            Ok(()) => self.sessions.away += 1,
            Err(setting) => {
                self.env.counters.sessions_away_refused += 1;
                self.links.turned_away.note_away(setting, self.env.now);
                return false;
            }
        }
        true
    }

    /// This shard no longer has a session: it moves to `shard`, or has ended, and then `shard` is
    /// the one that opened it.
    pub(in crate::shard) fn forget_session(
        &mut self,
        number: u64,
        key: ConnectionKey,
        home: u16,
        shard: u16,
    ) {
        self.sessions.forget_resumable(number, key);
        if shard != self.env.shard {
            self.env.node.away.moved(number, home, shard);
        }
    }

    /// A session that was counted as away is resumed, or ends.
    pub(in crate::shard) fn end_being_away(&mut self, address: &Address) {
        self.sessions.away -= 1;
        self.env.node.away.leave(address);
    }

    /// Charges a session for what was done since then, as its client was lost or has come back.
    pub(super) fn charge_since(&mut self, key: ConnectionKey, began: Duration) {
        let took = self.env.stopwatch.read().saturating_sub(began);
        self.links.charge(key, self.env.now, took);
    }

    /// A session goes on without a transport.
    pub(super) fn stay_away(&mut self, key: ConnectionKey) {
        let now = self.env.now;
        self.links.drop_transport(key);
        self.links.count_bytes(key);
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.phase = Phase::Away;
        connection.held = true;
        connection.owes_receipts = false;
        connection.pinged = false;
        if let Some(session) = self.sessions.get_mut(key) {
            if let Some(round_trips) = session.round_trips() {
                round_trips.restart(now);
            }
            if let Some(resumption) = session.resumption.as_mut() {
                resumption.presence = Presence::Away { since: now.into(), is_told: true };
            }
        }
        // A join goes on by mail.
        if let Some(Departure { target, purpose: Purpose::Join(join) }) = self.take_departure(key)
            && let Some(joiner) = self.joiner(key)
        {
            self.outbound.post(target, ShardMail::Join { joiner: Box::new(joiner), join });
        }
        self.outbound.effects.push_back(Effect::Lost(key));
        for seat in self.seats(key) {
            self.tell(seat, ToMember::Lost);
        }
        self.send_receipts(key);
    }

    /// A session has a new seat. If it has lost its connection in the meantime, the room learns
    /// that.
    pub(in crate::shard) fn seated_away(&mut self, key: ConnectionKey, seat: Seat) {
        if self.links.get(key).is_some_and(Connection::is_away) {
            self.tell(seat, ToMember::Lost);
            self.expire_away(key);
        }
    }

    /// Takes a session that is away out of rooms whose grace is over, and ends it if it is over
    /// altogether.
    pub(in crate::shard) fn expire_away(&mut self, key: ConnectionKey) {
        let (now, grace) = (self.env.now, self.env.node.config.timeouts.reconnect);
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(since) = session.resumption.as_ref().and_then(Resumption::away_since) else {
            return;
        };
        if since > now {
            // Its rooms do not know yet.
            return self.links.look_at(key, since);
        }
        if let Some(Resumption { presence: Presence::Away { is_told, .. }, .. }) =
            &mut session.resumption
            && !std::mem::replace(is_told, true)
        {
            for seat in self.seats(key) {
                self.tell(seat, ToMember::Lost);
            }
        }
        let Some(session) = self.sessions.get_mut(key) else { return };
        let mut over = Vec::new();
        let mut next = since.saturating_add(grace);
        for room in &mut session.rooms {
            let Some(seat) = room.seat else { continue };
            let ends_at = since.saturating_add(room.grace);
            if ends_at <= now {
                // Once, even if the room is elsewhere and takes a while.
                room.grace = Duration::MAX;
                over.push(seat);
            } else if room.grace < Duration::MAX {
                next = if next <= now { ends_at } else { next.min(ends_at) };
            }
        }
        for seat in over {
            self.go(seat, LeaveReason::ConnectionLost, Farewell::GraceOver);
        }
        if next > now {
            self.links.look_at(key, next);
            self.outbound.effects.push_back(Effect::Examined(key));
        } else {
            // Rooms of this shard are left by then.
            self.outbound.effects.push_back(Effect::AwayTooLong(key));
        }
    }

    /// Ends a session whose time is over, once it is in no room.
    pub(in crate::shard) fn end_if_in_no_room(&mut self, key: ConnectionKey) {
        if !self.links.get(key).is_some_and(Connection::is_away) {
            return;
        }
        if self.sessions.get(key).is_none_or(|session| session.rooms.is_empty()) {
            self.end_away(key);
        } else {
            // Rooms elsewhere have not answered yet.
            self.links.look_at(key, self.env.now + PARTING_RETRY);
            self.outbound.effects.push_back(Effect::Examined(key));
        }
    }

    /// Ends a session that is away.
    pub(in crate::shard) fn end_away(&mut self, key: ConnectionKey) {
        self.end_session(key, LeaveReason::ConnectionLost);
        self.links.remove(key);
    }
}
