//! A world: hosts, engine, store and clients in one thread, on a clock of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::effect::NodeId;
use crate::engine::{Command, EngineEvent, Key};
use crate::random::Random;
use crate::record::Incarnation;
use crate::sim::asks::AskLog;
use crate::sim::client::{Client, Reply};
use crate::sim::engine::Records;
use crate::sim::faults::{Fault, FaultKind, SECOND, clock_rate, plan};
use crate::sim::host::{Host, Input};
use crate::sim::laws::{Breach, Law, Laws};
use crate::sim::network::Way;
use crate::sim::saves::{SaveRequest, Saves};
use crate::sim::{Counts, LEASE, Mutation};

pub(super) struct World {
    pub(super) now: u64,
    /// The times of events, the numbers by which those of one time keep their order, and their
    /// places.
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    scheduled: u64,
    events: Vec<Option<Scheduled>>,
    /// Places without an event.
    free: Vec<usize>,
    pub(super) random: Random,
    pub(super) mutation: Option<Mutation>,
    pub(super) hosts: Vec<Host>,
    pub(super) clients: Vec<Client>,
    pub(super) keys: Vec<Key>,
    pub(super) laws: Laws,
    pub(super) counts: Counts,
    /// For each key, the time at which a client last reached its room.
    pub(super) reached: Vec<u64>,
    pub(super) records: Records,
    pub(super) engine_away: Outage,
    pub(super) saves: Saves,
    pub(super) asks: Vec<AskLog>,
    /// The incarnations that leave.
    pub(super) leaving: Vec<Incarnation>,
    faults: Vec<Fault>,
    probed_at: u64,
    pub(super) is_probed: bool,
}

/// The last outage of the engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outage {
    pub(super) began: u64,
    pub(super) ends: u64,
    /// The last time at which the engine restarted without some of its writes. What was on the way
    /// to it on its connections was lost with them.
    pub(super) lost_at: u64,
}

/// Something that happens at a time.
#[derive(Debug)]
pub(super) enum Scheduled {
    /// Something arrives at the process of that life.
    Host {
        host: u8,
        life: u32,
        input: Input,
    },
    /// A command arrives at the engine. Its answer counts until the deadline.
    Engine {
        host: u8,
        life: u32,
        command: Command,
        sent_at: u64,
        deadline: u64,
    },
    Saves {
        host: u8,
        life: u32,
        request: SaveRequest,
        deadline: u64,
    },
    /// A message of a node to another one arrives at the engine.
    Message {
        to: NodeId,
        bytes: Vec<u8>,
    },
    Reply(Reply),
    /// A client waits no longer for the request of that number.
    Client {
        client: u8,
        number: u32,
    },
    Fault(u16),
    /// The host's process starts, unless it runs.
    Start(u8),
    /// The host's process, or its clock, goes on.
    GoOn(u8),
    /// The last fault is over.
    Calm,
    Probe,
    Finish,
}

impl World {
    pub(super) fn new(seed: u64, faults: usize, mutation: Option<Mutation>) -> Self {
        let mut random = Random::new(seed);
        let hosts = random.between(2, 4);
        let plan = plan(seed, faults, hosts);
        let keys = random.between(1, 3) as usize;
        let clients = keys as u64 + random.between(0, 2);
        let is_far_off = random.one_in(8);
        let mut world = Self {
            now: 0,
            queue: BinaryHeap::with_capacity(256),
            scheduled: 0,
            events: Vec::new(),
            free: Vec::new(),
            mutation,
            hosts: Vec::new(),
            clients: (0..clients)
                .map(|client| Client::new((client as usize % keys) as u8))
                .collect(),
            keys: (0..keys).map(|key| format!("r.log.{key}").into()).collect(),
            laws: Laws::new(keys),
            counts: Counts::default(),
            reached: vec![0; keys],
            records: Records::default(),
            engine_away: Outage::default(),
            saves: Saves::new(keys),
            asks: Vec::new(),
            leaving: Vec::new(),
            faults: plan,
            probed_at: 0,
            is_probed: false,
            random: Random::new(0),
        };
        world.records.is_unconditional = mutation == Some(Mutation::NoCondition);
        world.saves.is_unfenced = mutation == Some(Mutation::NoFence);
        for host in 0..hosts as u8 {
            let rate = clock_rate(&mut random, is_far_off);
            let shown = random.below(1 << 40);
            world.hosts.push(Host::new(rate, shown));
            world.schedule(random.below(SECOND), Scheduled::Start(host));
        }
        for client in 0..clients as u8 {
            world.schedule(SECOND + random.below(SECOND), Scheduled::Client { client, number: 0 });
        }
        world.random = random;
        world
    }

    pub(super) fn planned(&self) -> &[Fault] {
        &self.faults
    }

    /// Runs the plan of these faults. The others are left out.
    pub(super) fn run(mut self, faults: &[Fault]) -> Result<Counts, Breach> {
        self.faults = faults.to_vec();
        let mut calm_at = 5 * SECOND;
        for (index, fault) in faults.iter().enumerate() {
            self.schedule(fault.at, Scheduled::Fault(index as u16));
            calm_at = calm_at.max(fault.ends());
        }
        // On the slowest clock.
        self.probed_at = calm_at + (LEASE + 5 * SECOND) * 5 / 4;
        self.schedule(calm_at, Scheduled::Calm);
        self.schedule(self.probed_at, Scheduled::Probe);
        self.schedule(self.probed_at + 8 * SECOND, Scheduled::Finish);
        while let Some(Reverse((at, _, place))) = self.queue.pop() {
            let Some(event) = self.events[place].take() else { continue };
            self.free.push(place);
            self.now = at;
            self.counts.events += 1;
            let is_over = matches!(event, Scheduled::Finish);
            self.happens(event);
            if let Some(breach) = self.laws.breach.take() {
                return Err(breach);
            }
            if is_over {
                break;
            }
        }
        self.counts.simulated = self.now;
        Ok(self.counts)
    }

    pub(super) fn schedule(&mut self, at: u64, event: Scheduled) {
        self.scheduled += 1;
        let at = at.max(self.now);
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.queue.push(Reverse((at, self.scheduled, place)));
    }

    fn happens(&mut self, event: Scheduled) {
        match event {
            Scheduled::Host { host, life, input } => self.host_input(host, life, input),
            Scheduled::Engine { host, life, command, sent_at, deadline } => {
                self.engine_hears(host, life, command, sent_at, deadline);
            }
            Scheduled::Saves { host, life, request, deadline } => {
                self.saves_hear(host, life, request, deadline);
            }
            Scheduled::Message { to, bytes } => self.message(to, bytes),
            Scheduled::Reply(reply) => self.client_hears(reply),
            Scheduled::Client { client, number } => self.client_due(client, number),
            Scheduled::Fault(index) => self.fault(self.faults[usize::from(index)]),
            Scheduled::Start(host) => self.host_starts(host),
            Scheduled::GoOn(host) => self.host_goes_on(host),
            Scheduled::Calm if self.hosts.iter().all(|host| !host.is_up()) => self.host_starts(0),
            Scheduled::Calm => {}
            Scheduled::Probe => self.clients_probe(),
            Scheduled::Finish => self.finish(),
        }
    }

    fn fault(&mut self, fault: Fault) {
        let Fault { span, kind, .. } = fault;
        let until = self.now + span;
        let index = usize::from(fault.host) % self.hosts.len();
        let at = index as u8;
        let host = &mut self.hosts[index];
        match kind {
            FaultKind::Crash { with_lock } => {
                host.crash(with_lock);
                self.schedule(until, Scheduled::Start(at));
            }
            FaultKind::Leave => {
                let (life, input) = (host.life, Input::Leave);
                self.schedule(self.now, Scheduled::Host { host: at, life, input });
            }
            FaultKind::Stop => {
                host.stop(until);
                self.schedule(until, Scheduled::GoOn(at));
            }
            FaultKind::PauseMachine => {
                host.stop(until);
                host.stop_clock(self.now, until);
                self.schedule(until, Scheduled::GoOn(at));
            }
            FaultKind::StopClock => {
                host.stop_clock(self.now, until);
                self.schedule(until, Scheduled::GoOn(at));
            }
            FaultKind::ClockRate(rate) => host.clock.set_rate(self.now, rate),
            FaultKind::Cut { way, both } => host.network.cut(way, both, until),
            FaultKind::Slow { way, by } => host.network.slow(way, by, until),
            FaultKind::StoreAway => self.saves.away_until = self.saves.away_until.max(until),
            FaultKind::EngineAway => self.engine_leaves(until),
            FaultKind::EngineLoses { writes } => {
                let has_lost_a_life = self.records.lose(usize::from(writes));
                self.engine_loses(until, has_lost_a_life);
            }
            FaultKind::EngineWiped => {
                self.records.wipe();
                self.engine_loses(until, true);
            }
        }
    }

    fn engine_loses(&mut self, until: u64, has_lost_a_life: bool) {
        self.engine_leaves(until);
        self.engine_away.lost_at = self.now;
        self.laws.engine_lost(self.engine_away.ends, has_lost_a_life);
    }

    fn engine_leaves(&mut self, until: u64) {
        let away = &mut self.engine_away;
        if away.ends < self.now {
            away.began = self.now;
        }
        away.ends = away.ends.max(until);
        self.laws.engine_stays_away(away.began, away.ends);
        // Some notice that their connections were lost.
        for host in 0..self.hosts.len() as u8 {
            if self.random.one_in(2) {
                let life = self.hosts[usize::from(host)].life;
                let input = Input::Engine(EngineEvent::Interrupted);
                self.schedule(until, Scheduled::Host { host, life, input });
            }
        }
    }

    fn finish(&mut self) {
        for host in 0..self.hosts.len() {
            if let Some(talk) = self.hosts[host].take_talk() {
                self.finish_asks(&talk);
            }
        }
        for key in 0..self.keys.len() {
            self.laws.finish(self.now, key, self.saves.state(key));
            if self.reached[key] < self.probed_at {
                let text = format!("key {key} can't be joined");
                self.laws.break_law(Law::Joinable, self.now, text);
            }
        }
    }

    /// The time at which a message from or to a host arrives, unless it is lost.
    pub(super) fn arrival(&mut self, host: u8, way: Way) -> Option<u64> {
        self.hosts[usize::from(host)].network.arrival(self.now, way, &mut self.random)
    }
}
