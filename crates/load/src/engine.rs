//! The event loop of one process: opens connections, serves them, and ends the load.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use playfield_client::poll::{self, Buffers, Dialer, Readiness, Registration};
use playfield_client::session::{Reach, Url};

use crate::actor::Actor;
use crate::alarm::Alarm;
use crate::connection::{Connection, Stage};
use crate::counts::Counts;
use crate::deliveries::{Deliveries, Endings, monotonic_ns};
use crate::dial::Dial;
use crate::profiler::Profiler;
use crate::program::Programs;
use crate::progress::Progress;
use crate::settings::{LoadError, Settings};
use crate::timers::{NEVER, Timers};
use crate::timings::{AllTimings, Timings};

/// The most connections that may wait for their welcome. More would fill the node's backlog.
const OPENING_MAX: usize = 512;

/// The number of connections opened between reads.
const OPENED_AT_ONCE: usize = 64;

/// The time between two reports of the progress.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Shorter waits need the alarm: the poll rounds them up to milliseconds.
const EXACT_NS: u64 = 50_000_000;

/// The most different problems that are counted. Others count as `other`.
const PROBLEMS_MAX: usize = 32;

/// The token of events that only wake the loop.
const WAKER: Token = Token(usize::MAX - 1);

/// The greatest length of a problem's text.
const PROBLEM_CHARS_MAX: usize = 300;

/// The observer of a load's progress, which may end the load.
pub(crate) trait Control {
    /// Called ten times a second. Returns whether the load goes on.
    fn tick(&mut self, progress: &dyn Fn() -> Progress, interval: &mut Timings) -> bool;

    /// All connections are ready. Returns whether the load may begin.
    fn may_go(&mut self) -> bool;
}

/// State that all connections share.
pub(crate) struct Shared {
    /// Times are in nanoseconds since then.
    began: Instant,
    pub(crate) programs: Rc<Programs>,
    pub(crate) counts: Counts,
    pub(crate) timings: AllTimings,
    /// Replies since the last report of the progress.
    interval: Timings,
    pub(crate) problems: BTreeMap<String, u64>,
    /// The number of connections that are ready for the load, or have failed.
    pub(crate) settled: usize,
    /// All are ready.
    pub(crate) is_going: bool,
    /// From when the updates' lateness and intervals count.
    pub(crate) warm_at: u64,
    /// Nothing more is sent.
    pub(crate) is_over: bool,
    /// Connections with smaller numbers keep copies.
    pub(crate) copies: usize,
    pub(crate) profiler: Option<Profiler>,
    pub(crate) ping_ns: Option<u64>,
    /// The kinds of addresses that connections reach.
    pub(crate) reach: Reach,
    pub(crate) timeout_ns: u64,
    /// Deliveries to the subscriptions.
    pub(crate) deliveries: Deliveries,
    /// Why the script does not fit the node. It ends the load.
    pub(crate) misfit: Option<String>,
    /// A buffer for one payload.
    pub(crate) payload: Vec<u8>,
}

impl Shared {
    pub(crate) fn nanoseconds(&self, at: Instant) -> u64 {
        nanoseconds(at.saturating_duration_since(self.began))
    }

    /// Something went wrong. Problems with the same text are counted together.
    pub(crate) fn problem(&mut self, mut text: String) {
        if let Some((end, _)) = text.char_indices().nth(PROBLEM_CHARS_MAX) {
            text.truncate(end);
        }
        if self.problems.len() >= PROBLEMS_MAX && !self.problems.contains_key(&text) {
            text = "other".into();
        }
        *self.problems.entry(text).or_default() += 1;
    }

    /// A step could not be done.
    pub(crate) fn undone(&mut self, text: String) {
        self.counts.undone += 1;
        self.problem(text);
    }

    pub(crate) fn replied(&mut self, timing: u32, ns: u64) {
        self.timings.replied(timing as usize, ns);
        self.interval.record(ns);
    }
}

/// The measurements of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) timings: AllTimings,
    pub(crate) problems: BTreeMap<String, u64>,
    /// The processes that ended before they could say what they have measured, and why.
    pub(crate) ended_early: Vec<String>,
    /// Deliveries that were missing at the end.
    pub(crate) endings: Endings,
    /// From the first connection until all were ready.
    pub(crate) connect_s: f64,
    /// From then until nothing more was sent.
    pub(crate) load_s: f64,
}

enum Phase {
    Opening,
    Going { from: u64, until: u64 },
    Draining { until: u64 },
    Leaving,
}

pub(crate) struct Engine<'a> {
    settings: &'a Settings,
    dial: &'a Dial,
    poll: Poll,
    alarm: Alarm,
    registration: Registration,
    buffers: Buffers,
    timers: Timers,
    /// By their place in this process.
    connections: Vec<Option<Box<Connection>>>,
    /// The number of the first.
    first: usize,
    /// The number of connections that were opened.
    opened: usize,
    /// The number of connections that wait for their welcome.
    opening: usize,
    shared: Shared,
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        dial: &'a Dial,
        programs: Rc<Programs>,
    ) -> Result<Self, LoadError> {
        let numbers = settings.numbers();
        let messages = programs.messages.clone();
        let run = settings.worker.map_or_else(monotonic_ns, |worker| worker.run);
        let began = Instant::now();
        let deliveries = Deliveries::new(run);
        let shared = Shared {
            began,
            deliveries,
            programs,
            counts: Counts::default(),
            timings: AllTimings::new(messages),
            interval: Timings::default(),
            problems: BTreeMap::new(),
            settled: 0,
            is_going: false,
            warm_at: NEVER,
            is_over: false,
            copies: settings.copies,
            profiler: settings.profiler.clone(),
            ping_ns: settings.ping.map(|ping| nanoseconds(ping / settings.speed.max(1))),
            reach: dial.dialer.reach(),
            timeout_ns: nanoseconds(settings.timeout),
            misfit: None,
            payload: Vec::new(),
        };
        let poll = Poll::new()?;
        let alarm = Alarm::new(poll.registry())?;
        let registration = Registration::new(poll.registry(), WAKER, WAKER)?;
        Ok(Self {
            settings,
            dial,
            poll,
            alarm,
            registration,
            buffers: Buffers::default(),
            timers: Timers::default(),
            connections: numbers.clone().map(|_| None).collect(),
            first: numbers.start,
            opened: 0,
            opening: 0,
            shared,
            outcome: Outcome::default(),
        })
    }

    /// Runs the load to its end.
    pub(crate) fn run(mut self, control: &mut dyn Control) -> Result<Outcome, LoadError> {
        let mut phase = Phase::Opening;
        let mut events = Events::with_capacity(4096);
        let mut tick_at = 0;
        loop {
            let now = self.now();
            if matches!(phase, Phase::Opening) {
                self.open_some(now);
            }
            let until = self.wait_until(&phase, tick_at);
            let spins = self.settings.spin && matches!(phase, Phase::Going { .. });
            let timeout = if spins { 0 } else { until.saturating_sub(self.now()) };
            if (1..EXACT_NS).contains(&timeout) {
                self.alarm.set(until, self.now())?;
            }
            match self.poll.poll(&mut events, Some(Duration::from_nanos(timeout))) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
            for event in events.iter().filter(|event| event.token() < WAKER) {
                let now = Instant::now();
                let readiness = Readiness::of(event, now);
                self.serve(event.token().0, self.shared.nanoseconds(now), readiness);
            }
            let now = self.now();
            while let Some((at, place)) = self.timers.pop(now) {
                let place = place as usize;
                let connection = self.connections[place].as_mut();
                if let Some(connection) = connection.filter(|connection| connection.timer_at == at)
                {
                    connection.timer_at = NEVER;
                    self.go_on(place, now);
                }
            }
            if let Some(why) = self.shared.misfit.take() {
                return Err(LoadError::Usage(why));
            }
            let mut goes_on = true;
            let is_tick = now >= tick_at;
            if is_tick {
                tick_at = now + nanoseconds(TICK);
                goes_on = self.tick(control, now);
            }
            if let Some(next) = self.next_phase(&phase, control, now, goes_on, is_tick) {
                phase = next;
            }
            if matches!(phase, Phase::Leaving) && self.shared.counts.open == 0 && self.opening == 0
            {
                self.outcome.counts = self.shared.counts;
                self.outcome.timings = self.shared.timings;
                self.outcome.problems = self.shared.problems;
                self.outcome.endings = self.shared.deliveries.endings();
                return Ok(self.outcome);
            }
        }
    }

    fn now(&self) -> u64 {
        self.shared.nanoseconds(Instant::now())
    }

    fn wait_until(&self, phase: &Phase, tick_at: u64) -> u64 {
        let mut until = tick_at.min(self.timers.next().unwrap_or(NEVER));
        match phase {
            Phase::Opening if self.opened < self.connections.len() => {
                if self.opening < OPENING_MAX {
                    until = until.min(self.open_at(self.opened));
                }
            }
            Phase::Going { until: end, .. } | Phase::Draining { until: end } => {
                until = until.min(*end);
            }
            Phase::Opening | Phase::Leaving => {}
        }
        until
    }

    fn tick(&mut self, control: &mut dyn Control, now: u64) -> bool {
        let progress = |interval: &Timings| Progress {
            elapsed: Duration::from_nanos(now),
            connections: self.connections.len(),
            counts: self.shared.counts,
            reply_ms_p50: interval.percentile_ms(50.0),
            reply_ms_p99: interval.percentile_ms(99.0),
        };
        let shown = progress(&self.shared.interval);
        control.tick(&|| shown.clone(), &mut self.shared.interval)
    }

    /// The phase that follows, if this one is over.
    fn next_phase(
        &mut self,
        phase: &Phase,
        control: &mut dyn Control,
        now: u64,
        goes_on: bool,
        is_tick: bool,
    ) -> Option<Phase> {
        let all = self.connections.len();
        match *phase {
            Phase::Opening if !goes_on => {
                self.outcome.connect_s = seconds(now);
                Some(self.drain(now))
            }
            Phase::Opening if self.opened == all && self.shared.settled == all => {
                let is_anyone_there = self.shared.counts.open > 0;
                if !control.may_go() {
                    return None;
                }
                self.outcome.connect_s = seconds(now);
                if !is_anyone_there {
                    return Some(self.drain(now));
                }
                self.shared.is_going = true;
                self.shared.warm_at = now + nanoseconds(self.settings.warm_up);
                for place in 0..all {
                    if let Some(connection) = &mut self.connections[place] {
                        connection.actor.go(&self.shared, now);
                        self.go_on(place, now);
                    }
                }
                let duration = self.settings.duration.map_or(NEVER, nanoseconds);
                Some(Phase::Going { from: now, until: now.saturating_add(duration) })
            }
            Phase::Going { from, until }
                if !goes_on || now >= until || self.shared.counts.open == 0 =>
            {
                self.outcome.load_s = seconds(now - from);
                Some(self.drain(now))
            }
            Phase::Draining { until } if is_tick => {
                if now < until && self.still_comes(now) {
                    return None;
                }
                for place in 0..all {
                    let Some(connection) = &mut self.connections[place] else { continue };
                    connection.actor.give_up(&mut self.shared, now);
                    connection.actor.end_subscriptions(&mut self.shared);
                    match connection.stage {
                        Stage::Open => {
                            connection.leave(now, &self.shared);
                            self.go_on(place, now);
                        }
                        Stage::Leaving => {}
                        // The load ended before it was welcomed.
                        Stage::Opening => self.end(place, None),
                    }
                }
                Some(Phase::Leaving)
            }
            _ => None,
        }
    }

    /// Returns whether answers or deliveries still come.
    fn still_comes(&self, now: u64) -> bool {
        let deliveries = &self.shared.deliveries;
        let mut open = self.connections.iter().flatten();
        open.any(|connection| connection.actor.is_waiting(deliveries, now))
    }

    /// Nothing more is sent; what was sent may still be answered.
    fn drain(&mut self, now: u64) -> Phase {
        self.shared.is_over = true;
        self.shared.deliveries.stop(now);
        for connection in self.connections.iter_mut().flatten() {
            connection.actor.stop(&mut self.shared, now);
        }
        Phase::Draining { until: now.saturating_add(self.shared.timeout_ns) }
    }

    /// When to open the connection at this place.
    fn open_at(&self, place: usize) -> u64 {
        let ramp = u128::from(nanoseconds(self.settings.ramp));
        (ramp * place as u128 / self.connections.len().max(1) as u128) as u64
    }

    fn open_some(&mut self, now: u64) {
        for _ in 0..OPENED_AT_ONCE {
            let is_due = self.opened < self.connections.len()
                && self.opening < OPENING_MAX
                && self.open_at(self.opened) <= now;
            if !is_due {
                return;
            }
            let place = self.opened;
            self.opened += 1;
            self.shared.counts.begun += 1;
            self.open(place);
        }
    }

    fn open(&mut self, place: usize) {
        let (number, now) = (self.first + place, self.now());
        // A connection that waits for its turn past its place in the ramp is late already.
        let due = if self.settings.ramp.is_zero() { now } else { self.open_at(place).min(now) };
        let programs = &self.shared.programs;
        let actor = Actor::new(number, programs, self.settings.seed, due);
        let client = self.connect(place, Arc::clone(&self.dial.dialer));
        let deadline = now.saturating_add(self.shared.timeout_ns);
        let stage = Stage::Opening;
        let connection = Connection { client, actor, stage, timer_at: NEVER, deadline };
        self.connections[place] = Some(Box::new(connection));
        self.opening += 1;
        self.go_on(place, now);
    }

    fn connect(&self, place: usize, dialer: Arc<Dialer>) -> poll::Connection {
        let number = self.first + place;
        let token = self.shared.programs.token_of(number);
        let settings = self.dial.settings(self.settings, number, token);
        poll::Connection::open(dialer, settings, self.registration.with_token(Token(place)))
    }

    /// Connects to another node, in place of the present one. `None`: to the first.
    fn move_to(&mut self, place: usize, to: Option<Url>, now: u64) {
        let dialer = match &to {
            None => Ok(Arc::clone(&self.dial.dialer)),
            Some(url) => self.dial.another(url),
        };
        let client = dialer.map(|dialer| self.connect(place, dialer));
        let Some(connection) = &mut self.connections[place] else { return };
        match client {
            Ok(client) => {
                connection.client.close(&mut self.buffers);
                connection.client = client;
            }
            Err(why) => {
                connection.actor.is_unreachable(&why, &mut self.shared, now);
            }
        }
        self.go_on(place, now);
    }

    fn go_on(&mut self, place: usize, now: u64) {
        let readiness = Readiness::at(self.shared.began + Duration::from_nanos(now));
        self.serve(place, now, readiness);
    }

    fn serve(&mut self, place: usize, now: u64, readiness: Readiness) {
        let Some(connection) = &mut self.connections[place] else { return };
        let was_opening = connection.stage == Stage::Opening;
        let over = connection.serve(&mut self.buffers, &mut self.shared, now, readiness);
        self.opening -= usize::from(was_opening && connection.stage != Stage::Opening);
        let counts = &mut self.shared.counts;
        (counts.bytes_in, counts.bytes_out) = (self.buffers.received, self.buffers.sent);
        let moves_to = connection.actor.moves_to();
        match (over, moves_to) {
            (Some(why), _) => self.end(place, Some(why)),
            (None, Some(to)) => self.move_to(place, to, now),
            (None, None) => self.schedule(place, now),
        }
    }

    /// Adds an entry to the heap of timers if the connection is due before its present one.
    fn schedule(&mut self, place: usize, now: u64) {
        let Some(connection) = &mut self.connections[place] else { return };
        // At the earliest in the next turn, so that no connection keeps the others waiting.
        let at = connection.due_at(&self.shared).max(now + 1);
        if at < connection.timer_at {
            connection.timer_at = at;
            self.timers.add(at, place as u32);
        }
    }

    /// The connection is over. Without a reason, the load did not need it.
    fn end(&mut self, place: usize, why: Option<String>) {
        let Some(mut connection) = self.connections[place].take() else { return };
        connection.actor.close(&mut self.shared);
        match connection.stage {
            Stage::Opening => {
                self.opening -= 1;
                if let Some(why) = why {
                    self.shared.counts.failed += 1;
                    self.shared.problem(why);
                }
            }
            Stage::Open => {
                self.shared.counts.open -= 1;
                self.shared.counts.lost += 1;
                self.shared.problem(format!("lost: {}", why.unwrap_or_default()));
            }
            Stage::Leaving => self.shared.counts.open -= 1,
        }
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
