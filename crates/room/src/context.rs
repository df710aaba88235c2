//! What a room's callbacks can do beside changing the state.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Data, Format, PlayerId};
use playfield_wire::ErrorCode;

use crate::context_state::{
    Asked, ContextState, Effect, METADATA_BYTES_MAX, METADATA_MAX, PENDING_MAX, Seats, TIMERS_MAX,
};
use crate::deferred::{Asker, Deferred, pack};
use crate::message::{AskId, AskOf, EventOf, InternalOf, Message, RATE_MULTIPLE};
use crate::random::Random;
use crate::rate::{Limit, Rate, Verdict};
use crate::timers::{TIMER_PERIOD_MIN, TimerId};
use crate::{
    Creator, Error, EventHeader, InRoom, InternalMessage, Mail, Player, Reservation, Result, Room,
    RoomBuilder, RoomOutput, SeatFor, Sender,
};

/// What a room's callbacks can do beside changing the state: the time, randomness, the players,
/// events, timers, background work, other rooms. Every callback receives one.
///
/// - *Time and chance*: [`now`](Self::now), [`tick`](Self::tick), [`rng`](Self::rng)
/// - *Players*: [`players`](Self::players), [`player`](Self::player), [`kick`](Self::kick),
///   [`joining`](Self::joining), [`creator`](Self::creator)
/// - *Events*: [`emit`](Self::emit), [`emit_to`](Self::emit_to), [`emit_some`](Self::emit_some),
///   [`emit_except`](Self::emit_except)
/// - *Timers*: [`after`](Self::after), [`every`](Self::every), [`cancel`](Self::cancel)
/// - *Background work*: [`spawn`](Self::spawn) to wait, [`compute`](Self::compute) to compute,
///   [`hold`](Self::hold) to let a player or the room wait for it
/// - *Replies given later*: [`defer`](Self::defer), [`answer`](Self::answer),
///   [`reply_later`](Self::reply_later)
/// - *Other rooms*: [`tell`](Self::tell), [`ask`](Self::ask), [`sender`](Self::sender),
///   [`create_room`](Self::create_room), [`new_room`](Self::new_room),
///   [`room_id`](Self::room_id), [`room_type`](Self::room_type), [`key`](Self::key)
/// - *The room*: [`reserve`](Self::reserve), [`close`](Self::close), [`lock`](Self::lock), [`unlock`](Self::unlock),
///   [`set_private`](Self::set_private), [`set_metadata`](Self::set_metadata),
///   [`sync_now`](Self::sync_now)
///
/// A room that uses no other clock, randomness or input than these is deterministic: the same
/// inputs and seed lead to the same state.
///
/// # Examples
///
/// A round that ends by a timer:
///
/// ```
/// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
/// use std::time::Duration;
///
/// use playfield::prelude::*;
/// use playfield::sim::Sim;
///
/// #[derive(State, Default)]
/// struct Quiz {
///     round: u32,
/// }
///
/// #[derive(Message)]
/// struct TimeIsUp;
///
/// #[derive(Message, Debug, PartialEq)]
/// struct Won(PlayerId);
///
/// #[room(events(Won), internal(TimeIsUp))]
/// impl Room for Quiz {
///     fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
///         cx.every(Duration::from_secs(10), TimeIsUp);
///         cx.set_metadata("mode", "quick")?;
///         Ok(Self::default())
///     }
///
///     fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
///         if cx.players().any(|other| other.id() != player.id() && other.name() == player.name()) {
///             return Err("someone has this name already".into());
///         }
///         Ok(())
///     }
/// }
///
/// impl On<TimeIsUp> for Quiz {
///     fn on(&mut self, _: TimeIsUp, cx: &mut Context<Self>) -> Result<()> {
///         self.round += 1;
///         let players = cx.players().count() as u64;
///         let lucky = cx.rng().below(players) as usize;
///         if let Some(winner) = cx.players().nth(lucky) {
///             cx.emit(&Won(winner.id()));
///         }
///         Ok(())
///     }
/// }
///
/// let mut sim = Sim::<Quiz>::new(1);
/// let ann = sim.join("Ann")?;
/// assert!(sim.join("Ann").is_err());
/// sim.advance(Duration::from_secs(10));
/// assert_eq!(sim.events::<Won>(ann), [Won(ann)]);
/// # Ok::<(), Error>(())
/// ```
pub struct Context<'a, R> {
    seats: &'a Seats,
    context: &'a mut ContextState,
    out: &'a mut dyn RoomOutput,
    joining: Option<&'a Player>,
    room: PhantomData<fn() -> R>,
}

impl<'a, R> Context<'a, R> {
    pub(crate) fn new(
        seats: &'a Seats,
        context: &'a mut ContextState,
        out: &'a mut dyn RoomOutput,
        joining: Option<&'a Player>,
    ) -> Self {
        Self { seats, context, out, joining, room: PhantomData }
    }

    /// How long the room has existed.
    pub fn now(&self) -> Duration {
        self.context.now
    }

    /// The number of the current tick, or of the last one between ticks; 0 before the first. Ticks
    /// that an overloaded server skipped count as well.
    pub fn tick(&self) -> u64 {
        self.context.tick
    }

    /// The room's random number generator, seeded when the room is created.
    pub fn rng(&mut self) -> &mut Random {
        &mut self.context.random
    }

    /// The room's id, by which clients and other rooms address it.
    pub fn room_id(&self) -> &str {
        &self.context.own.room_id
    }

    /// The name of the room's type at its node.
    pub fn room_type(&self) -> &str {
        &self.context.own.room_type
    }

    /// The room's key, by which it can be joined; `None` if it has none. A node has one room with
    /// this key and this type at a time.
    pub fn key(&self) -> Option<&str> {
        self.context.summary.key.as_deref()
    }

    /// The room that sent the message or request that is being handled in [`On`](crate::On); `None`
    /// if it comes from a timer, from background work or from outside the node's rooms, and in all
    /// other callbacks.
    pub fn sender(&self) -> Option<&Sender> {
        self.context.sender.as_deref()
    }

    /// Who had this room created: a player by `create` or `join_or_create`, another room, or the
    /// node.
    ///
    /// It is known in [`Room::create`](crate::Room::create) already. A player's number is not: they
    /// join after that, and [`Room::join`](crate::Room::join) may refuse them.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # #[derive(State, Default)]
    /// # struct Lobby { host: String }
    /// #[room()]
    /// impl Room for Lobby {
    ///     fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
    ///         let host = cx.creator().user().ok_or("guests cannot create lobbies")?.to_owned();
    ///         Ok(Self { host })
    ///     }
    /// }
    /// ```
    pub fn creator(&self) -> &Creator {
        &self.context.creator
    }

    /// Creates another room, and returns its id at once. Messages to it from now on follow its
    /// creation. [`new_room`](Self::new_room) says more about it than its options.
    ///
    /// # Errors
    /// As [`RoomBuilder::create`]. If the new room's own [`create`](crate::Room::create) refuses,
    /// that is logged, and requests to it are answered with `room_not_found`.
    pub fn create_room<N: Room>(&mut self, options: &N::Options) -> Result<String> {
        self.new_room::<N>(options).create()
    }

    /// Prepares to create another room, with a key or with reserved seats.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use std::time::Duration;
    /// # use playfield::prelude::*;
    /// # use playfield::{Reservation, sim::Sim};
    /// #[derive(State, Default)]
    /// struct Lobby {}
    ///
    /// #[derive(Message)]
    /// struct Play;
    ///
    /// /// The match is about to begin: join it with this.
    /// #[derive(Message)]
    /// struct Called(Reservation);
    ///
    /// #[room(messages(Play), events(Called))]
    /// impl Room for Lobby {}
    ///
    /// impl Handle<Play> for Lobby {
    ///     fn handle(&mut self, _: Play, _: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         let players: Vec<&Player> = cx.players().collect();
    ///         let mut duel = cx.new_room::<Duel>(&()).private();
    ///         let seats: Vec<_> =
    ///             players.iter().map(|player| duel.reserve(*player, Duration::from_secs(30))).collect();
    ///         duel.create()?;
    ///         for (player, seat) in players.iter().zip(seats) {
    ///             cx.emit_to(player.id(), &Called(seat));
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// #[derive(State, Default)]
    /// struct Duel {}
    ///
    /// #[room(creation = server, capacity = 2)]
    /// impl Room for Duel {}
    ///
    /// let mut sim = Sim::<Lobby>::new(1);
    /// let ann = sim.join("Ann")?;
    /// sim.request(ann, Play)?;
    /// assert!(sim.created()[0].is::<Duel>());
    /// assert_eq!(sim.events::<Called>(ann).len(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new_room<N: Room>(&mut self, options: &N::Options) -> RoomBuilder<InRoom<'_>> {
        let creator = Creator::Room(Arc::clone(&self.context.own));
        RoomBuilder::new::<N>(InRoom::new(self.context, self.out), creator, options)
    }

    /// Keeps a seat of this room for someone who is about to join, for so long. The seat counts
    /// against the capacity until it is taken or its time has run out.
    ///
    /// While seats are reserved, a room without players stays open.
    ///
    /// # Errors
    /// `room_full` if no seat is free, or `limit` beyond
    /// [`RESERVATION_MAX`](crate::RESERVATION_MAX).
    pub fn reserve(&mut self, who: impl Into<SeatFor>, wait: Duration) -> Result<Reservation> {
        self.context.reserve_seat(who.into(), wait)
    }

    /// All players, in the order in which they joined. In `join` this includes the new player; in
    /// `leave` it no longer includes the old one.
    pub fn players(&self) -> impl Iterator<Item = &'a Player> + use<'a, R> {
        self.seats.values()
    }

    /// The player with this number; `None` if they are not in the room.
    pub fn player(&self, id: PlayerId) -> Option<&'a Player> {
        self.seats.get(&id)
    }

    /// The player whom this callback is about to let in: in [`Room::join`](crate::Room::join), and in
    /// the [`On`](crate::On) of work for which a player is [held](Self::hold).
    pub fn joining(&self) -> Option<&'a Player> {
        self.joining
    }

    /// Sends an event to all players. In `create` there are none, and the event is dropped.
    pub fn emit<E: EventOf<R>>(&mut self, event: &E) {
        self.emit_each(event, |_| true);
    }

    /// Sends an event to one player; does nothing if they are not in the room. A player who is
    /// [joining](Self::joining) receives it if they are let in.
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
            let joining = self.joining.filter(|player| player.id == id);
            if let Some(player) = self.seats.get(&id).or(joining) {
                self.emit_one(event, player, &mut encoded);
            }
        }
    }

    /// Sends an event to all players but one.
    pub fn emit_except<E: EventOf<R>>(&mut self, player: PlayerId, event: &E) {
        self.emit_each(event, |id| id != player);
    }

    /// Sets a timer: the room receives this message once, by [`On`](crate::On), after `wait`. It
    /// never fires in the callback that sets it, even with a `wait` of zero.
    ///
    /// Timers end with the room.
    ///
    /// # Panics
    /// At [`TIMERS_MAX`] timers.
    pub fn after<M: InternalOf<R>>(&mut self, wait: Duration, message: M) -> TimerId {
        self.set_timer(wait, None, &message)
    }

    /// Sets a repeating timer: the room receives this message after each `period`, which is at least
    /// [`TIMER_PERIOD_MIN`]. Periods that an overloaded server missed are skipped.
    ///
    /// # Panics
    /// At [`TIMERS_MAX`] timers.
    pub fn every<M: InternalOf<R>>(&mut self, period: Duration, message: M) -> TimerId {
        let period = period.max(TIMER_PERIOD_MIN);
        self.set_timer(period, Some(period), &message)
    }

    /// Cancels a timer; `false` if it had fired or was canceled before.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.context.timers.cancel(timer)
    }

    /// Removes a player once this callback has returned, with a text for them.
    /// [`Room::leave`](crate::Room::leave) is called. In `join`, kicking the new player refuses the
    /// join.
    pub fn kick(&mut self, player: PlayerId, text: impl Into<String>) {
        self.context.effects.push(Effect::Kick(player, Error::new(ErrorCode::Kicked, text)));
    }

    /// Takes one of the messages that a player may send at this rate.
    pub(crate) fn limit(
        &mut self,
        player: &Player,
        message: u32,
        name: &'static str,
        rate: Rate,
    ) -> Result<()> {
        let limit = Limit::new(rate, RATE_MULTIPLE);
        let now = self.context.now;
        let limiter = self.context.limiters.entry((player.id, message)).or_default();
        match limiter.take(now, &limit, 1) {
            Verdict::Within => Ok(()),
            Verdict::Exceeds(wait) => Err(too_fast(name, rate).with_retry_after(wait)),
            Verdict::Excessive => {
                let error = too_fast(name, rate);
                self.context.effects.push(Effect::Kick(player.id, error.clone()));
                Err(error)
            }
        }
    }

    /// Ends the room once this callback has returned, with a text for all players. In `create` this
    /// refuses the creation. [`Room::closing`](crate::Room::closing) is called, then
    /// [`Room::leave`](crate::Room::leave) for each player: see
    /// [the life of a room](crate::Room#life-of-a-room).
    pub fn close(&mut self, text: impl Into<String>) {
        self.context.effects.push(Effect::Close(text.into()));
    }

    /// Refuses further players, until [`unlock`](Self::unlock).
    pub fn lock(&mut self) {
        self.context.summary.locked = true;
    }

    /// Lets players join again.
    pub fn unlock(&mut self) {
        self.context.summary.locked = false;
    }

    /// Sets whether the room is private: neither listed nor found by `join_or_create`, it can be
    /// joined by its id alone.
    pub fn set_private(&mut self, private: bool) {
        self.context.summary.private = private;
    }

    /// Sets an entry of the metadata that clients see in the list of rooms. An empty value removes
    /// the entry.
    ///
    /// # Errors
    /// `limit` for more than [`METADATA_MAX`] keys, or for a key or value of more than
    /// [`METADATA_BYTES_MAX`] bytes.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        let metadata = &mut self.context.summary.metadata;
        if value.is_empty() {
            metadata.remove(key);
            return Ok(());
        }
        if key.len() > METADATA_BYTES_MAX || value.len() > METADATA_BYTES_MAX {
            return Err(limit(format!(
                "a metadata key or value has at most {METADATA_BYTES_MAX} bytes"
            )));
        }
        if metadata.len() >= METADATA_MAX && !metadata.contains_key(key) {
            return Err(limit(format!("metadata has at most {METADATA_MAX} keys")));
        }
        metadata.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Syncs at the end of this turn of the server, instead of at the next regular time.
    pub fn sync_now(&mut self) {
        self.context.wants_sync = true;
    }

    /// Sends a message to another room, which receives it by [`On`](crate::On). Nothing happens if
    /// there is no such room.
    pub fn tell<M: Message>(&mut self, room_id: &str, message: &M) {
        let from = Some(Arc::clone(&self.context.own));
        self.out.post(room_id, Mail::Told { from, message: InternalMessage::of(message) });
    }

    /// Sends a request to another room. The reply, or the error if there is none, arrives by
    /// [`Answer`](crate::Answer).
    ///
    /// # Panics
    /// At [`PENDING_MAX`](crate::PENDING_MAX) tasks and unanswered requests.
    pub fn ask<M: AskOf<R>>(&mut self, room_id: &str, message: &M) -> AskId {
        let ask = self.context.number_or_panic();
        self.context.asks.insert(ask, M::NAME);
        let from = Some(Arc::clone(&self.context.own));
        self.out.post(room_id, Mail::Asked { from, ask, message: InternalMessage::of(message) });
        AskId(ask)
    }

    /// Starts a background task that waits: for a database, a web service, a file. Its result
    /// arrives by [`On`](crate::On).
    ///
    /// All tasks of a node share one thread with a Tokio runtime (`current_thread`, with I/O and
    /// time enabled). So `tokio::spawn` and clients built on Tokio work in them, and a task must not
    /// compute or block: use [`compute`](Self::compute), or `tokio::task::spawn_blocking`.
    ///
    /// A task that panics closes the room. A room that ends waits for tasks that it has begun since
    /// its end began, at most `closing_ms`. Other tasks outlive their room: their result is
    /// discarded. At shutdown, unfinished tasks are dropped. In [`Sim`](crate::sim::Sim), tasks run
    /// without Tokio; end those that need it with [`Sim::finish`](crate::sim::Sim::finish).
    ///
    /// # Errors
    /// `busy` when the node has `tasks_max` unfinished tasks, `limit` at
    /// [`PENDING_MAX`](crate::PENDING_MAX). If a task begun in `create` meets a busy node, the room
    /// is closed.
    pub fn spawn<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<()> {
        self.spawn_numbered(work).map(drop)
    }

    /// Starts a background task as [`spawn`](Self::spawn) does, and holds the room or the player
    /// until its message was handled.
    ///
    /// - In [`Room::create`](crate::Room::create): nobody enters the room before. `Ok` from the
    ///   handler ([`On`](crate::On)) of the message opens the room; an error refuses all who wait,
    ///   and there is no room. Until it opens, there are no ticks and no timers, and messages from
    ///   other rooms wait (at most [`HELD_MAIL_MAX`](crate::HELD_MAIL_MAX)).
    /// - In [`Room::join`](crate::Room::join), which returns `Ok`: the player waits, with a seat that
    ///   counts against the capacity, but is not among the [players](Self::players). `Ok` from the
    ///   handler of the message seats the player, who is [`joining`](Self::joining) there; an error
    ///   refuses them. The handler does what `join` would do with someone it lets in at once. If the
    ///   player disconnects before, the message is dropped, and no callback is called for them.
    /// - In that handler: the wait goes on.
    ///
    /// Whoever waits for more than `join_wait_ms` is refused with `timeout`. Beyond
    /// `joins_waiting_max` players who wait, more are refused with `busy`.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// #[derive(State, Default)]
    /// struct Club {
    ///     members: Map<PlayerId, String>,
    /// }
    ///
    /// #[derive(Message)]
    /// struct LookedUp {
    ///     is_member: bool,
    /// }
    ///
    /// async fn look_up(name: String) -> bool {
    ///     name == "Ann" // ask a database instead
    /// }
    ///
    /// #[room(internal(LookedUp))]
    /// impl Room for Club {
    ///     fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         let name = player.name().to_owned();
    ///         cx.hold(async move { LookedUp { is_member: look_up(name).await } })
    ///     }
    /// }
    ///
    /// impl On<LookedUp> for Club {
    ///     fn on(&mut self, found: LookedUp, cx: &mut Context<Self>) -> Result<()> {
    ///         let player = cx.joining().ok_or("nobody is joining")?;
    ///         if !found.is_member {
    ///             return Err("members only".into());
    ///         }
    ///         self.members.insert(player.id(), player.name().to_owned());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Club>::new(1);
    /// let (ann, bob) = (sim.join_begin("Ann")?, sim.join_begin("Bob")?);
    /// assert!(sim.is_waiting(ann));
    /// sim.run_background();
    /// assert!(sim.is_here(ann));
    /// assert_eq!(sim.why_gone(bob).unwrap().text(), "members only");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn); `internal` in any other callback.
    pub fn hold<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<()> {
        let Some(subject) = self.context.subject else {
            let text = "cx.hold: nobody is to be held in this callback; call it in create, in join, \
                        or in the handler of work that was held";
            return Err(Error::new(ErrorCode::Internal, text));
        };
        let task = self.spawn_numbered(work)?;
        self.context.holds.insert(task, subject);
        self.context.holds_begun += 1;
        Ok(())
    }

    /// Saves the room now, instead of when it is due. The room receives this message by
    /// [`On`](crate::On) when the state as it is after this callback, or a later one, is on disk.
    ///
    /// A save that fails is logged and tried again, so the message may take longer; if the room ends
    /// before one succeeds, it is not sent. To learn of a failure, use
    /// [`try_save`](Self::try_save).
    ///
    /// # Errors
    /// `refused` if the room is not [persistent](crate::Room#rooms-that-last), `limit` if
    /// [`PENDING_MAX`](crate::PENDING_MAX) messages wait for a save.
    pub fn save<M: InternalOf<R>>(&mut self, message: M) -> Result<()> {
        self.ask_for_save(Asked::Saved(InternalMessage::of(&message)))
    }

    /// Saves the room as [`save`](Self::save) does. The room receives what `message` makes of the
    /// outcome of one attempt. An attempt that failed is followed by others all the same.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn try_save<M: InternalOf<R>>(
        &mut self,
        message: impl FnOnce(Result<()>) -> M + Send + 'static,
    ) -> Result<()> {
        let make = move |outcome| InternalMessage::of(&message(outcome));
        self.ask_for_save(Asked::Outcome(Box::new(make)))
    }

    fn ask_for_save(&mut self, asked: Asked) -> Result<()> {
        if !self.context.persists {
            let text = "cx.save: the room is not saved: its type needs `#[room(persist = 10)]`, and \
                        the room a key";
            return Err(Error::new(ErrorCode::Refused, text));
        }
        if self.context.saves_asked >= PENDING_MAX {
            return Err(limit(format!("{PENDING_MAX} messages wait for a save of this room")));
        }
        self.context.saves_asked += 1;
        self.context.effects.push(Effect::Save(asked));
        Ok(())
    }

    /// Queues a computation for a pool of threads that the node's rooms share (`compute_threads` of
    /// them). Its result arrives by [`On`](crate::On).
    ///
    /// A computation that panics closes the room. At the room's end it is as with
    /// [`spawn`](Self::spawn). At shutdown, queued computations are dropped; one that is running is not
    /// interrupted.
    ///
    /// # Errors
    /// `busy` when `compute_queue_max` computations are queued, `limit` at
    /// [`PENDING_MAX`](crate::PENDING_MAX). If a computation begun in `create` meets a full queue,
    /// the room is closed.
    pub fn compute<M: InternalOf<R>>(
        &mut self,
        work: impl FnOnce() -> M + Send + 'static,
    ) -> Result<()> {
        let task = self.context.number()?;
        self.out.compute(task, Box::new(move || InternalMessage::of(&work())))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(())
    }

    fn spawn_numbered<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<u64> {
        let task = self.context.number()?;
        self.out.spawn(task, Box::pin(async move { InternalMessage::of(&work.await) }))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(task)
    }

    /// Keeps the request that this handler ([`Handle`](crate::Handle), or [`On`](crate::On) for
    /// another room's) is about to answer, for [`answer`](Self::answer). The handler then returns
    /// [`Error::deferred`]. If it returns anything else, that is the answer.
    ///
    /// A reply that is not given within `reply_ms` fails with `timeout`, and at the room's end with
    /// `room_closed`. Past [`DEFERRED_MAX`](crate::DEFERRED_MAX) of them, a request is answered with
    /// `limit`. If the message was no request, nobody waits.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// /// Two players who press at the same time are told so.
    /// #[derive(State, Default)]
    /// struct Handshake {
    ///     #[sync(hidden)]
    ///     waiting: Option<Deferred<Shake>>,
    /// }
    ///
    /// #[derive(Message)]
    /// #[reply(String)]
    /// struct Shake;
    ///
    /// #[room(messages(Shake))]
    /// impl Room for Handshake {}
    ///
    /// impl Handle<Shake> for Handshake {
    ///     fn handle(&mut self, _: Shake, player: &Player, cx: &mut Context<Self>) -> Result<String> {
    ///         match self.waiting.take() {
    ///             Some(other) if cx.answer(other, Ok(player.name().to_owned())) => {
    ///                 Ok("them, at once".into())
    ///             }
    ///             _ => {
    ///                 self.waiting = Some(cx.defer());
    ///                 Err(Error::deferred())
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Handshake>::new(1);
    /// let (ann, bob) = (sim.join("Ann")?, sim.join("Bob")?);
    /// let asked = sim.request_begin(ann, Shake);
    /// assert_eq!(sim.reply(&asked), None);
    /// assert_eq!(sim.request(bob, Shake)?, "them, at once");
    /// assert_eq!(sim.reply(&asked), Some(Ok("Bob".into())));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn defer<M: Message>(&mut self) -> Deferred<M> {
        let by = self.context.now.saturating_add(self.context.reply_wait);
        self.context.replies.defer(by)
    }

    /// Answers a request that was [deferred](Self::defer). Returns `false` if nobody waits for the
    /// answer: it was answered before, it failed, or the player has left.
    pub fn answer<M: Message>(&mut self, later: Deferred<M>, reply: Result<M::Reply>) -> bool {
        let Some(to) = self.context.replies.take(later) else { return false };
        let reply = reply.map(|reply| {
            let mut payload = Vec::new();
            reply.write(to.format(), &mut payload);
            payload
        });
        send_reply(&to, reply.as_deref().map_err(Error::clone), self.out);
        true
    }

    /// Defers the reply to background work, which runs as with [`spawn`](Self::spawn): return what
    /// this returns from the handler of `M`.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # #[derive(State, Default)]
    /// # struct Library {}
    /// # #[derive(Message)]
    /// # #[reply(String)]
    /// # struct Look { word: String }
    /// # async fn look_up(word: String) -> Result<String> { Ok(word) }
    /// # #[room(messages(Look))]
    /// # impl Room for Library {}
    /// impl Handle<Look> for Library {
    ///     fn handle(&mut self, look: Look, _: &Player, cx: &mut Context<Self>) -> Result<String> {
    ///         cx.reply_later::<Look>(look_up(look.word))
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Always: [`Error::deferred`], or as [`spawn`](Self::spawn).
    pub fn reply_later<M: Message>(
        &mut self,
        work: impl Future<Output = Result<M::Reply>> + Send + 'static,
    ) -> Result<M::Reply> {
        let format = self.context.replies.format();
        let task = self.context.number()?;
        let name = M::NAME.to_owned();
        let work = async move { InternalMessage { name, payload: pack(format, work.await) } };
        self.out.spawn(task, Box::pin(work))?;
        let later = self.defer::<M>();
        self.context.tasks.insert(task, M::NAME);
        self.context.replying.insert(task, later.number);
        Err(Error::deferred())
    }

    /// What the handler of `M` refused with; an error, if it deferred the reply to another message.
    #[cold]
    pub(crate) fn checked<M: Message>(&mut self, error: Error) -> Error {
        match self.context.replies.check(M::NAME) {
            Err(wrong) if error.is_deferred() => wrong,
            _ => error,
        }
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
            "a room set more than {TIMERS_MAX} timers: cancel those it no longer needs"
        );
        // Never due in the wake that set it, so that a room that always sets a timer of zero cannot
        // block its shard.
        let at = self.context.now.saturating_add(wait.max(Duration::from_nanos(1)));
        self.context.timers.set(at, every, InternalMessage::of(message))
    }
}

/// Answers a request that was deferred.
pub(crate) fn send_reply(to: &Asker, reply: Result<&[u8]>, out: &mut dyn RoomOutput) {
    // It would say that the answer comes later.
    let reply = reply.map_err(|error| match error.is_deferred() {
        true => Error::new(ErrorCode::Internal, "the room did not answer"),
        false => error,
    });
    match (to, reply) {
        (Asker::Player { link, request, .. }, Ok(payload)) => out.reply(*link, *request, payload),
        (Asker::Player { link, request, .. }, Err(error)) => {
            out.error(*link, Some(*request), &error);
        }
        (Asker::Room { from, ask }, reply) => {
            let to = from.as_deref().map_or("", |from| &from.room_id);
            out.post(to, Mail::Answered { ask: *ask, reply: reply.map(<[u8]>::to_vec) });
        }
    }
}

fn limit(text: String) -> Error {
    Error::new(ErrorCode::Limit, text)
}

#[cold]
fn too_fast(message: &str, rate: Rate) -> Error {
    Error::new(ErrorCode::TooFast, format!("{message}: a player may send {rate}"))
}
