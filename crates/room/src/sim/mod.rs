//! Tests of rooms: a room with simulated players and simulated time, without sockets or threads.

mod any_message;
mod audit;
mod copies;
mod freezing;
mod mail;
mod players;
mod record;
mod replaying;
mod time;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Data, Format, LoadError, PlayerId, Tracking};

use self::audit::By;
pub use self::audit::{AuditReport, Difference, Divergence, Leak, LeakKind, Refusals};
use self::copies::Copies;
pub use self::players::Requested;
use self::record::Record;
pub use self::replaying::SimReplayError;
use crate::core::RoomCore;
use crate::{
    AnyRoom, Birth, Creator, EndReason, KeyOrigin, Link, MemoryStore, Result, Room, RoomSummary,
    Store,
};

/// The id of a simulated room.
pub const ROOM_ID: &str = "sim";

/// The name of a simulated room's type.
pub const ROOM_TYPE: &str = "sim";

/// The id of the room for which [`Sim::tell`] and [`Sim::ask`] speak.
pub const OTHER_ROOM_ID: &str = "other";

/// The name of that room's type.
pub const OTHER_ROOM_TYPE: &str = "other";

/// The means to keep a simulated room: its key, and the place of its saves.
#[derive(Default)]
struct Kept {
    key: Option<Arc<str>>,
    store: Option<Arc<dyn Store>>,
}

/// A room, its simulated players, and the time.
///
/// A test calls the room through this type as a node would: messages, replies and events are
/// encoded and decoded, and each player has copies of the state that patches keep up to date.
/// After each sync, each copy is compared with what that player may see of the state, in `packed`
/// and in a tree format, and `Sim` panics if they differ. A test that needs speed more than this
/// check [turns it off](Self::verify).
///
/// - *Players*: [`join`](Self::join), [`join_begin`](Self::join_begin), [`leave`](Self::leave),
///   [`request`](Self::request), [`request_begin`](Self::request_begin),
///   [`send`](Self::send), [`events`](Self::events), [`copy`](Self::copy),
///   [`stall`](Self::stall), [`cut`](Self::cut), [`resume`](Self::resume),
///   [`measure`](Self::measure)
/// - *Time*: [`advance`](Self::advance), [`sync`](Self::sync), [`now`](Self::now)
/// - *Background work*: [`run_background`](Self::run_background),
///   [`background`](Self::background), [`finish`](Self::finish)
/// - *Other rooms*: [`tell`](Self::tell), [`ask`](Self::ask), [`posted`](Self::posted),
///   [`answer`](Self::answer), [`other_room`](Self::other_room), [`created`](Self::created),
///   [`created_ended`](Self::created_ended)
/// - *Channels*: [`published`](Self::published)
/// - *Devices*: [`pushed`](Self::pushed)
/// - *Audits*: [`audit`](Self::audit), [`audit_with`](Self::audit_with),
///   [`may_see`](Self::may_see), [`check_determinism`](Self::check_determinism),
///   [`any_message`](Self::any_message)
/// - *The room*: [`room`](Self::room), [`room_mut`](Self::room_mut),
///   [`summary`](Self::summary), [`close`](Self::close), [`is_closed`](Self::is_closed),
///   [`freeze`](Self::freeze), [`thaw`](Self::thaw), [`replay`](Self::replay)
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
/// struct Table {
///     played: List<u8>,
///     #[sync(owner)]
///     hands: Map<PlayerId, List<u8>>,
/// }
///
/// #[derive(Message)]
/// #[reply(u8)]
/// struct Play {
///     place: u32,
/// }
///
/// #[derive(Message, Debug, PartialEq)]
/// struct Over;
///
/// #[room(messages(Play), events(Over))]
/// impl Room for Table {
///     fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
///         let hand = (0..2).map(|_| cx.rng().below(52) as u8).collect();
///         self.hands.insert(player.id(), hand);
///         Ok(())
///     }
/// }
///
/// impl Handle<Play> for Table {
///     fn handle(&mut self, play: Play, who: &Player, cx: &mut Context<Self>) -> Result<u8> {
///         let hand = self.hands.get_mut(&who.id()).ok_or("you have no cards")?;
///         let card = hand.remove(play.place as usize).ok_or("you have no such card")?;
///         self.played.push(card);
///         if hand.is_empty() {
///             cx.emit(&Over);
///         }
///         Ok(card)
///     }
/// }
///
/// let mut sim = Sim::<Table>::new(7);
/// let (ann, bob) = (sim.join("Ann")?, sim.join("Bob")?);
///
/// // A request is answered at once; copies change with the next sync.
/// let card = sim.request(ann, Play { place: 0 })?;
/// assert!(sim.copy(bob).played.is_empty());
/// sim.advance(Duration::from_millis(50));
/// assert_eq!(sim.copy(bob).played[0], card);
///
/// // Each player has a copy of their own hand alone.
/// assert!(sim.copy(bob).hands.get(&ann).is_none());
///
/// assert_eq!(sim.request(ann, Play { place: 5 }).unwrap_err().text(), "you have no such card");
/// sim.request(ann, Play { place: 0 })?;
/// assert_eq!(sim.events::<Over>(bob), [Over]);
/// # Ok::<(), Error>(())
/// ```
pub struct Sim<R: Room + Default> {
    core: RoomCore<R>,
    now: Duration,
    next_tick: u64,
    next_sync: u64,
    players: BTreeMap<PlayerId, Copies<R>>,
    /// The players who wait to join.
    waiting: BTreeMap<PlayerId, (Link, Format)>,
    /// The new numbers of players who waited for the save, by the provisional ones.
    renumbered: BTreeMap<PlayerId, PlayerId>,
    /// The players who are gone.
    past: BTreeMap<PlayerId, Copies<R>>,
    out: Record,
    links: u64,
    requests: u32,
    verify: bool,
    tracking: Tracking,
    store: Option<Arc<dyn Store>>,
}

impl<R: Room + Default> Sim<R> {
    /// A room with default options, created by nobody in particular. `seed` seeds its generator.
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
        Self::create(seed, options, Creator::Node, Tracking::On)
    }

    /// A room with a key that whoever creates it has chosen, and options.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn with_key(seed: u64, options: &R::Options, key: &str) -> Result<Self> {
        let kept = Kept { key: Some(key.into()), store: None };
        Self::create_kept(seed, options, Creator::Node, Tracking::On, kept)
    }

    /// A room that someone created: see [`Context::creator`](crate::Context::creator). A player
    /// does not join by this.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn created_by(creator: Creator, seed: u64, options: &R::Options) -> Result<Self> {
        Self::create(seed, options, creator, Tracking::On)
    }

    /// A room that compares its whole state at each sync if tracking is off.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn with_tracking(seed: u64, options: &R::Options, tracking: Tracking) -> Result<Self> {
        Self::create(seed, options, Creator::Node, tracking)
    }

    /// A room with a key whose type is [persistent](crate::Room#rooms-that-last), kept in `store`.
    /// Like other background work, loads and saves end with
    /// [`run_background`](Self::run_background): the room opens then. A save of 32 KiB or more is
    /// read by one more call, as a [computation](crate::Context::compute).
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } pub mod store { pub use playfield_room::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// use playfield::store::MemoryStore;
    ///
    /// #[derive(State, Default)]
    /// struct Document {
    ///     text: String,
    /// }
    ///
    /// #[room(persist = 10)]
    /// impl Room for Document {}
    ///
    /// let store = MemoryStore::new();
    /// let mut sim = Sim::<Document>::with_store(1, &(), "42", store.clone());
    /// sim.run_background();
    /// sim.room_mut().text.push_str("Hello");
    /// sim.close(playfield::EndReason::Drained);
    /// sim.run_background();
    /// assert!(sim.is_closed());
    ///
    /// let mut sim = Sim::<Document>::with_store(2, &(), "42", store);
    /// sim.run_background();
    /// assert_eq!(sim.room().text, "Hello");
    /// ```
    ///
    /// # Panics
    /// If the type is not persistent.
    pub fn with_store(
        seed: u64,
        options: &R::Options,
        key: &str,
        store: impl Store + 'static,
    ) -> Self {
        assert!(R::SETTINGS.persist_s > 0, "the room's type needs `#[room(persist = 10)]`");
        let kept = Kept { key: Some(key.into()), store: Some(Arc::new(store)) };
        Self::create_kept(seed, options, Creator::Node, Tracking::On, kept)
            .expect("a room whose save is loaded is not refused yet")
    }

    /// A persistent room that is made of a save.
    ///
    /// # Errors
    /// If the save can't be read.
    pub fn load(seed: u64, save: &[u8]) -> Result<Self, LoadError> {
        playfield_state::load::<R>(save)?;
        let store = MemoryStore::new();
        store.set(ROOM_TYPE, ROOM_ID, save.to_vec());
        let mut sim = Self::with_store(seed, &R::Options::default(), ROOM_ID, store);
        while sim.core.is_loading() {
            sim.run_background();
        }
        Ok(sim)
    }

    /// The save of the room as it is.
    ///
    /// # Panics
    /// If the room has ended.
    pub fn save(&self) -> Vec<u8> {
        playfield_state::save(self.room())
    }

    fn create(
        seed: u64,
        options: &R::Options,
        creator: Creator,
        tracking: Tracking,
    ) -> Result<Self> {
        Self::create_kept(seed, options, creator, tracking, Kept::default())
    }

    fn create_kept(
        seed: u64,
        options: &R::Options,
        creator: Creator,
        tracking: Tracking,
        Kept { key, store }: Kept,
    ) -> Result<Self> {
        let mut encoded = Vec::new();
        options.encode(&mut encoded);
        let birth = Birth {
            id: ROOM_ID.into(),
            room_type: ROOM_TYPE.into(),
            key,
            key_origin: KeyOrigin::Chosen,
            seed,
            settings: R::SETTINGS,
            private: false,
            options: &encoded,
            format: Format::Packed,
            creator,
            store: store.clone(),
            seats: Vec::new(),
        };
        let (mut core, mut out) = (RoomCore::with_tracking(birth, tracking)?, Record::default());
        core.start(&mut out);
        Ok(Self::of(core, out, tracking, store))
    }

    /// A room without players yet.
    fn of(
        core: RoomCore<R>,
        out: Record,
        tracking: Tracking,
        store: Option<Arc<dyn Store>>,
    ) -> Self {
        Self {
            core,
            now: Duration::ZERO,
            next_tick: 1,
            next_sync: 1,
            players: BTreeMap::new(),
            waiting: BTreeMap::new(),
            renumbered: BTreeMap::new(),
            past: BTreeMap::new(),
            out,
            links: 0,
            requests: 0,
            verify: true,
            tracking,
            store,
        }
    }

    /// The room's state.
    ///
    /// # Panics
    /// If the room has ended.
    pub fn room(&self) -> &R {
        self.core.state().expect("the room has ended")
    }

    /// The room's state, for a test to set up or to change. Copies change with the next sync.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// # #[derive(State, Default)]
    /// # struct Duel { health: u32 }
    /// # #[room()]
    /// # impl Room for Duel {}
    /// let mut sim = Sim::<Duel>::new(1);
    /// let ann = sim.join("Ann").unwrap();
    /// sim.room_mut().health = 1;
    /// sim.sync();
    /// assert_eq!(sim.copy(ann).health, 1);
    /// ```
    ///
    /// # Panics
    /// If the room has ended.
    pub fn room_mut(&mut self) -> &mut R {
        self.log_input(By::Test, |_| "the test changes the state".to_owned());
        self.core.state_mut().expect("the room has ended")
    }

    /// Closes the room from outside, as a node that shuts down does. If the room has begun
    /// background work by then, it ends once that is done, or after `closing_ms`.
    pub fn close(&mut self, why: EndReason) {
        self.log_input(By::Test, |_| "the room is closed from outside".to_owned());
        self.core.close(self.now, why, "closed from outside", &mut self.out);
        self.follow_up();
    }

    /// Returns whether the room has ended.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Returns the facts about the room that others may know.
    pub fn summary(&self) -> &RoomSummary {
        self.core.summary()
    }
}
