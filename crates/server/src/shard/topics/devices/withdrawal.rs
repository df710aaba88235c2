//! Requests to devices whose time is over are not carried out later.
//!
//! A request is a counted message: a session that is away keeps it, and sends it once the device is
//! back. If its time is over before that, it is taken out as if it had never been sent. So is one
//! that was written to a connection which was then lost, as long as the device says at its return
//! that it has not received it. What a device has received can't be withdrawn.

use std::time::Duration;

use crate::shard::connection::narrowed;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::resumption::Presence;
use crate::shard::topics::Topics;
use crate::shard::topics::devices::OwnDevice;

/// A request that a device has not answered.
pub(crate) struct Unanswered {
    pub(super) number: u64,
    pub(super) deadline: Duration,
    /// The counted message that it is; 0 if it is none.
    pub(super) message: u64,
}

impl OwnDevice {
    /// This counted message is taken out, and those after it have lower numbers.
    fn withdrawn(&mut self, message: u64) {
        self.expired.retain(|of| *of != message);
        let unanswered = self.unanswered.iter_mut().map(|request| &mut request.message);
        for later in unanswered.chain(&mut self.expired).filter(|of| **of > message) {
            *later -= 1;
        }
    }
}

impl Topics {
    /// The request to a device that was written last is this counted message.
    pub(super) fn note_request(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let session = out.sessions.get(key);
        let resumption = session.and_then(|session| session.resumption.as_ref());
        let message = resumption.map_or(0, |resumption| resumption.log.sent());
        let own = self.devices.get_mut(key);
        if let Some(last) = own.and_then(|own| own.unanswered.last_mut()) {
            last.message = message;
        }
    }

    /// Takes out the requests to a device whose time is over and that it can't have received.
    pub(in crate::shard) fn withdraw_expired(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let Some(connection) = out.links.get_mut(key) else { return };
        let Some(own) = self.devices.get_mut(key).filter(|own| !own.expired.is_empty()) else {
            return;
        };
        let Some(session) = out.sessions.get_mut(key) else { return };
        let Some(resumption) = session.resumption.as_mut() else { return };
        let (log, presence) = (&mut resumption.log, &resumption.presence);
        own.expired.retain(|message| *message > log.gone());
        loop {
            let is_unsent = |message: u64| match presence {
                Presence::Here => false,
                Presence::Away { .. } => log.is_held(message),
                Presence::Resuming(resuming) => message > resuming.sent,
            };
            let Some(message) = own.expired.iter().copied().find(|of| is_unsent(*of)) else {
                break;
            };
            log.withdraw(message);
            own.withdrawn(message);
            for room in session.rooms.iter_mut().filter(|room| room.joined_at > message) {
                room.joined_at -= 1;
            }
            out.env.counters.commands_withdrawn += 1;
        }
        connection.logged = narrowed(log.memory());
    }
}
