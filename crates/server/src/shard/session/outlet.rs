//! The way out to clients: what sessions are sent is kept in their logs, and goes to their links.

use std::time::Duration;

use playfield_room::LeaveReason;
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RoomNumber};

use crate::shard::connection::{Kind, Links, narrowed};
use crate::shard::env::Env;
use crate::shard::frames::Stay;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::mail::device::DeviceMail;
use crate::shard::mail::join::Departure;
use crate::shard::mail::member::Farewell;
use crate::shard::outbound::{Effect, Outbound};
use crate::shard::session::greeting::Greeting;
use crate::shard::session::sessions::Sessions;
use crate::shard::work::Waiting;

/// Links and sessions, and what these need.
pub(crate) struct Outlet<'a> {
    pub(in crate::shard) env: &'a mut Env,
    pub(in crate::shard) links: &'a mut Links,
    pub(in crate::shard) sessions: &'a mut Sessions,
    pub(in crate::shard) outbound: &'a mut Outbound,
}

impl Outlet<'_> {
    /// Appends one message: what `write` appends in the connection's format.
    #[inline]
    pub(crate) fn write(
        &mut self,
        key: ConnectionKey,
        kind: Kind,
        write: impl FnOnce(Format, &mut Vec<u8>),
    ) {
        if let Some(outbox) = self.links.outbox(key) {
            self.sessions.write(&self.env.node.config, outbox, kind, write);
        }
    }

    /// A counted message of this room was too much to keep on its way here.
    pub(crate) fn lose_message(&mut self, key: ConnectionKey, room: RoomNumber) {
        let Some(connection) = self.links.get_mut(key) else { return };
        if let Some(session) = self.sessions.get_mut(key)
            && let Some(resumption) = session.resumption.as_mut()
        {
            resumption.log.lose(Some(room), 1);
            connection.logged = narrowed(resumption.log.memory());
        }
    }

    /// Appends one message that is about no room, or fleeting.
    pub(crate) fn send(&mut self, key: ConnectionKey, message: &ServerMessage<'_>) {
        self.write(key, Kind::of(message, None), |format, out| message.encode(format, out));
    }

    /// A room that a session is entering holds more or less events for it. If all its rooms hold
    /// too many, the connection is given up, or the seat if there is no connection.
    pub(crate) fn holds_events(&mut self, stay: Stay, before: usize, after: usize) {
        let Stay { connection: key, room: number } = stay;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let bytes = &mut session.extras_mut().entering_bytes;
        *bytes = (*bytes + after).saturating_sub(before);
        let bytes = *bytes;
        let seat = session.room_mut(number).and_then(|room| room.seat);
        self.links.waits(key, before, after);
        // The room itself looks at what it holds alone.
        if after <= before || bytes <= after {
            return;
        }
        let config = &self.env.node.config;
        if !self.links.is_held(key) {
            if bytes > config.limits.session.outbox_bytes.max {
                self.links.doom_unread(self.env, key);
            }
        } else if bytes
            > config.limits.session.resume_bytes.min(config.limits.session.outbox_bytes.max)
            && let Some(seat) = seat
        {
            self.go(seat, LeaveReason::ConnectionLost, Farewell::TooMuch);
        }
    }

    /// Puts a session on its way back into the queue for a snapshot, not before `at`.
    pub(in crate::shard) fn queue_session(&mut self, key: ConnectionKey, at: Duration) {
        let Some(host) = self.links.host(key) else { return };
        let waiting = Waiting::Session(key);
        if at > self.env.now {
            self.sessions.snapshots.wait(waiting, at);
        } else {
            self.sessions.snapshots.line_up(&mut self.links.work, waiting, host);
        }
    }

    /// A device may have been heard: something came on its connection.
    #[inline]
    pub(in crate::shard) fn heard_device(&mut self, key: ConnectionKey) {
        if self.links.get(key).is_some_and(|connection| connection.is_device) {
            let mail = ShardMail::Device(DeviceMail::Heard { connection: key });
            self.outbound.effects.push_back(Effect::Mail(mail));
        }
    }

    /// Has a connection wait to leave for another shard, or for another connection of this one.
    pub(crate) fn depart(&mut self, key: ConnectionKey, departure: Departure) {
        if let Some(connection) = self.links.get_mut(key) {
            connection.pause.departure = true;
            self.sessions.departures.insert(key, departure);
        }
    }

    /// Takes the departure of a connection, which is read again.
    pub(crate) fn take_departure(&mut self, key: ConnectionKey) -> Option<Departure> {
        let departure = self.sessions.take_departure(key)?;
        if let Some(connection) = self.links.get_mut(key) {
            connection.pause.departure = false;
        }
        Some(departure)
    }

    /// Has a client wait whose hello has come.
    pub(crate) fn keep_greeting(&mut self, key: ConnectionKey, greeting: Greeting) {
        if let Some(connection) = self.links.get_mut(key) {
            connection.pause.greeting = true;
            self.sessions.greetings.insert(key, greeting);
        }
    }

    /// Takes the greeting of a client that waits, if it is the one that is meant.
    pub(crate) fn take_greeting_if(
        &mut self,
        key: ConnectionKey,
        is_it: impl FnOnce(&Greeting) -> bool,
    ) -> Option<Greeting> {
        if !self.sessions.greetings.get(&key).is_some_and(is_it) {
            return None;
        }
        if let Some(connection) = self.links.get_mut(key) {
            connection.pause.greeting = false;
        }
        self.sessions.take_greeting(key)
    }
}
