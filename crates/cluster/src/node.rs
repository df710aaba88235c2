//! A node of a cluster: the whole state machine, one per process.

use std::fmt;
use std::time::Duration;

use crate::claims::Claims;
use crate::context::Context;
use crate::engine::{Engine, EngineError, EngineEvent, Key};
use crate::lease::{Change, Lease};
use crate::observer::Observer;
use crate::output::{Asked, Output};
use crate::random::Random;
use crate::record::{Beat, Incarnation, SLOTS, Slot};

/// The number by which the host names a request for a key.
pub type RequestId = u64;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time without a renewal after which others declare a node dead.
    pub lease: Duration,
    /// The time between two renewals.
    pub renew: Duration,
    /// The time after the sending of the last answered renewal at which a node freezes.
    pub freeze: Duration,
    /// The longest time between two answers to own renewals that counts for other nodes.
    pub gap: Duration,
    /// The time that a node waits longer than those of lower slots before it declares one dead, for
    /// each of these.
    pub rank_delay: Duration,
    /// The slot to try first; a random one without it.
    pub slot: Option<Slot>,
    /// The place where clients reach the node.
    pub address: String,
    /// The machine and the file of a lock that this process holds, or empty. A node whose record
    /// names the same one is gone.
    pub lock: String,
}

impl Settings {
    /// The settings of a node with a lease of this length, 5 s at least.
    ///
    /// # Errors
    /// If the lease is too short.
    pub fn new(lease: Duration, address: impl Into<String>) -> Result<Self, SettingsError> {
        if lease < LEASE_MIN {
            return Err(SettingsError { lease });
        }
        let renew = lease / 10;
        Ok(Self {
            lease,
            renew,
            freeze: lease * 3 / 4,
            gap: renew * 2,
            rank_delay: renew / 10,
            slot: None,
            address: address.into(),
            lock: String::new(),
        })
    }
}

/// The shortest lease.
const LEASE_MIN: Duration = Duration::from_secs(5);

/// The error of settings that can't work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsError {
    lease: Duration,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease } = self;
        write!(f, "a lease of {lease:?} is too short: set {LEASE_MIN:?} or more")
    }
}

impl std::error::Error for SettingsError {}

/// An event for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of the engine.
    Engine(EngineEvent),
    /// A client wants to join the room of a key. Answered by [`Effect::Found`].
    Wanted {
        /// The key.
        key: Key,
        /// The number of the request.
        request: RequestId,
    },
    /// The outcome of [`Effect::Open`].
    Opened {
        /// The key.
        key: Key,
        /// The number of the attempt.
        attempt: u64,
        /// The save that was opened, or `None` if the store can't be reached.
        save: Option<Save>,
    },
    /// The store has refused a save of a room: its save was opened by another owner.
    Fenced {
        /// The key.
        key: Key,
    },
}

/// A save that was opened, compared with the room in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// The last one that the room in memory wrote; or no room is in memory.
    Intact,
    /// One of another owner.
    Changed,
}

/// An effect that the host carries out, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Open the save of a key, for a new fence, and answer with [`Event::Opened`]. If a room of the
    /// key is in memory, it is frozen, and goes on with that fence.
    Open {
        /// The key.
        key: Key,
        /// The number of the attempt, for the answer.
        attempt: u64,
    },
    /// Make a room of the save that was opened last, and serve it.
    Serve {
        /// The key.
        key: Key,
    },
    /// Keep the room in memory, and don't call it.
    Freeze {
        /// The key.
        key: Key,
    },
    /// Go on with the frozen room, by the fence that was opened last.
    Thaw {
        /// The key.
        key: Key,
    },
    /// Drop the frozen room: another node has had the key.
    End {
        /// The key.
        key: Key,
    },
    /// The answer to [`Event::Wanted`].
    Found {
        /// The number of the request.
        request: RequestId,
        /// The place of the room.
        place: Place,
    },
    /// Something that an operator should know.
    Noted(Notice),
}

/// The place of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This node serves it.
    Here,
    /// The node at this address serves it.
    At(String),
    /// Not known now: ask again in a second.
    Busy,
}

/// Something that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another node has declared this one dead.
    DeclaredDead,
    /// The engine has lost writes that it had confirmed.
    EngineLostWrites,
    /// No free slot was found yet.
    SlotsTaken {
        /// The number of slots that were tried.
        tried: u32,
    },
    /// A record can't be read.
    Unreadable {
        /// The record.
        key: Key,
        /// The reason.
        error: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeclaredDead => f.write_str(
                "another node has declared this one dead: it did not renew its lease in time; \
                 its keyed rooms are frozen until they are claimed again",
            ),
            Self::EngineLostWrites => f.write_str(
                "the engine has lost writes that it had confirmed; keyed rooms are frozen until \
                 they are claimed again; check its disks and its `sync_interval`",
            ),
            Self::SlotsTaken { tried } => write!(
                f,
                "{tried} of the cluster's {SLOTS} slots were tried, and all are taken: remove \
                 nodes, or wait until those that are gone are declared dead"
            ),
            Self::Unreadable { key, error } => write!(f, "the record {key} can't be read: {error}"),
        }
    }
}

/// A node of a cluster. Time is that of a clock that never goes back and counts suspension.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    lease: Lease,
    observer: Observer,
    claims: Claims,
    output: Output,
}

impl Node {
    /// Makes a node that begins to take a slot with its first turn. `entropy` is random: nonces
    /// follow from it.
    #[must_use]
    pub fn new(settings: Settings, entropy: u64, now: Duration) -> Self {
        let mut random = Random::new(entropy);
        Self {
            claims: Claims::new(Random::new(random.next())),
            lease: Lease::new(&settings, now, random),
            observer: Observer::default(),
            output: Output::default(),
            settings,
        }
    }

    /// Returns the node's slot. It may change until the node has an incarnation.
    #[must_use]
    pub fn slot(&self) -> Slot {
        self.lease.slot()
    }

    /// Returns the node's incarnation, unless it is taking a slot.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.lease.incarnation()
    }

    /// Returns until when the node may call the rooms that it serves by claims, as far as it is
    /// known now. The host asks before it calls any of them, with the clock read after the last
    /// wait: a process that was stopped notices it so.
    #[must_use]
    pub fn acts_until(&self) -> Option<Duration> {
        self.lease.acts_until(&self.settings)
    }

    /// Returns whether the node may call the rooms that it serves by claims.
    #[must_use]
    pub fn acts(&self, now: Duration) -> bool {
        self.acts_until().is_some_and(|until| now < until)
    }

    /// Takes an event.
    pub fn event(&mut self, now: Duration, event: Event) {
        let Self { settings, claims, output, .. } = self;
        match event {
            Event::Engine(event) => self.engine_event(now, event),
            Event::Wanted { key, request } => {
                if self.acts(now) {
                    self.claims.wanted(key, request, &mut self.output);
                } else {
                    self.output.effect(Effect::Found { request, place: Place::Busy });
                }
            }
            Event::Opened { key, attempt, save } => {
                claims.opened(now, &key, attempt, save, settings, output);
            }
            Event::Fenced { key } => claims.fenced(&key, output),
        }
    }

    /// Gives up the claim of a room that wants to end, and whose last save is durable. Returns
    /// whether it may end now; otherwise it goes on, or is frozen.
    pub fn release(&mut self, key: &Key) -> bool {
        self.claims.release(key, &mut self.output)
    }

    /// Does what is due, and returns when to come again.
    pub fn turn(&mut self, now: Duration) -> Duration {
        let Self { settings, lease, observer, claims, output } = self;
        let renewal = lease.turn(now, settings, output);
        observer.turn(now, lease, settings, output);
        if lease.acts_until(settings).is_some_and(|until| now < until) {
            claims.turn(now, output);
        }
        let next = now + settings.renew / 4;
        renewal.map_or(next, |at| at.min(next))
    }

    /// Returns the next effect.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.output.next_effect()
    }

    /// Takes all events from the engine, and hands it all commands.
    pub fn exchange(&mut self, now: Duration, engine: &mut impl Engine) {
        loop {
            while let Some(command) = self.output.next_command() {
                engine.begin(command);
            }
            let Some(event) = engine.next() else { return };
            self.event(now, Event::Engine(event));
        }
    }

    fn engine_event(&mut self, now: Duration, event: EngineEvent) {
        let Self { settings, lease, observer, claims, output } = self;
        match event {
            EngineEvent::Received { bytes } => {
                // A node of a later build says what this one can't read, and is read in its record.
                if let Ok(beat) = Beat::decode(&bytes) {
                    observer.beat(now, beat);
                }
            }
            EngineEvent::Answered { tag, result } => match output.answered(tag) {
                Some(Asked::Lease) => {
                    let change = lease.answered(now, tag, result, settings, output);
                    self.changed(now, change);
                }
                Some(Asked::Peers) => observer.listed(now, tag, result, output),
                Some(Asked::Peer(slot)) => {
                    let context = &mut Context { now, lease, settings, output };
                    observer.answered(slot, tag, result, context);
                }
                Some(Asked::Claim(key)) => {
                    let context = &mut Context { now, lease, settings, output };
                    claims.answered(&key, tag, result, observer, context);
                }
                // One that has arrived fails now by its condition.
                Some(Asked::Purge { key, revision }) if result == Err(EngineError::Unknown) => {
                    output.purge(key, revision);
                }
                Some(Asked::Purge { .. }) | None => {}
            },
        }
    }

    fn changed(&mut self, now: Duration, change: Change) {
        let Self { settings, lease, observer, claims, output } = self;
        match change {
            Change::None => return,
            Change::Lost => {
                claims.lost(output);
                observer.forget();
                lease.turn(now, settings, output);
                return;
            }
            Change::Taken => {
                observer.restart(now);
                claims.taken(output);
            }
            Change::Renewed { sent_at, gap } => {
                if gap > settings.gap {
                    observer.restart(now);
                }
                claims.renewed(sent_at, output);
            }
        }
        if let Some(incarnation) = lease.incarnation() {
            let beat = Beat { slot: lease.slot(), incarnation, revision: lease.revision() };
            output.broadcast(beat.encode());
        }
    }
}
