//! What a room may ask of the world while it acts.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::ErrorCode;

use crate::message::{AskId, AskOf, EventOf, InternalOf, Message};
use crate::random::Random;
use crate::timers::{TIMER_PERIOD_MIN, TimerId, Timers};
use crate::{
    Creator, Error, EventHeader, InternalMessage, Mail, Player, Result, RoomOutput, RoomSummary,
};

/// The most timers of one room; past it, setting one panics, which closes the room.
pub const TIMERS_MAX: usize = 65_536;
/// The most background work and unanswered requests of one room; past it, starting more panics,
/// which closes the room.
pub const PENDING_MAX: usize = 65_536;
/// The most entries of a room's metadata.
pub const METADATA_MAX: usize = 16;
/// The longest key or value of a room's metadata, bytes.
pub const METADATA_BYTES_MAX: usize = 256;

/// Who sits in a room.
pub(crate) type Seats = BTreeMap<PlayerId, Player>;

/// What a room has beside its state and its players. The state of a room does not depend on
/// anything here that was not handed in.
pub(crate) struct ContextState {
    pub(crate) id: String,
    pub(crate) creator: Option<Creator>,
    pub(crate) now: Duration,
    pub(crate) tick: u64,
    pub(crate) version: u64,
    pub(crate) random: Random,
    pub(crate) timers: Timers,
    pub(crate) summary: RoomSummary,
    pub(crate) wants_sync: bool,
    pub(crate) effects: Vec<Effect>,
    /// Background work that has not ended, by its number.
    pub(crate) tasks: BTreeMap<u64, &'static str>,
    /// Requests to other rooms that are unanswered, by number: the message's name.
    pub(crate) asks: BTreeMap<u64, &'static str>,
    pub(crate) next_number: u64,
    /// Events are encoded here, once for each format.
    scratch: [Vec<u8>; Format::ALL.len()],
}

/// What is done when the callback that wanted it has returned.
pub(crate) enum Effect {
    Kick(PlayerId, String),
    Close(String),
}

impl Effect {
    pub(crate) fn into_close(self) -> Option<String> {
        match self {
            Self::Kick(..) => None,
            Self::Close(text) => Some(text),
        }
    }
}

impl ContextState {
    pub(crate) fn new(
        id: String,
        creator: Option<Creator>,
        seed: u64,
        summary: RoomSummary,
    ) -> Self {
        Self {
            id,
            creator,
            now: Duration::ZERO,
            tick: 0,
            version: 1,
            random: Random::new(seed),
            timers: Timers::default(),
            summary,
            wants_sync: false,
            effects: Vec::new(),
            tasks: BTreeMap::new(),
            asks: BTreeMap::new(),
            next_number: 0,
            scratch: Default::default(),
        }
    }

    /// A number under which something comes back.
    fn number(&mut self) -> Result<u64> {
        if self.tasks.len() + self.asks.len() >= PENDING_MAX {
            return Err(limit(format!(
                "a room waits for at most {PENDING_MAX} pieces of background work and answers"
            )));
        }
        self.next_number += 1;
        Ok(self.next_number)
    }

    /// The same where there is no error to return: the room is closed.
    fn number_or_panic(&mut self) -> u64 {
        self.number().unwrap_or_else(|error| panic!("{}", error.text()))
    }
}

/// Time, randomness, the other players and the outside world, as a room may use them.
pub struct Context<'a, R> {
    seats: &'a Seats,
    context: &'a mut ContextState,
    out: &'a mut dyn RoomOutput,
    room: PhantomData<fn() -> R>,
}

impl<'a, R> Context<'a, R> {
    pub(crate) fn new(
        seats: &'a Seats,
        context: &'a mut ContextState,
        out: &'a mut dyn RoomOutput,
    ) -> Self {
        Self { seats, context, out, room: PhantomData }
    }

    /// How long the room has existed.
    pub fn now(&self) -> Duration {
        self.context.now
    }

    /// The number of the current tick, or of the last one; 0 before the first. Ticks that a late
    /// server skipped are counted.
    pub fn tick(&self) -> u64 {
        self.context.tick
    }

    /// The room's generator.
    pub fn rng(&mut self) -> &mut Random {
        &mut self.context.random
    }

    /// The room's id, by which clients and other rooms find it.
    pub fn room_id(&self) -> &str {
        &self.context.id
    }

    /// The player who had this room created, by `create` or `join_or_create`; `None` if the room was
    /// created for another reason. It is known from [`Room::create`](crate::Room::create) on.
    ///
    /// The creator is not in the room before [`Room::join`](crate::Room::join) is called for them,
    /// right after `create`: until then they have no player number.
    pub fn creator(&self) -> Option<&Creator> {
        self.context.creator.as_ref()
    }

    /// All players, in the order in which they joined. In `join` the new one is among them, in
    /// `leave` the old one no more.
    pub fn players(&self) -> impl Iterator<Item = &'a Player> + use<'a, R> {
        self.seats.values()
    }

    /// One player.
    pub fn player(&self, id: PlayerId) -> Option<&'a Player> {
        self.seats.get(&id)
    }

    /// Sends an event to all players. While the room is created there are none: the event is
    /// dropped.
    pub fn emit<E: EventOf<R>>(&mut self, event: &E) {
        self.emit_each(event, |_| true);
    }

    /// Sends an event to one player; to nobody if that player is not here.
    pub fn emit_to<E: EventOf<R>>(&mut self, player: PlayerId, event: &E) {
        self.emit_some([player], event);
    }

    /// Sends an event to some players, in the order given.
    pub fn emit_some<E: EventOf<R>>(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        event: &E,
    ) {
        let mut encoded = [false; Format::ALL.len()];
        for id in players {
            if let Some(player) = self.seats.get(&id) {
                self.emit_one(event, player, &mut encoded);
            }
        }
    }

    /// Sends an event to all players but one.
    pub fn emit_except<E: EventOf<R>>(&mut self, player: PlayerId, event: &E) {
        self.emit_each(event, |id| id != player);
    }

    /// Gives the room this message, once, after a while.
    pub fn after<M: InternalOf<R>>(&mut self, wait: Duration, message: M) -> TimerId {
        self.set_timer(wait, None, &message)
    }

    /// Gives the room this message again and again, a period apart (at least a millisecond). Beats
    /// that a late server missed are left out.
    pub fn every<M: InternalOf<R>>(&mut self, period: Duration, message: M) -> TimerId {
        let period = period.max(TIMER_PERIOD_MIN);
        self.set_timer(period, Some(period), &message)
    }

    /// Stops a timer; `false` if it had fired, or was stopped before.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.context.timers.cancel(timer)
    }

    /// Takes a player out, after this callback, with a text for that player. Whoever is just
    /// joining is not let in then.
    pub fn kick(&mut self, player: PlayerId, text: impl Into<String>) {
        self.context.effects.push(Effect::Kick(player, text.into()));
    }

    /// Ends the room, after this callback, with a text for all players. While it is created, that
    /// refuses the creation.
    pub fn close(&mut self, text: impl Into<String>) {
        self.context.effects.push(Effect::Close(text.into()));
    }

    /// Lets nobody else join.
    pub fn lock(&mut self) {
        self.context.summary.locked = true;
    }

    /// Lets others join again.
    pub fn unlock(&mut self) {
        self.context.summary.locked = false;
    }

    /// A private room is never listed or matched; it is joined by its id alone.
    pub fn set_private(&mut self, private: bool) {
        self.context.summary.private = private;
    }

    /// Says something of the room to those who list rooms; an empty value takes the key away.
    ///
    /// # Errors
    /// More than [`METADATA_MAX`] keys, or a key or value of more than [`METADATA_BYTES_MAX`]
    /// bytes.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        let metadata = &mut self.context.summary.metadata;
        if value.is_empty() {
            metadata.remove(key);
            return Ok(());
        }
        if key.len() > METADATA_BYTES_MAX || value.len() > METADATA_BYTES_MAX {
            return Err(limit(format!(
                "a key or value of metadata has at most {METADATA_BYTES_MAX} bytes"
            )));
        }
        if metadata.len() >= METADATA_MAX && !metadata.contains_key(key) {
            return Err(limit(format!("metadata has at most {METADATA_MAX} keys")));
        }
        metadata.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sends patches at the end of this turn instead of waiting for the next sync.
    pub fn sync_now(&mut self) {
        self.context.wants_sync = true;
    }

    /// Sends a message to another room, which takes it by [`On`](crate::On). If that room is gone,
    /// nothing happens.
    pub fn tell<M: Message>(&mut self, room_id: &str, message: &M) {
        let from = self.context.id.clone();
        self.out.post(room_id, Mail::Told { from, message: InternalMessage::of(message) });
    }

    /// Sends a request to another room. The answer, or that there is none, comes to
    /// [`Answer`](crate::Answer).
    pub fn ask<M: AskOf<R>>(&mut self, room_id: &str, message: &M) -> AskId {
        let ask = self.context.number_or_panic();
        self.context.asks.insert(ask, M::NAME);
        let from = self.context.id.clone();
        self.out.post(room_id, Mail::Asked { from, ask, message: InternalMessage::of(message) });
        AskId(ask)
    }

    /// Starts work that waits: for a database, a web service, a file. What it ends with comes to
    /// the room by [`On`](crate::On).
    ///
    /// A panic in it closes the room. It goes on if the room ends, and what it ends with is
    /// dropped.
    ///
    /// # Errors
    /// `busy` when the node has as much such work under way as it may (`tasks_max`), `limit` past
    /// [`PENDING_MAX`].
    pub fn spawn<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<()> {
        let task = self.context.number()?;
        self.out.spawn(task, Box::pin(async move { InternalMessage::of(&work.await) }))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(())
    }

    /// Queues work that computes, on a bounded pool of threads. What it ends with comes to the room
    /// by [`On`](crate::On).
    ///
    /// # Errors
    /// `busy` when the pool's queue is full, `limit` past [`PENDING_MAX`].
    pub fn compute<M: InternalOf<R>>(
        &mut self,
        work: impl FnOnce() -> M + Send + 'static,
    ) -> Result<()> {
        let task = self.context.number()?;
        self.out.compute(task, Box::new(move || InternalMessage::of(&work())))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(())
    }

    fn emit_each<E: EventOf<R>>(&mut self, event: &E, to: impl Fn(PlayerId) -> bool) {
        let mut encoded = [false; Format::ALL.len()];
        for player in self.seats.values().filter(|player| to(player.id)) {
            self.emit_one(event, player, &mut encoded);
        }
    }

    fn emit_one<E: EventOf<R>>(
        &mut self,
        event: &E,
        player: &Player,
        encoded: &mut [bool; Format::ALL.len()],
    ) {
        let place = usize::from(player.format.number());
        let payload = &mut self.context.scratch[place];
        if !std::mem::replace(&mut encoded[place], true) {
            payload.clear();
            event.write(player.format, payload);
        }
        let header = EventHeader { index: E::INDEX, name: E::NAME, version: self.context.version };
        self.out.event(player.link, header, payload);
    }

    fn set_timer<M: Message>(
        &mut self,
        wait: Duration,
        every: Option<Duration>,
        message: &M,
    ) -> TimerId {
        assert!(
            self.context.timers.len() < TIMERS_MAX,
            "a room set more than {TIMERS_MAX} timers: cancel those that are not needed any more"
        );
        // Never due in the wake that set it: a room that sets timers without wait can't hold up the
        // shard.
        let at = self.context.now.saturating_add(wait.max(Duration::from_nanos(1)));
        self.context.timers.set(at, every, InternalMessage::of(message))
    }
}

fn limit(text: String) -> Error {
    Error::new(ErrorCode::Limit, text)
}
