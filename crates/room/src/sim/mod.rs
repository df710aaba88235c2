//! A room with simulated players and simulated time: how rooms are tested.
//!
//! Everything between the room's code and a player's copy is the real thing: messages and replies
//! are encoded and decoded, copies are kept in step by patches, in both formats, and checked after
//! each sync against the state that the player may see.
//!
//! ```
//! # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
//! use playfield::prelude::*;
//! use playfield::sim::Sim;
//!
//! #[derive(State, Default)]
//! struct Counter {
//!     value: i64,
//! }
//!
//! #[derive(Message)]
//! #[reply(i64)]
//! struct Add(i64);
//!
//! #[room(messages(Add))]
//! impl Room for Counter {}
//!
//! impl Handle<Add> for Counter {
//!     fn handle(&mut self, Add(step): Add, _: &Player, _: &mut Context<Self>) -> Result<i64> {
//!         self.value += step;
//!         Ok(self.value)
//!     }
//! }
//!
//! let mut sim = Sim::<Counter>::new(1);
//! let ann = sim.join("Ann").unwrap();
//! assert_eq!(sim.request(ann, Add(2)), Ok(2));
//! sim.advance(std::time::Duration::from_millis(100));
//! assert_eq!(sim.copy(ann).value, 2);
//! ```

mod copies;
mod elsewhere;
mod record;

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::{Data, Format, PlayerId, Tracking};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;

use self::copies::Copies;
use self::record::{Record, SentEvent};
use crate::core::RoomCore;
use crate::{AnyRoom, Birth, Entrant, Error, EventOf, Link, MessageOf, Result, Room, RoomSummary};

/// The id of a simulated room.
pub const ROOM_ID: &str = "sim";

/// The id of the room that [`Sim::tell`] and [`Sim::ask`] speak for.
pub const OTHER_ROOM_ID: &str = "other";

/// A room, its simulated players, and the time.
pub struct Sim<R: Room + Default> {
    core: RoomCore<R>,
    now: Duration,
    next_tick: u64,
    next_sync: u64,
    players: BTreeMap<PlayerId, Copies<R>>,
    out: Record,
    links: u64,
    requests: u32,
}

impl<R: Room + Default> Sim<R> {
    /// A room with default options, whose generator is seeded with `seed`.
    ///
    /// # Panics
    /// If the room refuses to be created.
    pub fn new(seed: u64) -> Self {
        Self::with_options(seed, &R::Options::default()).expect("the room refused to be created")
    }

    /// A room with options.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn with_options(seed: u64, options: &R::Options) -> Result<Self> {
        Self::with_tracking(seed, options, Tracking::On)
    }

    /// A room that compares everything at each sync, if tracking is off.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn with_tracking(seed: u64, options: &R::Options, tracking: Tracking) -> Result<Self> {
        let mut encoded = Vec::new();
        options.encode(&mut encoded);
        let birth = Birth {
            id: ROOM_ID.into(),
            seed,
            settings: R::SETTINGS,
            private: false,
            options: &encoded,
            format: Format::Packed,
        };
        Ok(Self {
            core: RoomCore::with_tracking(birth, tracking)?,
            now: Duration::ZERO,
            next_tick: 1,
            next_sync: 1,
            players: BTreeMap::new(),
            out: Record::default(),
            links: 0,
            requests: 0,
        })
    }

    /// The room's state.
    ///
    /// # Panics
    /// If the room has ended.
    pub fn room(&self) -> &R {
        self.core.state().expect("the room has ended")
    }

    /// Whether the room has ended.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// What others may know of the room.
    pub fn summary(&self) -> &RoomSummary {
        self.core.summary()
    }

    /// How long the room has existed.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Seats a player, whose copy begins with a sync.
    ///
    /// # Errors
    /// The room is full, locked, has ended, or refuses.
    pub fn join(&mut self, name: &str) -> Result<PlayerId> {
        self.join_in(name, Format::Packed)
    }

    /// Seats a player whose messages and events are in the given format.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_in(&mut self, name: &str, format: Format) -> Result<PlayerId> {
        self.enter(name, None, format)
    }

    /// Seats a player whom the authenticator knows.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_as(&mut self, name: &str, user: &str) -> Result<PlayerId> {
        self.enter(name, Some(user.into()), Format::Packed)
    }

    fn enter(&mut self, name: &str, user: Option<String>, format: Format) -> Result<PlayerId> {
        self.links += 1;
        let link = Link(self.links);
        if format != Format::Packed {
            self.out.formats.insert(link, format);
        }
        let entrant = Entrant { link, format, name: name.into(), user };
        let joined = self.core.join(self.now, entrant, &mut self.out);
        self.gone();
        if joined.is_err() {
            self.out.events.retain(|event| event.link != link);
        }
        let player = joined?;
        self.players.insert(player, Copies::new(link, format));
        self.sync();
        Ok(player)
    }

    /// A player goes.
    pub fn leave(&mut self, player: PlayerId) {
        self.players.remove(&player);
        self.core.leave(self.now, player, &mut self.out);
        self.gone();
    }

    /// A player asks, and is answered.
    ///
    /// # Errors
    /// The room's refusal, or `room_failed` if it panicked.
    pub fn request<M: MessageOf<R>>(&mut self, player: PlayerId, message: M) -> Result<M::Reply> {
        self.requests += 1;
        let request = self.requests;
        self.message(player, &message, Some(request));
        match self.out.answers.remove(&request) {
            Some((format, reply)) => {
                let reply = reply?;
                M::Reply::read(format, &reply)
                    .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))
            }
            None => Err(self.why_no_answer(player)),
        }
    }

    /// A player tells.
    ///
    /// # Errors
    /// The room's refusal, or `room_failed` if it panicked.
    pub fn send<M: MessageOf<R>>(&mut self, player: PlayerId, message: M) -> Result<()> {
        self.message(player, &message, None);
        let link = self.players.get(&player).map(|copies| copies.link);
        match self.out.errors.pop() {
            Some((of, error)) if Some(of) == link => Err(error),
            _ if self.players.contains_key(&player) && !self.core.is_closed() => Ok(()),
            _ => Err(self.why_no_answer(player)),
        }
    }

    /// Bytes as a client might send them: a message by number, in `packed`.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn raw_request(
        &mut self,
        player: PlayerId,
        message: u32,
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        self.requests += 1;
        let request = self.requests;
        self.core.message(
            self.now,
            player,
            &MessageRef::Index(message),
            payload,
            Some(request),
            &mut self.out,
        );
        self.gone();
        self.out
            .answers
            .remove(&request)
            .map_or_else(|| Err(self.why_no_answer(player)), |(_, reply)| reply)
    }

    /// Lets time pass: timers, ticks and syncs happen when they are due.
    pub fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        loop {
            let beat = |hz: u32, number: u64| {
                (hz > 0).then(|| Duration::from_nanos(number * 1_000_000_000 / u64::from(hz)))
            };
            let wake = self.core.wake_at();
            let tick = beat(self.core.tick_hz(), self.next_tick);
            let sync = beat(self.core.sync_hz(), self.next_sync);
            let Some(next) =
                wake.into_iter().chain(tick).chain(sync).min().filter(|next| *next <= until)
            else {
                break;
            };
            if self.core.is_closed() {
                break;
            }
            self.now = self.now.max(next);
            if wake == Some(next) {
                self.core.wake(self.now, &mut self.out);
            }
            if tick == Some(next) {
                self.core.tick(self.now, self.next_tick, &mut self.out);
                self.next_tick += 1;
            }
            if sync == Some(next) {
                self.next_sync += 1;
                self.sync();
            }
            self.gone();
            if self.core.wants_sync() {
                self.sync();
            }
        }
        self.now = until;
    }

    /// Syncs now; every player that is not stalled gets a patch, and every copy is checked.
    ///
    /// # Panics
    /// If a copy is not what the player may see.
    pub fn sync(&mut self) {
        self.core.sync(self.now, &mut self.out);
        self.gone();
        for (&player, copies) in &mut self.players {
            if !copies.stalled {
                copies.follow(player, &mut self.core);
            }
        }
        if self.core.has_failed() {
            self.core.wake(self.now, &mut self.out);
            self.gone();
        }
    }

    /// From here on this player's connection takes nothing.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn stall(&mut self, player: PlayerId) {
        self.copies_mut(player).stalled = true;
    }

    /// The connection takes again what is sent, at the next sync.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn resume(&mut self, player: PlayerId) {
        self.copies_mut(player).stalled = false;
    }

    /// A player's copy of the state, as of the last sync.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn copy(&self, player: PlayerId) -> &R {
        self.players.get(&player).expect("no such player").packed.state()
    }

    /// The events of one kind that a player got since they were last asked for.
    ///
    /// # Panics
    /// If there is no such player, or an event can't be decoded.
    pub fn events<E: EventOf<R>>(&mut self, player: PlayerId) -> Vec<E> {
        let link = self.copies_mut(player).link;
        let (mine, others) = std::mem::take(&mut self.out.events)
            .into_iter()
            .partition(|event| event.link == link && event.index == E::INDEX);
        self.out.events = others;
        let mine: Vec<SentEvent> = mine;
        mine.iter()
            .map(|event| {
                E::read(self.out.format_of(event.link), &event.payload)
                    .expect("an event can be decoded")
            })
            .collect()
    }

    /// Whether a player sits in the room.
    pub fn is_here(&self, player: PlayerId) -> bool {
        self.players.contains_key(&player)
    }

    /// Why the room took a player out.
    pub fn why_gone(&self, player: PlayerId) -> Option<&Error> {
        self.out.gone.get(&player)
    }

    fn message<M: MessageOf<R>>(&mut self, player: PlayerId, message: &M, request: Option<u32>) {
        let format = self
            .players
            .get(&player)
            .map_or(Format::Packed, |copies| self.out.format_of(copies.link));
        let mut payload = Vec::new();
        message.write(format, &mut payload);
        let reference = match format.tree() {
            None => MessageRef::Index(M::INDEX),
            Some(_) => MessageRef::Name(M::NAME.into()),
        };
        self.core.message(self.now, player, &reference, &payload, request, &mut self.out);
        self.gone();
    }

    /// Takes note of the players whom the room took out.
    fn gone(&mut self) {
        for (link, why) in std::mem::take(&mut self.out.removed) {
            let player = self
                .players
                .iter()
                .find(|(_, copies)| copies.link == link)
                .map(|(player, _)| *player);
            if let Some(player) = player {
                self.players.remove(&player);
                self.out.gone.insert(player, why);
            }
        }
    }

    fn why_no_answer(&self, player: PlayerId) -> Error {
        self.out
            .gone
            .get(&player)
            .cloned()
            .unwrap_or_else(|| Error::new(ErrorCode::NotJoined, "no such player"))
    }

    fn copies_mut(&mut self, player: PlayerId) -> &mut Copies<R> {
        self.players.get_mut(&player).expect("no such player")
    }
}
