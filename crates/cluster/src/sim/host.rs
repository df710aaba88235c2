//! A host: a machine with a clock, and on it, most of the time, a process with a node and rooms.

use std::collections::VecDeque;

use crate::effect::{Effect, NodeId, Place};
use crate::engine::{Command, Engine, EngineEvent, Key};
use crate::event::{Event, Want};
use crate::node::Node;
use crate::record::{Incarnation, Slot};
use crate::settings::Settings;
use crate::sim::asks::Talk;
use crate::sim::client::{Reply, ReplyKind, Request, RequestKind};
use crate::sim::clock::Clock;
use crate::sim::faults::SECOND;
use crate::sim::network::Network;
use crate::sim::room::{Opening, Room};
use crate::sim::saves::{SaveAnswer, SaveRequest};
use crate::sim::world::{Scheduled, World};
use crate::sim::{LEASE, Mutation};

/// Something that arrives at a process.
#[derive(Debug)]
pub(super) enum Input {
    Turn,
    Engine(EngineEvent),
    Saves(SaveAnswer),
    Client(Request),
    Leave,
    /// A client enters the room that was placed by that request.
    Enter(u32),
}

#[derive(Debug)]
pub(super) struct Host {
    /// The number of the process.
    pub(super) life: u32,
    pub(super) clock: Clock,
    pub(super) network: Network,
    process: Option<Box<Process>>,
    /// The number of the machine: its lock is held by one process at a time.
    machine: u32,
    stopped_until: u64,
    still_until: u64,
    /// The time until which the clock, which stood still, makes the node err.
    errs_until: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: Node,
    port: Port,
    /// The incarnation whose messages it gets.
    listens: Option<NodeId>,
    pub(super) talk: Talk,
    /// By key.
    pub(super) rooms: Vec<Option<Room>>,
    pub(super) opened: Vec<Opening>,
    /// Input that has arrived while the process stood still.
    inbox: VecDeque<Input>,
}

/// The engine, as a node sees it.
#[derive(Debug, Default)]
struct Port {
    commands: Vec<Command>,
    events: VecDeque<EngineEvent>,
}

impl Engine for Port {
    fn begin(&mut self, command: Command) {
        self.commands.push(command);
    }

    fn next(&mut self) -> Option<EngineEvent> {
        self.events.pop_front()
    }
}

impl Host {
    pub(super) fn new(rate: u64, shown: u64) -> Self {
        Self {
            life: 0,
            clock: Clock::new(rate, shown),
            network: Network::default(),
            process: None,
            machine: 0,
            stopped_until: 0,
            still_until: 0,
            errs_until: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn identity(&self) -> Option<(Slot, Incarnation)> {
        let node = &self.process.as_ref()?.node;
        Some((node.slot(), node.incarnation()?))
    }

    pub(super) fn listens(&self, id: NodeId) -> bool {
        self.process.as_ref().is_some_and(|process| process.listens == Some(id))
    }

    pub(super) fn talk(&self) -> Option<&Talk> {
        self.process.as_ref().map(|process| &process.talk)
    }

    /// Takes what a process has told at the end.
    pub(super) fn take_talk(&mut self) -> Option<Talk> {
        self.process.as_mut().map(|process| std::mem::take(&mut process.talk))
    }

    /// Returns whether the clock has stood still at that time or later.
    pub(super) fn errs(&self, since: u64) -> bool {
        since < self.errs_until
    }

    pub(super) fn crash(&mut self, with_lock: bool) {
        self.process = None;
        self.stopped_until = 0;
        self.life += 1;
        self.machine += u32::from(!with_lock);
    }

    pub(super) fn stop(&mut self, until: u64) {
        self.stopped_until = self.stopped_until.max(until);
    }

    pub(super) fn stop_clock(&mut self, now: u64, until: u64) {
        self.clock.stop(now);
        self.still_until = self.still_until.max(until);
        // By then it has renewed, or is frozen.
        self.errs_until = self.still_until + LEASE;
    }
}

impl World {
    pub(super) fn host_starts(&mut self, host: u8) {
        let state = &mut self.hosts[usize::from(host)];
        if state.is_up() {
            return;
        }
        let now = state.clock.show(self.now);
        let lease = std::time::Duration::from_micros(LEASE);
        let mut settings = Settings::new(lease).expect("a lease that is allowed");
        settings.name = host.to_string();
        settings.slot = Some(host.into());
        settings.lock = format!("{host}.{}", state.machine);
        match self.mutation {
            Some(Mutation::FreezeLate) => settings.freeze = lease * 2,
            Some(Mutation::CountOutages) => settings.gap = lease * 1000,
            _ => {}
        }
        let keys = self.keys.len();
        state.process = Some(Box::new(Process {
            node: Node::new(settings, self.random.next(), now),
            port: Port::default(),
            listens: None,
            talk: Talk::default(),
            rooms: (0..keys).map(|_| None).collect(),
            opened: vec![Opening::default(); keys],
            inbox: VecDeque::new(),
        }));
        let life = state.life;
        self.schedule(self.now, Scheduled::Host { host, life, input: Input::Turn });
    }

    /// Lets a process, or a clock, go on that stood still.
    pub(super) fn host_goes_on(&mut self, host: u8) {
        let state = &mut self.hosts[usize::from(host)];
        if state.clock.is_still() && self.now >= state.still_until {
            state.clock.go_on(self.now);
        }
        if self.now < state.stopped_until {
            return;
        }
        let Some(process) = &mut state.process else { return };
        let (life, inbox) = (state.life, std::mem::take(&mut process.inbox));
        for input in inbox {
            self.host_input(host, life, input);
        }
    }

    pub(super) fn host_input(&mut self, host: u8, life: u32, input: Input) {
        let state = &mut self.hosts[usize::from(host)];
        if state.life != life {
            return;
        }
        let Some(process) = &mut state.process else { return };
        if self.now < state.stopped_until {
            process.inbox.push_back(input);
            return;
        }
        let Some(mut process) = state.process.take() else { return };
        match input {
            Input::Turn => self.turn(host, &mut process),
            Input::Engine(event) => process.port.events.push_back(event),
            Input::Saves(answer) => self.saves_answered(host, &mut process, answer),
            Input::Client(request) => self.requested(host, &mut process, request),
            Input::Leave => {
                self.leaving.extend(process.node.incarnation());
                process.node.leave(self.local(host));
            }
            Input::Enter(number) => self.entered(&mut process, number),
        }
        self.exchange(host, &mut process);
        if process.node.has_left() {
            self.hosts[usize::from(host)].crash(true);
            self.schedule(self.now + AWAY, Scheduled::Start(host));
        } else {
            self.hosts[usize::from(host)].process = Some(process);
        }
    }

    fn turn(&mut self, host: u8, process: &mut Process) {
        let state = &self.hosts[usize::from(host)];
        let next = process.node.turn(state.clock.show(self.now));
        // One whose clock stands still is woken when it goes on.
        let at = state.clock.when(next).unwrap_or(state.still_until);
        let (life, input) = (state.life, Input::Turn);
        self.schedule(at.max(self.now + 1), Scheduled::Host { host, life, input });
        for key in 0..self.keys.len() as u8 {
            self.room_turn(host, process, key);
        }
        self.talk(host, process);
    }

    /// Carries out commands and effects until none are left.
    fn exchange(&mut self, host: u8, process: &mut Process) {
        let life = self.hosts[usize::from(host)].life;
        loop {
            process.node.exchange(self.local(host), &mut process.port);
            let mut commands = std::mem::take(&mut process.port.commands);
            for command in commands.drain(..) {
                self.open_early(process, &command);
                if let Command::Listen { slot, incarnation } = command {
                    process.listens = Some(NodeId { slot, incarnation });
                }
                self.engine_sends(host, life, command);
            }
            process.port.commands = commands;
            let Some(effect) = process.node.next_effect() else { return };
            self.carry_out(host, life, process, effect);
        }
    }

    fn carry_out(&mut self, host: u8, life: u32, process: &mut Process, effect: Effect) {
        match effect {
            Effect::Open { key, attempt } => {
                let key = index(&key);
                let opening = &mut process.opened[usize::from(key)];
                opening.attempt = attempt;
                match opening.early.take() {
                    Some(save) => self.opened(host, process, key, attempt, Some(save)),
                    None => self.saves_send(host, life, SaveRequest::Open { key, attempt }),
                }
            }
            Effect::Serve { key } => {
                let key = usize::from(index(&key));
                let reign = self.laws.reign(self.now);
                process.rooms[key] = Some(Room::new(process.opened[key].save, reign, self.now));
                // Its save says so.
                if is_code(key) {
                    let key = self.keys[key].clone();
                    self.node_event(host, process, Event::IsCode { key });
                }
            }
            Effect::Freeze { key } => {
                if let Some(room) = &mut process.rooms[usize::from(index(&key))] {
                    room.is_frozen = true;
                }
            }
            Effect::Thaw { key } => {
                let key = usize::from(index(&key));
                let reign = self.laws.reign(self.now);
                if let Some(room) = &mut process.rooms[key] {
                    room.thaw(process.opened[key].save, reign);
                    self.counts.thawed += 1;
                }
            }
            Effect::End { key } => {
                process.rooms[usize::from(index(&key))] = None;
                self.counts.ended += 1;
            }
            Effect::Found { request, place, .. } => {
                let (client, number) = ((request >> 32) as u8, request as u32);
                let key = self.clients[usize::from(client)].key;
                let request = Request { client, number, key, kind: RequestKind::Join };
                match place {
                    Place::Here { .. } => self.room_request(host, process, request),
                    Place::At(peer) => {
                        let at = peer.name.parse().expect("the number of a host");
                        self.reply(host, request, ReplyKind::At(at));
                    }
                    Place::Free | Place::Busy => self.reply(host, request, ReplyKind::Busy),
                }
            }
            Effect::HandedOver { .. } => unreachable!("the simulation moves no rooms"),
            Effect::Noted(_) => self.counts.noted += 1,
            Effect::Ready { .. } => {}
            Effect::Asked { from, number, body, .. } => {
                self.asked(host, process, from, number, body);
            }
            Effect::Answered { ask, result } => self.answered(host, process, ask, result),
            Effect::Told { from, body } => self.told(process, from, &body),
            Effect::LinkReset { with } => self.link_reset(process, with),
        }
    }

    fn requested(&mut self, host: u8, process: &mut Process, request: Request) {
        let key = usize::from(request.key);
        if process.rooms[key].is_some() {
            self.room_request(host, process, request);
            return;
        }
        match request.kind {
            RequestKind::Append { .. } => self.reply(host, request, ReplyKind::Gone),
            RequestKind::Join => {
                let id = u64::from(request.client) << 32 | u64::from(request.number);
                let want = match self.random.one_in(8) {
                    true => Want::Find,
                    false => Want::Claim { is_code: false },
                };
                let event = Event::Wanted { key: self.keys[key].clone(), request: id, want };
                process.node.event(self.local(host), event);
            }
        }
    }

    pub(super) fn acts(&self, host: u8, process: &Process) -> bool {
        process.node.acts(self.local(host))
    }

    /// Returns whether the clock of a host is within the bounds that the lease allows for.
    pub(super) fn is_sound(&self, host: u8) -> bool {
        let state = &self.hosts[usize::from(host)];
        let fastest = self.hosts.iter().map(|host| host.clock.usual()).max().unwrap_or_default();
        // Frozen after 3/4 of the lease by this clock: before the whole lease by the fastest one.
        !state.errs(self.now) && fastest * 3 < state.clock.usual() * 4
    }

    pub(super) fn node_event(&mut self, host: u8, process: &mut Process, event: Event) {
        process.node.event(self.local(host), event);
    }

    pub(super) fn reply(&mut self, host: u8, request: Request, kind: ReplyKind) {
        let Request { client, number, .. } = request;
        self.client_gets(host, Reply { client, number, kind });
    }

    pub(super) fn local(&self, host: u8) -> std::time::Duration {
        self.hosts[usize::from(host)].clock.show(self.now)
    }
}

/// Returns whether the key of that number is a code, which only its save says.
fn is_code(key: usize) -> bool {
    key == 1
}

/// The number of a key.
pub(super) fn index(key: &Key) -> u8 {
    key.as_bytes()[key.len() - 1] - b'0'
}

/// A process that has left starts again after this time.
const AWAY: u64 = 3 * SECOND;

/// A room without anyone ends after this time.
pub(super) const EMPTY: u64 = 4 * SECOND;
