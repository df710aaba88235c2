//! The sessions of a shard.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use playfield_session::Passage;
use playfield_wire::{Format, RoomNumber};

use crate::config::Config;
use crate::memory::shrink_map;
use crate::shard::beside::Beside;
use crate::shard::connection::message::OpenOutbox;
use crate::shard::connection::{Kind, Phase, narrowed};
use crate::shard::keys::{ConnectionKey, OfConnection};
use crate::shard::mail::join::Departure;
use crate::shard::mail::user::UserMail;
use crate::shard::session::Session;
use crate::shard::session::by_number::ByNumber;
use crate::shard::session::greeting::Greeting;
use crate::shard::session::rates::{Excess, Rates};
use crate::shard::session::resumption::Resumption;
use crate::shard::snapshots::Snapshots;

/// The sessions of a shard, and those that are on their way.
pub(crate) struct Sessions {
    /// By the connection of each.
    table: Beside<OfConnection, Box<Session>>,
    /// Clients that wait for the authenticator, or for other sessions of their user to end.
    pub(in crate::shard) greetings: HashMap<ConnectionKey, Greeting>,
    /// The moves to other shards that are about to begin.
    pub(in crate::shard) departures: HashMap<ConnectionKey, Departure>,
    /// The sessions that can be resumed, by number.
    pub(in crate::shard) by_number: ByNumber,
    pub(in crate::shard) count: u64,
    /// The number of sessions that are away.
    pub(in crate::shard) away: u64,
    pub(in crate::shard) rates: Rates,
    pub(in crate::shard) snapshots: Snapshots,
    /// Connections that leave for another shard, in this order: two may want the same session.
    pub(in crate::shard) departing: VecDeque<ConnectionKey>,
    /// Connections whose clients want a session back, which could not be had so far.
    pub(in crate::shard) to_resume: Vec<ConnectionKey>,
    /// Mail about sessions of users, for this and other shards.
    pub(in crate::shard) user_posts: VecDeque<(u16, UserMail)>,
}

impl Sessions {
    pub(in crate::shard) fn new(config: &Config) -> Self {
        Self {
            table: Beside::default(),
            greetings: HashMap::new(),
            departures: HashMap::new(),
            by_number: ByNumber::default(),
            count: 0,
            away: 0,
            rates: Rates::new(config),
            snapshots: Snapshots::default(),
            departing: VecDeque::new(),
            to_resume: Vec::new(),
            user_posts: VecDeque::new(),
        }
    }

    pub(in crate::shard) fn insert(&mut self, key: ConnectionKey, session: Box<Session>) {
        self.table.insert(key, session);
    }

    pub(in crate::shard) fn remove(&mut self, key: ConnectionKey) -> Option<Box<Session>> {
        self.table.remove(key)
    }

    #[inline]
    pub(in crate::shard) fn get(&self, key: ConnectionKey) -> Option<&Session> {
        self.table.get(key).map(|session| &**session)
    }

    #[inline]
    pub(in crate::shard) fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut Session> {
        self.table.get_mut(key).map(|session| &mut **session)
    }

    /// The resumption of a session, if it can be resumed.
    pub(in crate::shard) fn resumption(&mut self, key: ConnectionKey) -> Option<&mut Resumption> {
        self.get_mut(key)?.resumption.as_mut()
    }

    /// Takes a message of this many bytes from the rates of a session; `None` without a session.
    #[inline(always)]
    pub(in crate::shard) fn take(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        bytes: usize,
    ) -> Option<Result<(), Excess>> {
        let session = self.table.get_mut(key)?;
        Some(session.usage.take(now, &self.rates, bytes))
    }

    /// Appends one message to a client: what `write` appends in the connection's format. A session
    /// that can be resumed keeps it if it is counted.
    #[inline]
    pub(in crate::shard) fn write(
        &mut self,
        config: &Config,
        mut outbox: OpenOutbox<'_>,
        kind: Kind,
        write: impl FnOnce(Format, &mut Vec<u8>),
    ) {
        let connection = &*outbox.connection;
        let kept_for = match kind {
            Kind::Counted(room) if connection.resumable => Some(room),
            Kind::Counted(_) | Kind::Fleeting => None,
        };
        let is_taken = match connection.phase {
            Phase::Open => true,
            Phase::Away => kept_for.is_some(),
            Phase::Closing { .. } => false,
        };
        if !is_taken {
            return;
        }
        let (format, is_held) = (connection.dialect.format, connection.held);
        let key = outbox.key();
        let mut message = outbox.begin();
        write(format, message.body());
        let Some(room) = kept_for else { return message.end() };
        let passage = if is_held { Passage::Held } else { Passage::Sent };
        let bytes_max = config.limits.session.resume_bytes;
        let logged = self.keep(key, room, bytes_max, passage, message.written());
        if is_held {
            // Only what the log holds is counted.
            message.take_back();
            outbox.release_if_empty();
        } else {
            message.end();
        }
        if let Some(logged) = logged {
            outbox.connection.logged = logged;
        }
    }

    /// Keeps a message until the client has confirmed it. Returns the memory that all take.
    #[inline(never)]
    fn keep(
        &mut self,
        key: ConnectionKey,
        room: Option<RoomNumber>,
        bytes_max: usize,
        passage: Passage,
        message: &[u8],
    ) -> Option<u32> {
        let resumption = self.resumption(key)?;
        resumption.log.push(room, bytes_max, passage, |out| out.extend_from_slice(message));
        Some(narrowed(resumption.log.memory()))
    }

    /// The client of a session has been sent `joined`: from here on it may speak to the room.
    pub(in crate::shard) fn told_joined(&mut self, key: ConnectionKey, number: RoomNumber) {
        if let Some(session) = self.get_mut(key) {
            session.told_joined(number);
        }
    }

    /// The number of the session of a connection.
    pub(in crate::shard) fn number(&self, key: ConnectionKey) -> Option<u64> {
        self.get(key).map(|session| session.number)
    }

    /// The connections of all sessions.
    pub(in crate::shard) fn keys(&self) -> impl Iterator<Item = ConnectionKey> {
        self.table.keys()
    }

    /// Notes that a session can be resumed.
    pub(in crate::shard) fn note_resumable(&mut self, number: u64, key: ConnectionKey) {
        self.by_number.insert(number, key, |place| number_at(&self.table, place));
    }

    /// Notes that a session is not here any longer; its connection may have lost it already.
    pub(in crate::shard) fn forget_resumable(&mut self, number: u64, key: ConnectionKey) {
        self.by_number.remove(number, key, |place| number_at(&self.table, place));
    }

    /// The connection of a session that can be resumed.
    pub(in crate::shard) fn find(&self, number: u64) -> Option<ConnectionKey> {
        let place = self.by_number.get(number, |place| number_at(&self.table, place))?;
        self.table.at(place as usize).map(|(key, _)| key)
    }

    /// Forgets a client that waits.
    pub(in crate::shard) fn take_greeting(&mut self, key: ConnectionKey) -> Option<Greeting> {
        let greeting = self.greetings.remove(&key);
        shrink_map(&mut self.greetings);
        greeting
    }

    /// Forgets a move to another shard.
    pub(in crate::shard) fn take_departure(&mut self, key: ConnectionKey) -> Option<Departure> {
        let departure = self.departures.remove(&key);
        shrink_map(&mut self.departures);
        departure
    }
}

fn number_at(table: &Beside<OfConnection, Box<Session>>, place: u32) -> Option<u64> {
    table.at(place as usize).map(|(_, session)| session.number)
}
