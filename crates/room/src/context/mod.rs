//! Everything that a room's callbacks can do beside changing the state.

mod channels;
mod devices;
mod events;
pub(crate) mod replies;
mod rooms;
mod timers;
mod work;

use std::marker::PhantomData;
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::ErrorCode;

use crate::context_state::{ContextState, Effect, METADATA_BYTES_MAX, METADATA_MAX};
use crate::message::{RATE_MULTIPLE, REFUSALS_MIN};
use crate::random::Random;
use crate::rate::{Limit, Rate, Verdict};
use crate::seats::Seats;
use crate::{Error, Player, Result, RoomOutput};

/// Everything that a room's callbacks can do beside changing the state: the time, randomness, the
/// players, events, timers, background work, other rooms. Every callback receives one.
///
/// - *Time and chance*: [`now`](Self::now), [`tick`](Self::tick), [`rng`](Self::rng)
/// - *Players*: [`players`](Self::players), [`player`](Self::player), [`kick`](Self::kick),
///   [`round_trip`](Self::round_trip), [`joining`](Self::joining), [`creator`](Self::creator)
/// - *Events*: [`emit`](Self::emit), [`emit_to`](Self::emit_to), [`emit_some`](Self::emit_some),
///   [`emit_except`](Self::emit_except)
/// - *Timers*: [`after`](Self::after), [`every`](Self::every), [`cancel`](Self::cancel)
/// - *Background work*: [`spawn`](Self::spawn) to wait, [`compute`](Self::compute) to compute,
///   [`hold`](Self::hold) to let a player or the room wait for it, [`given_up`](Self::given_up)
/// - *Replies given later*: [`defer`](Self::defer), [`answer`](Self::answer),
///   [`reply_later`](Self::reply_later)
/// - *Other rooms*: [`tell`](Self::tell), [`ask`](Self::ask), [`sender`](Self::sender),
///   [`create_room`](Self::create_room), [`new_room`](Self::new_room),
///   [`room_id`](Self::room_id), [`room_type`](Self::room_type), [`key`](Self::key)
/// - *Channels*: [`publish`](Self::publish), [`publish_bytes`](Self::publish_bytes)
/// - *The room*: [`reserve`](Self::reserve), [`close`](Self::close), [`lock`](Self::lock),
///   [`unlock`](Self::unlock), [`set_private`](Self::set_private),
///   [`set_metadata`](Self::set_metadata), [`sync_now`](Self::sync_now)
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
    /// The player whose message is handled.
    caller: Option<&'a Player>,
    room: PhantomData<fn() -> R>,
}

impl<'a, R> Context<'a, R> {
    pub(crate) fn new(
        seats: &'a Seats,
        context: &'a mut ContextState,
        out: &'a mut dyn RoomOutput,
        joining: Option<&'a Player>,
    ) -> Self {
        Self { seats, context, out, joining, caller: None, room: PhantomData }
    }

    /// The same for a message of a player in the room.
    pub(crate) fn called_by(
        caller: &'a Player,
        seats: &'a Seats,
        context: &'a mut ContextState,
        out: &'a mut dyn RoomOutput,
    ) -> Self {
        Self { seats, context, out, joining: None, caller: Some(caller), room: PhantomData }
    }

    /// Returns the time since the room was created.
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

    /// All players, in the order in which they joined. In `join` this includes the new player; in
    /// `leave` it no longer includes the old one.
    pub fn players(&self) -> impl Iterator<Item = &'a Player> + use<'a, R> {
        self.seats.iter()
    }

    /// The player with this number; `None` if they are not in the room.
    pub fn player(&self, id: PlayerId) -> Option<&'a Player> {
        // Most often the caller is asked for, who need not be searched.
        self.caller.filter(|player| player.id == id).or_else(|| self.seats.get(id))
    }

    /// Returns the time that a message to this player's client and back takes: the node sends
    /// pings, and smooths what it measures as RFC 6298 (section 2) does with `SRTT`. It includes
    /// the time that passes in the node until a turn of the shard is over, and in the client until
    /// it answers.
    ///
    /// `None` unless the room asks for it by [`round_trip_ms`](crate::Settings::round_trip_ms),
    /// while the player has no connection, and until the first answer on the present connection.
    /// Measurements are inputs of the room, as messages are, and not part of its state: a room that
    /// shows them copies them there, and one that is replayed reads the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use std::time::Duration;
    ///
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// #[derive(State, Default)]
    /// struct Race {
    ///     round_trips_ms: Map<PlayerId, u32>,
    /// }
    ///
    /// #[room(tick_hz = 1, round_trip_ms = 2_000)]
    /// impl Room for Race {
    ///     fn tick(&mut self, cx: &mut Context<Self>) {
    ///         for player in cx.players() {
    ///             if let Some(time) = cx.round_trip(player.id()) {
    ///                 self.round_trips_ms.insert(player.id(), time.as_millis() as u32);
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Race>::new(1);
    /// let ann = sim.join("Ann")?;
    /// sim.measure(ann, Duration::from_millis(80));
    /// sim.measure(ann, Duration::from_millis(160));
    /// sim.advance(Duration::from_secs(1));
    /// assert_eq!(sim.copy(ann).round_trips_ms.get(&ann), Some(&90));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn round_trip(&self, player: PlayerId) -> Option<Duration> {
        self.context.round_trips.of(player)
    }

    /// The player that this callback is about to admit: in [`Room::join`](crate::Room::join), and
    /// in the [`On`](crate::On) of work that [holds](Self::hold) a player.
    pub fn joining(&self) -> Option<&'a Player> {
        self.joining
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
        let limit = Limit::new(rate, RATE_MULTIPLE).refusing(REFUSALS_MIN);
        let now = self.context.now;
        let limiter = self.context.limiter(player.id, message);
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
}

fn limit(text: String) -> Error {
    Error::new(ErrorCode::Limit, text)
}

#[cold]
fn too_fast(message: &str, rate: Rate) -> Error {
    Error::new(ErrorCode::TooFast, format!("{message}: a player may send {rate}"))
}
