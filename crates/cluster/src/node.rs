//! A node of a cluster: the whole state machine, one per process.

use std::time::Duration;

use crate::claims::Claims;
use crate::context::Context;
use crate::effect::{Effect, Peer};
use crate::engine::{Engine, EngineError, EngineEvent};
use crate::event::Event;
use crate::lease::{Change, Lease};
use crate::link::Links;
use crate::moving::Handing;
use crate::observer::Observer;
use crate::output::{Asked, Output};
use crate::placing::{Choice, choose, takes_next};
use crate::random::Random;
use crate::record::{Beat, Incarnation, Load, NodeState, Slot};
use crate::settings::Settings;

/// The least time between two messages about a load that changes.
const LOAD_EVERY: Duration = Duration::from_secs(1);

/// The time past its turn after which a process counts as one that stood still.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// A node of a cluster. Time is that of a clock that never goes back and counts suspension.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    lease: Lease,
    observer: Observer,
    claims: Claims,
    links: Links,
    output: Output,
    /// The time by which the host comes again.
    due_at: Option<Duration>,
    random: Random,
    load: Load,
    /// The load in the last message to the others, and the time of that message.
    told: (Load, Duration),
}

impl Node {
    /// Makes a node that begins to take a slot with its first turn. `entropy` is random: nonces
    /// follow from it.
    #[must_use]
    pub fn new(settings: Settings, entropy: u64, now: Duration) -> Self {
        let mut random = Random::new(entropy);
        let [claims, placing] = [random.next(), random.next()].map(Random::new);
        Self {
            claims: Claims::new(claims),
            lease: Lease::new(&settings, now, random),
            observer: Observer::default(),
            links: Links::default(),
            output: Output::default(),
            due_at: None,
            random: placing,
            load: Load::default(),
            told: (Load::default(), now),
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
        self.wake(now);
        let Self { settings, lease, observer, claims, links, output, .. } = self;
        let context = &mut Context { now, lease, settings, output };
        match event {
            Event::Engine(event) => self.engine_event(now, event),
            Event::Wanted { key, request, want } => {
                if self.acts(now) {
                    self.claims.wanted(key, request, want, &mut self.output);
                } else {
                    self.output.busy(request);
                }
            }
            Event::Opened { key, attempt, save } => claims.opened(&key, attempt, save, context),
            Event::Fenced { key } => claims.fenced(&key, output),
            Event::IsCode { key } => claims.is_code(&key, context),
            Event::Released { key } => claims.released(&key, output),
            Event::HandOver { key, to, nonce, request, is_first } => {
                let handing = Handing::new(to, nonce, request, is_first);
                claims.hand_over(&key, handing, context);
            }
            Event::Load(load) => self.load = load,
            Event::Ask { to, ask, within, body } => {
                links.ask(to, ask, within, &body, observer, context);
            }
            Event::Answer { to, number, body } => {
                links.answer(to, number, &body, settings, output);
            }
            Event::Tell { to, body } => links.tell(to, &body, observer, context),
        }
    }

    /// Chooses the node for a new room of a type: this one, unless others have less to do. Nodes
    /// without the type, those with a fingerprint of it that can't be read, nodes that leave, and
    /// silent ones are not chosen.
    pub fn choose(
        &mut self,
        now: Duration,
        room_type: &str,
        can_read: impl Fn(u64) -> bool,
    ) -> Option<Choice> {
        let Self { settings, lease, observer, random, load, .. } = self;
        let own = load.takes_rooms && settings.types.iter().any(|(name, _)| name == room_type);
        let mut peers = Vec::new();
        for peer in observer.heard_since(now.saturating_sub(settings.renew * 3)) {
            let is_other = Some(peer.incarnation) != lease.incarnation();
            let may_have =
                |(name, fingerprint): &(String, u64)| name == room_type && can_read(*fingerprint);
            if let Some(load) = peer.load.filter(|load| load.takes_rooms)
                && is_other
                && peer.types.iter().any(may_have)
            {
                peers.push((peer, load));
            }
        }
        choose(own.then_some(*load), &peers, random)
    }

    /// Returns whether new rooms come to this node before [others](Self::choose), whatever their
    /// type.
    #[must_use]
    pub fn takes_next(&self, now: Duration) -> bool {
        let since = now.saturating_sub(self.settings.renew * 3);
        let others = self.observer.heard_since(since);
        let is_other = |peer: &&Peer| Some(peer.incarnation) != self.lease.incarnation();
        let loads: Vec<_> = others.filter(is_other).filter_map(|peer| peer.load).collect();
        self.load.takes_rooms && takes_next(self.load, loads.into_iter())
    }

    /// Returns the other nodes that are known and not dead.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        let own = self.lease.incarnation();
        self.observer.peers().filter(move |peer| Some(peer.incarnation) != own)
    }

    /// Does what is due, and returns when to come again, if no event comes before. To be called after
    /// events, and before [`exchange`](Self::exchange).
    pub fn turn(&mut self, now: Duration) -> Duration {
        self.wake(now);
        if self.load != self.told.0 && now >= self.told.1 + LOAD_EVERY {
            self.beat(now);
        }
        let Self { settings, lease, observer, claims, links, output, .. } = self;
        let renewal = lease.turn(now, settings, output);
        observer.turn(now, lease, settings, output);
        if lease.acts_until(settings).is_some_and(|until| now < until) {
            claims.turn(now, output);
        }
        let link = links.turn(now, observer, output);
        let next = now + settings.renew / 4;
        let next = renewal.into_iter().chain(link).fold(next, Duration::min);
        self.due_at = Some(next);
        next
    }

    /// Gives up the slot and all claims: others may take over at once. From now on the node calls no
    /// rooms by claims; those that the host has not ended are frozen.
    pub fn leave(&mut self, now: Duration) {
        let change = self.lease.leave(now);
        self.changed(now, change);
    }

    /// Returns whether the node has given up its slot, after [`leave`](Self::leave).
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.lease.has_left()
    }

    /// Returns the next effect.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.output.next_effect()
    }

    /// Takes all events from the engine, and hands it all commands: also the messages to other nodes,
    /// one to each, of all that has come up since the last time.
    pub fn exchange(&mut self, now: Duration, engine: &mut impl Engine) {
        self.wake(now);
        loop {
            while let Some(event) = engine.next() {
                self.engine_event(now, event);
            }
            let Self { settings, lease, links, output, .. } = self;
            links.flush(now, lease, settings, output);
            if !output.has_commands() {
                return;
            }
            while let Some(command) = output.next_command() {
                engine.begin(command);
            }
        }
    }

    /// Resets the links if the process stood still: what has come since then is old.
    fn wake(&mut self, now: Duration) {
        if self.due_at.take_if(|due_at| now > *due_at + STOOD_STILL).is_some() {
            self.links.reset(&mut self.output);
        }
    }

    fn engine_event(&mut self, now: Duration, event: EngineEvent) {
        let Self { settings, lease, observer, claims, links, output, .. } = self;
        match event {
            EngineEvent::Received { bytes } => {
                // A node of a later build says what this one can't read, and is read in its record.
                if let Ok(beat) = Beat::decode(&bytes) {
                    observer.beat(now, beat, output);
                }
            }
            EngineEvent::Delivered { bytes } => {
                let context = &mut Context { now, lease, settings, output };
                links.delivered(&bytes, observer, context);
            }
            EngineEvent::Interrupted => links.reset(output),
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
        let Self { settings, lease, observer, claims, links, output, .. } = self;
        match change {
            Change::None => return,
            Change::Lost => {
                claims.lost(output);
                links.lost(output);
                observer.forget();
                lease.turn(now, settings, output);
                return;
            }
            Change::Left => {
                claims.lost(output);
                links.lost(output);
                if let Some(incarnation) = lease.last_incarnation() {
                    self.tell(now, incarnation, NodeState::Dead);
                }
                return;
            }
            Change::Taken => {
                observer.restart(now);
                claims.taken(output);
                if let (slot, Some(incarnation)) = (lease.slot(), lease.incarnation()) {
                    output.listen(slot, incarnation);
                    output.effect(Effect::Ready { slot, incarnation });
                }
            }
            Change::Renewed { sent_at, gap } => {
                if gap > settings.gap {
                    observer.restart(now);
                }
                claims.renewed(sent_at, output);
            }
        }
        self.beat(now);
    }

    fn beat(&mut self, now: Duration) {
        if let Some(incarnation) = self.lease.incarnation() {
            self.tell(now, incarnation, NodeState::Serving);
        }
    }

    /// Tells all other nodes of this one.
    fn tell(&mut self, now: Duration, incarnation: Incarnation, state: NodeState) {
        let Self { lease, load, output, .. } = self;
        let (slot, revision) = (lease.slot(), lease.revision());
        output.broadcast(Beat { slot, incarnation, revision, state, load: *load }.encode());
        self.told = (*load, now);
    }
}
