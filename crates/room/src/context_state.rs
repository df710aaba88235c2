//! The parts of a room beside its state: its clock, its timers, its pending work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::ErrorCode;

use rand_core::RngCore;

use crate::deferred::Replies;
use crate::frozen::parts::{self, Time};
use crate::random::{Random, SLOT_CHARACTERS, id_from_random};
use crate::rate::Limiter;
use crate::reservation::{Reserved, check_wait};
use crate::round_trips::RoundTrips;
use crate::timers::Timers;
use crate::{
    Creator, Error, InternalMessage, Reservation, Result, RoomSummary, SeatFor, Sender, room_full,
};

/// Sets the generator of ids apart from that of the room.
const SEED_OF_IDS: u64 = 0x6964_735f_6f66_5f72;

/// The most timers of one room. Setting one more panics, which closes the room.
pub const TIMERS_MAX: usize = 65_536;
/// The most background tasks and unanswered requests of one room, together. At this limit,
/// [`Context::spawn`](crate::Context::spawn) and [`Context::compute`](crate::Context::compute)
/// return an error; [`Context::ask`](crate::Context::ask) panics, which closes the room.
pub const PENDING_MAX: usize = 65_536;
/// The most entries of a room's metadata.
pub const METADATA_MAX: usize = 16;
/// The longest key or value of a room's metadata, in bytes.
pub const METADATA_BYTES_MAX: usize = 256;

/// The parts of a room beside its state and its players. All of it follows from the room's inputs,
/// so that rooms are deterministic.
pub(crate) struct ContextState {
    /// The room itself, as others see it.
    pub(crate) own: Arc<Sender>,
    pub(crate) creator: Creator,
    /// Set for a fork of another room, which sends to its players alone.
    pub(crate) fork: Option<parts::Fork>,
    /// The sender of the message that is being handled, if it is a room.
    pub(crate) sender: Option<Arc<Sender>>,
    pub(crate) now: Duration,
    pub(crate) tick: u64,
    pub(crate) version: u64,
    pub(crate) random: Random,
    /// For the ids of rooms that this one creates, and for reservations: those who see numbers of
    /// the other generator must not guess them.
    ids: Random,
    pub(crate) reserved: Reserved,
    /// The players who wait to join, with a seat each.
    pub(crate) waiting: u32,
    pub(crate) timers: Timers,
    pub(crate) summary: RoomSummary,
    pub(crate) wants_sync: bool,
    /// The room is saved.
    pub(crate) persists: bool,
    /// The number of unanswered requests for a save.
    pub(crate) saves_asked: usize,
    pub(crate) effects: Vec<Effect>,
    /// The use of rates by player and message; only of messages with a rate.
    pub(crate) limiters: BTreeMap<(PlayerId, u32), Limiter>,
    /// Of players who have come back: from when to when they could send nothing.
    absences: BTreeMap<PlayerId, (Duration, Duration)>,
    /// The times that messages to players and back take; only where the room asks for it.
    pub(crate) round_trips: RoundTrips,
    /// The unfinished background tasks, by number: the name of the message that each ends with.
    pub(crate) tasks: BTreeMap<u64, &'static str>,
    /// The unanswered requests to other rooms, by number: the name of the message.
    pub(crate) asks: BTreeMap<u64, &'static str>,
    /// The room or the player held for a task, by the task's number.
    pub(crate) holds: BTreeMap<u64, Subject>,
    /// The room or the player that [`Context::hold`](crate::Context::hold) holds in this callback;
    /// the number of its calls.
    pub(crate) subject: Option<Subject>,
    pub(crate) holds_begun: u32,
    pub(crate) next_number: u64,
    /// Replies that the room owes.
    pub(crate) replies: Replies,
    /// For how long at most.
    pub(crate) reply_wait: Duration,
    /// Tasks given up when the room was frozen, until the room hears about them: the names of their
    /// messages.
    pub(crate) given_up: Vec<&'static str>,
    /// Tasks that end with a reply, instead of with a message to the room.
    pub(crate) replying: BTreeMap<u64, u64>,
    /// Buffers in which events are encoded, one for each format.
    pub(crate) scratch: [Vec<u8>; Format::ALL.len()],
}

/// A request of a callback that has to wait until the callback has returned.
pub(crate) enum Effect {
    Save(Asked),
    Kick(PlayerId, Error),
    Close(String),
}

/// The room or a player, waiting for held work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The room, before it opens.
    Room,
    /// A player, before they are seated.
    Player(PlayerId),
}

/// A party that waits for a save.
pub(crate) enum Asked {
    /// Receives this message when the state, or a later one, is on disk.
    Saved(InternalMessage),
    /// Receives what this makes of the outcome of one save.
    Outcome(Box<dyn FnOnce(Result<()>) -> InternalMessage + Send>),
}

impl Asked {
    /// Returns whether it learns of a failed save, instead of waiting for another.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, Self::Outcome(_))
    }

    /// The message of one that waits until the state is on disk.
    pub(crate) fn as_saved(&self) -> Option<&InternalMessage> {
        match self {
            Self::Saved(message) => Some(message),
            Self::Outcome(_) => None,
        }
    }

    pub(crate) fn message(self, outcome: Result<()>) -> InternalMessage {
        match self {
            Self::Saved(message) => message,
            Self::Outcome(make) => make(outcome),
        }
    }
}

impl Effect {
    pub(crate) fn as_close(&self) -> Option<&str> {
        match self {
            Self::Kick(..) | Self::Save(_) => None,
            Self::Close(text) => Some(text),
        }
    }
}

impl ContextState {
    pub(crate) fn new(own: Sender, creator: Creator, seed: u64, summary: RoomSummary) -> Self {
        let replies = Replies::new(seed, &own.room_id);
        Self {
            own: Arc::new(own),
            creator,
            fork: None,
            sender: None,
            now: Duration::ZERO,
            tick: 0,
            version: 1,
            random: Random::new(seed),
            ids: Random::new(seed ^ SEED_OF_IDS),
            reserved: Reserved::default(),
            waiting: 0,
            replies,
            reply_wait: Duration::ZERO,
            replying: BTreeMap::new(),
            given_up: Vec::new(),
            timers: Timers::new(seed),
            summary,
            wants_sync: false,
            persists: false,
            saves_asked: 0,
            effects: Vec::new(),
            limiters: BTreeMap::new(),
            absences: BTreeMap::new(),
            round_trips: RoundTrips::default(),
            tasks: BTreeMap::new(),
            asks: BTreeMap::new(),
            holds: BTreeMap::new(),
            subject: None,
            holds_begun: 0,
            next_number: 0,
            scratch: Default::default(),
        }
    }

    pub(crate) fn freeze_random(&self) -> parts::Random {
        parts::Random { room: self.random.state(), ids: self.ids.state() }
    }

    pub(crate) fn thaw_random(&mut self, parts::Random { room, ids }: parts::Random) {
        (self.random, self.ids) = (Random::thaw(room), Random::thaw(ids));
    }

    pub(crate) fn freeze_rates(&self) -> parts::Rates {
        let limiters = self.limiters.iter().map(|(&(player, message), limiter)| {
            let (full_at, rest) = limiter.freeze();
            parts::Limiter { player, message, full_at, rest }
        });
        let absences = self.absences.iter().map(|(&player, &(since, until))| parts::Absence {
            player,
            since: Time(since),
            until: Time(until),
        });
        let round_trips = self.round_trips.iter().map(|(player, round_trip)| {
            let round_trip = Time(round_trip);
            parts::RoundTrip { player, round_trip }
        });
        parts::Rates {
            limiters: limiters.collect(),
            absences: absences.collect(),
            round_trips: round_trips.collect(),
        }
    }

    pub(crate) fn thaw_rates(&mut self, rates: parts::Rates) {
        let parts::Rates { limiters, absences, round_trips } = rates;
        let limiter = |parts::Limiter { player, message, full_at, rest }| {
            ((player, message), Limiter::thaw(full_at, rest))
        };
        let absence = |parts::Absence { player, since, until }| (player, (since.0, until.0));
        let round_trip = |parts::RoundTrip { player, round_trip }| (player, round_trip.0);
        self.limiters = limiters.into_iter().map(limiter).collect();
        self.absences = absences.into_iter().map(absence).collect();
        self.round_trips = round_trips.into_iter().map(round_trip).collect();
    }

    fn new_id(&mut self) -> String {
        let mut random = [0; 10];
        self.ids.fill_bytes(&mut random);
        id_from_random(random).iter().copied().map(char::from).collect()
    }

    /// An id for a room that this one creates, or a secret of the same form: it begins as the id of
    /// this room does, with the slot of the node.
    pub(crate) fn new_room_id(&mut self) -> String {
        let mut id = self.new_id();
        if let (16, Some(slot)) = (self.id().len(), self.id().get(..SLOT_CHARACTERS)) {
            id.replace_range(..SLOT_CHARACTERS, slot);
        }
        id
    }

    /// Whether a seat is neither taken nor reserved.
    pub(crate) fn check_free_seat(&self) -> Result<()> {
        let RoomSummary { players, reserved, capacity, .. } = self.summary;
        let kept = reserved.saturating_add(self.waiting);
        if players.saturating_add(kept) < capacity {
            return Ok(());
        }
        Err(room_full(players, kept))
    }

    /// Reserves a seat if one is free.
    pub(crate) fn reserve_seat(&mut self, who: SeatFor, wait: Duration) -> Result<Reservation> {
        check_wait(wait)?;
        if self.summary.closing {
            return Err(Error::new(ErrorCode::RoomClosed, "the room is about to end"));
        }
        self.check_free_seat()?;
        let secret = self.new_id();
        let reservation = Reservation::new(self.id(), &secret);
        self.reserve(secret, who, self.now.saturating_add(wait));
        Ok(reservation)
    }

    /// Reserves a seat until `until`, under this secret. The caller has checked that one is free.
    pub(crate) fn reserve(&mut self, secret: String, who: SeatFor, until: Duration) {
        self.reserved.insert(secret, who, until);
        self.summary.reserved = self.reserved.count();
    }

    /// After a callback in which work could be held: how much was.
    pub(crate) fn take_holds(&mut self) -> u32 {
        self.subject = None;
        std::mem::take(&mut self.holds_begun)
    }

    /// The room's id.
    pub(crate) fn id(&self) -> &str {
        &self.own.room_id
    }

    /// A player is gone. Their number is not used again, so nobody comes back to these.
    pub(crate) fn forget_rates(&mut self, player: PlayerId) {
        let of_player = (player, 0)..=(player, u32::MAX);
        while let Some(&key) = self.limiters.range(of_player.clone()).next().map(|(key, _)| key) {
            self.limiters.remove(&key);
        }
        self.absences.remove(&player);
    }

    /// A player could send nothing for this time, and is back: what waits with the client may come
    /// at once.
    pub(crate) fn credit_rates(&mut self, player: PlayerId, away: Duration) {
        let (since, now) = (self.now.saturating_sub(away), self.now);
        for (_, limiter) in self.limiters.range_mut((player, 0)..=(player, u32::MAX)) {
            limiter.credit(since, now);
        }
        self.absences.insert(player, (since, now));
    }

    /// Returns the limiter of a player for a message.
    pub(crate) fn limiter(&mut self, player: PlayerId, message: u32) -> &mut Limiter {
        self.limiters.entry((player, message)).or_insert_with(|| {
            let mut limiter = Limiter::default();
            if let Some(&(since, now)) = self.absences.get(&player) {
                limiter.credit(since, now);
            }
            limiter
        })
    }

    /// A new number for a task or a request.
    pub(crate) fn number(&mut self) -> Result<u64> {
        if self.tasks.len() + self.asks.len() >= PENDING_MAX {
            return Err(Error::new(
                ErrorCode::Limit,
                format!(
                    "a room has at most {PENDING_MAX} background tasks and unanswered requests"
                ),
            ));
        }
        self.next_number += 1;
        Ok(self.next_number)
    }

    /// The same where there is no way to return an error.
    pub(crate) fn number_or_panic(&mut self) -> u64 {
        self.number().unwrap_or_else(|error| panic!("{}", error.text()))
    }
}
