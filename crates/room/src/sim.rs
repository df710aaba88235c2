//! A room with simulated players and simulated time: how rooms are tested.
//!
//! Everything between the room's code and a player's copy is the real thing: messages and replies are encoded and decoded,
//! copies are kept in step by patches, in both formats, and checked after each sync against the state that the player may see.
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

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use playfield_state::{Data, Format, JsonMirror, Mirror, PlayerId, Tracking, view};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;

use crate::core::RoomCore;
use crate::{
    Accepts, AnyRoom, AskId, Asks, Birth, Emits, Entrant, Error, EventHeader, Facts, Job, Link, Mail,
    Message, Note, Notes, Outlet, Result, Room, Task,
};

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

/// What one player has.
struct Copies<R> {
    link: Link,
    packed: Mirror<R>,
    json: JsonMirror,
    version: u64,
    stalled: bool,
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
        let birth =
            Birth { id: ROOM_ID.into(), seed, private: false, options: &encoded, format: Format::Packed };
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
    pub fn facts(&self) -> &Facts {
        self.core.facts()
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
        if format == Format::Json {
            self.out.json.push(link);
        }
        let entrant = Entrant { link, format, name: name.into(), user };
        let joined = self.core.join(self.now, entrant, &mut self.out);
        self.gone();
        if joined.is_err() {
            self.out.events.retain(|event| event.link != link);
        }
        let player = joined?;
        let copies =
            Copies { link, packed: Mirror::new(), json: JsonMirror::new(), version: 0, stalled: false };
        self.players.insert(player, copies);
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
    pub fn request<M: Message>(&mut self, player: PlayerId, message: M) -> Result<M::Reply>
    where
        R: Accepts<M>,
    {
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
    pub fn send<M: Message>(&mut self, player: PlayerId, message: M) -> Result<()>
    where
        R: Accepts<M>,
    {
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
    pub fn raw_request(&mut self, player: PlayerId, message: u32, payload: &[u8]) -> Result<Vec<u8>> {
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
        self.out.answers.remove(&request).map_or_else(|| Err(self.why_no_answer(player)), |(_, reply)| reply)
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
            let Some(next) = wake.into_iter().chain(tick).chain(sync).min().filter(|next| *next <= until)
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
    pub fn events<E: Message>(&mut self, player: PlayerId) -> Vec<E>
    where
        R: Emits<E>,
    {
        let link = self.copies_mut(player).link;
        let (mine, others) = std::mem::take(&mut self.out.events)
            .into_iter()
            .partition(|event| event.link == link && event.index == R::INDEX);
        self.out.events = others;
        let mine: Vec<SentEvent> = mine;
        mine.iter()
            .map(|event| {
                E::read(self.out.format_of(event.link), &event.payload).expect("an event can be decoded")
            })
            .collect()
    }

    /// The numbers of the background work that has not ended, oldest first.
    pub fn background(&self) -> Vec<u64> {
        let Record { tasks, jobs, .. } = &self.out;
        let mut numbers: Vec<u64> =
            tasks.iter().map(|(task, _)| *task).chain(jobs.iter().map(|(task, _)| *task)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Ends background work with `note`, without running it: for work that would need the outside world.
    ///
    /// # Panics
    /// If no such work is under way.
    pub fn finish<M: Message>(&mut self, task: u64, note: &M)
    where
        R: Notes<M>,
    {
        assert!(self.background().contains(&task), "no background work {task} is under way");
        self.out.tasks.retain(|(number, _)| *number != task);
        self.out.jobs.retain(|(number, _)| *number != task);
        self.mail(Mail::Done { task, note: Note::of(note) });
    }

    /// Runs the computations that wait, and lets the waiting work go as far as it can. Says how many ended.
    pub fn run_background(&mut self) -> usize {
        let mut ended = Vec::new();
        for (task, job) in std::mem::take(&mut self.out.jobs) {
            let done = catch_unwind(AssertUnwindSafe(job));
            ended.push(done.map_or(Mail::Lost { task }, |note| Mail::Done { task, note }));
        }
        for (task, mut work) in std::mem::take(&mut self.out.tasks) {
            let poll = || work.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
            match catch_unwind(AssertUnwindSafe(poll)) {
                Ok(Poll::Ready(note)) => ended.push(Mail::Done { task, note }),
                Ok(Poll::Pending) => self.out.tasks.push((task, work)),
                Err(_) => ended.push(Mail::Lost { task }),
            }
        }
        let count = ended.len();
        for mail in ended {
            self.mail(mail);
        }
        count
    }

    /// Another room tells this one something.
    pub fn tell<M: Message>(&mut self, note: &M)
    where
        R: Notes<M>,
    {
        self.mail(Mail::Told { from: OTHER_ROOM_ID.into(), note: Note::of(note) });
    }

    /// Another room asks this one, and is answered.
    ///
    /// # Errors
    /// The room's refusal, `room_failed` if it panicked, or `room_not_found` if it has ended.
    pub fn ask<M: Message>(&mut self, note: &M) -> Result<M::Reply>
    where
        R: Notes<M>,
    {
        self.requests += 1;
        let number = u64::from(self.requests);
        self.mail(Mail::Asked { from: OTHER_ROOM_ID.into(), ask: number, note: Note::of(note) });
        let mine = |(to, mail): &(String, Mail)| {
            to == OTHER_ROOM_ID && matches!(mail, Mail::Answered { ask, .. } if *ask == number)
        };
        let place = self.out.posts.iter().rposition(mine).expect("a request is always answered");
        match self.out.posts.remove(place).1 {
            Mail::Answered { reply: Ok(reply), .. } => M::Reply::read(Format::Packed, &reply)
                .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string())),
            Mail::Answered { reply: Err(error), .. } => Err(error),
            _ => unreachable!("it was looked for as an answer"),
        }
    }

    /// Answers a request that this room sent to another.
    pub fn answer<M: Message>(&mut self, ask: AskId, reply: Result<M::Reply>)
    where
        R: Asks<M>,
    {
        let reply = reply.map(|reply| {
            let mut payload = Vec::new();
            reply.encode(&mut payload);
            payload
        });
        self.mail(Mail::Answered { ask: ask.0, reply });
    }

    /// Gives the room mail, as its host would.
    pub fn mail(&mut self, mail: Mail) {
        self.core.mail(self.now, mail, &mut self.out);
        self.gone();
    }

    /// What the room sent to other rooms since it was last asked for.
    pub fn posted(&mut self) -> Vec<(String, Mail)> {
        std::mem::take(&mut self.out.posts)
    }

    /// Why a player is not here any more.
    pub fn why_gone(&self, player: PlayerId) -> Option<&Error> {
        self.out.gone.get(&player)
    }

    fn message<M: Message>(&mut self, player: PlayerId, message: &M, request: Option<u32>)
    where
        R: Accepts<M>,
    {
        let format =
            self.players.get(&player).map_or(Format::Packed, |copies| self.out.format_of(copies.link));
        let mut payload = Vec::new();
        message.write(format, &mut payload);
        let reference = match format {
            Format::Packed => MessageRef::Index(<R as Accepts<M>>::INDEX),
            Format::Json => MessageRef::Name(M::NAME.into()),
        };
        self.core.message(self.now, player, &reference, &payload, request, &mut self.out);
        self.gone();
    }

    /// Takes note of the players whom the room took out.
    fn gone(&mut self) {
        for (link, why) in std::mem::take(&mut self.out.removed) {
            let player =
                self.players.iter().find(|(_, copies)| copies.link == link).map(|(player, _)| *player);
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

impl<R: Room + Default> Copies<R> {
    /// Takes the copies to the room's version, and checks them.
    fn follow(&mut self, player: PlayerId, core: &mut RoomCore<R>) {
        let mut body = Vec::new();
        if self.version == 0 {
            core.snapshot(player, Format::Packed, &mut body);
            self.packed.snapshot(&body).expect("a snapshot fits");
            body.clear();
            core.snapshot(player, Format::Json, &mut body);
            self.json.snapshot(&body).expect("a snapshot fits");
        } else {
            if core.patch(player, self.version, Format::Packed, &mut body) {
                self.packed.patch(&body).expect("a patch fits");
            }
            body.clear();
            if core.patch(player, self.version, Format::Json, &mut body) {
                self.json.patch(&body).expect("a patch fits");
            }
        }
        self.version = core.version();
        let Some(state) = core.state() else { return };
        let seen = view(state, Some(player));
        assert_eq!(
            view(self.packed.state(), Some(player)),
            seen,
            "player {player}'s packed copy is not what they may see"
        );
        assert_eq!(*self.json.state(), seen, "player {player}'s JSON copy is not what they may see");
    }
}

/// What the room gave out.
#[derive(Default)]
struct Record {
    answers: BTreeMap<u32, (Format, Result<Vec<u8>>)>,
    errors: Vec<(Link, Error)>,
    events: Vec<SentEvent>,
    removed: Vec<(Link, Error)>,
    gone: BTreeMap<PlayerId, Error>,
    tasks: Vec<(u64, Task)>,
    jobs: Vec<(u64, Job)>,
    posts: Vec<(String, Mail)>,
    json: Vec<Link>,
}

struct SentEvent {
    link: Link,
    index: u32,
    payload: Vec<u8>,
}

impl Record {
    fn format_of(&self, link: Link) -> Format {
        if self.json.contains(&link) { Format::Json } else { Format::Packed }
    }
}

impl Outlet for Record {
    fn reply(&mut self, link: Link, request: u32, payload: &[u8]) {
        self.answers.insert(request, (self.format_of(link), Ok(payload.to_vec())));
    }

    fn error(&mut self, link: Link, request: Option<u32>, error: &Error) {
        match request {
            Some(request) => {
                self.answers.insert(request, (self.format_of(link), Err(error.clone())));
            }
            None => self.errors.push((link, error.clone())),
        }
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        self.events.push(SentEvent { link, index: event.index, payload: payload.to_vec() });
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.removed.push((link, why.clone()));
    }

    fn spawn(&mut self, task: u64, work: Task) {
        self.tasks.push((task, work));
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        self.jobs.push((task, job));
        Ok(())
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.posts.push((to.to_owned(), mail));
    }
}
