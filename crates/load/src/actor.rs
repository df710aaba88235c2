//! What one connection does: it runs a program, and hears what the node answers.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_client::core::{
    Client, ClientError, CommandError, Creation, Failure, Handler, Joined, OutOfStep, RoomEvent,
    Update, UpdateKind, Welcome,
};
use playfield_client::{ErrorCode, RequestNumber, RoomNumber};
use playfield_wire::DecodeError;

use crate::copies::Seat;
use crate::engine::Shared;
use crate::program::{Op, Programs};
use crate::random::Random;
use crate::settings::{Enter, MessageKind};
use crate::timers::NEVER;

/// The most requests of one connection that may wait for answers. Later ones are due, and wait.
pub(crate) const IN_FLIGHT_MAX: usize = 1024;

/// How many steps a connection runs before others get their turn.
const STEPS_AT_ONCE: usize = 64;

/// No place in a program.
const NOWHERE: u32 = u32::MAX;

/// The state of one connection's program. Times are in nanoseconds since the load began.
pub(crate) struct Actor {
    number: u32,
    program: u32,
    /// The step to run.
    at: u32,
    /// Where to go on after a room was joined again.
    back: u32,
    state: State,
    random: Random,
    /// When the step is due.
    due: u64,
    /// When to run it; `NEVER` if it waits for something else.
    pub(crate) wake_at: u64,
    /// When to send the next timed ping.
    pub(crate) ping_at: u64,
    loops: Vec<Loop>,
    asked: VecDeque<Asked>,
    rooms: Vec<Seat>,
    /// When the program began to wait for an answer.
    waits_since: u64,
    is_settled: bool,
    pub(crate) is_welcomed: bool,
    /// What the node said before it ended the connection.
    pub(crate) goodbye: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// For an answer.
    Waiting,
    /// For all connections.
    Gathering,
    /// Until the load ends.
    Holding,
    Ended,
}

#[derive(Debug)]
struct Loop {
    left: u64,
    /// When the present repetition was due.
    due: u64,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Asked {
    number: u64,
    what: What,
    /// Whether the program waits for it.
    is_awaited: bool,
    due: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Join { room: u32 },
    Leave,
    Message { timing: u32 },
    Ping,
}

/// Why the program does not go on.
enum Stop {
    /// The step waits, or the connection takes nothing more now.
    Here,
    /// Others get their turn.
    Yield,
}

impl Actor {
    pub(crate) fn new(number: usize, programs: &Programs, seed: u64, now: u64) -> Self {
        Self {
            number: number as u32,
            program: programs.program_of(number),
            at: 0,
            back: NOWHERE,
            state: State::Running,
            random: Random::new(seed, number as u64),
            due: now,
            wake_at: NEVER,
            ping_at: NEVER,
            loops: Vec::new(),
            asked: VecDeque::new(),
            rooms: Vec::new(),
            waits_since: 0,
            is_settled: false,
            is_welcomed: false,
            goodbye: None,
        }
    }

    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Whether the program has ended and nothing is waited for.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Ended && self.asked.is_empty()
    }

    /// Whether answers are waited for.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The connection has done all that comes before the load, or has failed.
    pub(crate) fn settle(&mut self, shared: &mut Shared) {
        if !std::mem::replace(&mut self.is_settled, true) {
            shared.settled += 1;
        }
    }

    /// The load begins.
    pub(crate) fn go(&mut self, shared: &Shared, now: u64) {
        if self.state == State::Gathering {
            self.advance();
            self.due = now;
        }
        if let Some(period) = shared.ping_ns {
            self.ping_at = now + self.random.below(period);
        }
    }

    /// The load is over: counts what was due and was not sent, with the time that it has waited.
    pub(crate) fn stop(&mut self, shared: &mut Shared, now: u64) {
        self.wake_at = NEVER;
        self.ping_at = NEVER;
        let every_ns = self.every_ns(&shared.programs);
        let mut due = match (self.state, self.loops.last(), every_ns) {
            (State::Running, ..) => self.due,
            // The next repetition is due, though this one still waits for an answer.
            (State::Waiting, Some(round), Some(every)) => round.due.saturating_add(every),
            _ => return,
        };
        let ops = &shared.programs.programs[self.program as usize].ops;
        let message = ops.iter().skip(self.at as usize).find_map(|op| match op {
            Op::Message { choices, kind, .. } => Some((choices[0].timing, *kind)),
            _ => None,
        });
        let Some((timing, kind)) = message else { return };
        while due < now {
            shared.counts.unsent += 1;
            if kind != MessageKind::Send {
                shared.replied(timing, now - due);
            }
            // Without a rate the step is due only once.
            due = due.saturating_add(every_ns.unwrap_or(u64::MAX));
        }
    }

    /// The connection is gone: what it has asked stays unanswered.
    pub(crate) fn close(&mut self, shared: &mut Shared) {
        self.settle(shared);
        shared.counts.in_rooms -= self.rooms.len() as u64;
        let lost = self.asked.drain(..).filter(|asked| matches!(asked.what, What::Message { .. }));
        shared.counts.abandoned += lost.count() as u64;
        self.rooms.clear();
    }

    /// What was asked was not answered in time.
    pub(crate) fn give_up(&mut self, shared: &mut Shared, now: u64) {
        for asked in std::mem::take(&mut self.asked) {
            Self::unanswered(&asked, shared, now);
        }
    }

    fn unanswered(asked: &Asked, shared: &mut Shared, now: u64) {
        match asked.what {
            What::Ping => return,
            What::Message { timing } => shared.replied(timing, now - asked.due),
            What::Join { .. } | What::Leave => {}
        }
        shared.counts.unanswered += 1;
    }

    /// When the answer that the program waits for must have come.
    pub(crate) fn deadline(&self, timeout_ns: u64) -> u64 {
        match self.state {
            State::Waiting => self.waits_since.saturating_add(timeout_ns),
            _ => NEVER,
        }
    }

    /// The answer that the program waits for has not come in time: it goes on without.
    pub(crate) fn expire(&mut self, shared: &mut Shared, now: u64) {
        let Some(index) = self.asked.iter().position(|asked| asked.is_awaited) else { return };
        let Some(asked) = self.asked.remove(index) else { return };
        Self::unanswered(&asked, shared, now);
        match asked.what {
            What::Join { .. } => {
                shared.problem("a join was not answered in time".into());
                self.end(shared);
            }
            What::Leave => self.end(shared),
            What::Message { .. } | What::Ping => self.go_on(now),
        }
    }

    /// The program can't go on.
    fn end(&mut self, shared: &mut Shared) {
        self.state = State::Ended;
        self.settle(shared);
    }

    fn every_ns(&self, programs: &Programs) -> Option<u64> {
        let ops = &programs.programs[self.program as usize].ops;
        let before = ops[..self.at as usize].iter().rev().find_map(|op| match op {
            Op::Repeat { every_ns, .. } => Some(*every_ns),
            _ => None,
        });
        before.filter(|every| *every > 0)
    }

    fn advance(&mut self) {
        self.state = State::Running;
        self.at = match std::mem::replace(&mut self.back, NOWHERE) {
            NOWHERE => self.at + 1,
            back => back,
        };
    }

    /// Runs the program as far as it goes now. Returns whether it would go on.
    pub(crate) fn run(&mut self, client: &mut Client, shared: &mut Shared, now: u64) -> bool {
        self.wake_at = NEVER;
        for _ in 0..STEPS_AT_ONCE {
            if self.state != State::Running || shared.is_over {
                return false;
            }
            if self.due > now {
                self.wake_at = self.due;
                return false;
            }
            match self.step(client, shared, now) {
                Ok(()) => {}
                Err(Stop::Here) => return false,
                Err(Stop::Yield) => break,
            }
        }
        self.state == State::Running
    }

    /// Sends a timed ping if one is due.
    pub(crate) fn ping_if_due(&mut self, client: &mut Client, shared: &mut Shared, now: u64) {
        let (true, Some(period)) = (self.ping_at <= now, shared.ping_ns) else { return };
        let due = self.ping_at;
        self.ping_at = due + period.max(1);
        self.ping(client, shared, due);
    }

    fn ping(&mut self, client: &mut Client, shared: &mut Shared, due: u64) {
        if let Ok(nonce) = client.ping() {
            shared.counts.pings += 1;
            self.ask(nonce, What::Ping, false, due);
        }
    }

    fn ask(&mut self, number: u64, what: What, is_awaited: bool, due: u64) {
        self.asked.push_back(Asked { number, what, is_awaited, due });
        if is_awaited {
            self.state = State::Waiting;
        }
    }

    fn step(&mut self, client: &mut Client, shared: &mut Shared, now: u64) -> Result<(), Stop> {
        let programs = std::rc::Rc::clone(&shared.programs);
        let ops = &programs.programs[self.program as usize].ops;
        let Some(op) = ops.get(self.at as usize) else {
            self.state = State::Ended;
            self.settle(shared);
            shared.counts.finished += 1;
            return Err(Stop::Here);
        };
        self.waits_since = now;
        match op {
            Op::Join { room, enter, options } => {
                let name = &programs.rooms[*room as usize].name;
                let asked = self.enter(client, name, enter, options);
                let request = self.taken(asked, shared)?;
                self.ask(request.0.into(), What::Join { room: *room }, true, self.due);
            }
            Op::Leave { room } => {
                let Some(seat) = self.rooms.iter().find(|seat| seat.of == *room) else {
                    self.advance();
                    return Ok(());
                };
                let asked = client.leave(seat.room);
                let request = self.taken(asked, shared)?;
                self.ask(request.0.into(), What::Leave, true, self.due);
            }
            Op::Wait { least_ns, most_ns } => {
                self.due += least_ns + self.random.below(most_ns.saturating_sub(*least_ns));
                self.advance();
            }
            Op::WaitForAll if shared.is_going => {
                self.due = now;
                self.advance();
            }
            Op::WaitForAll => {
                self.state = State::Gathering;
                self.settle(shared);
            }
            Op::Hold => {
                self.state = State::Holding;
                self.settle(shared);
            }
            Op::Ping => {
                let due = self.due;
                self.ping(client, shared, due);
                self.advance();
            }
            Op::Repeat { times: 0, end, .. } => self.at = end + 1,
            Op::Repeat { times, every_ns, .. } => {
                // Connections that begin together are spread over the first interval.
                self.due += self.random.below(*every_ns);
                self.loops.push(Loop { left: *times, due: self.due });
                self.advance();
            }
            Op::End { begin } => self.repeat(ops, *begin),
            Op::Message { room, join, choices, kind } => {
                let Some(seat) = self.rooms.iter().find(|seat| seat.of == *room) else {
                    // The room has ended: enter another.
                    (self.back, self.at) = (self.at, *join);
                    return Ok(());
                };
                if self.asked.len() >= IN_FLIGHT_MAX || client.is_full() {
                    return Err(Stop::Here);
                }
                let (number, player) = (seat.room, seat.player);
                let message = &choices[self.random.index(choices.len())];
                let mut payload = std::mem::take(&mut shared.payload);
                payload.clear();
                let random = &mut self.random;
                if let Err(why) = programs.payload(*room, message, random, player, &mut payload) {
                    shared.problem(format!("a value could not be generated: {why}"));
                }
                let sent = match kind {
                    MessageKind::Send => {
                        client.send(number, message.index, &message.name, &payload).map(|()| None)
                    }
                    MessageKind::Request | MessageKind::RequestAhead => {
                        client.request(number, message.index, &message.name, &payload).map(Some)
                    }
                };
                shared.payload = payload;
                let request = self.taken(sent, shared)?;
                shared.counts.sent += 1;
                self.advance();
                if let Some(request) = request {
                    shared.counts.requests += 1;
                    let what = What::Message { timing: message.timing };
                    self.ask(request.0.into(), what, *kind == MessageKind::Request, self.due);
                }
                if client.output_bytes() > 64 << 10 {
                    return Err(Stop::Yield);
                }
            }
        }
        Ok(())
    }

    fn enter(
        &self,
        client: &mut Client,
        room_type: &str,
        enter: &Enter,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        match enter {
            Enter::Any => client.join_or_create(room_type, options),
            Enter::Create => client.create(room_type, &Creation::default(), options),
            Enter::Id(id) => client.join(id),
            Enter::Key(key) => client.join_or_create_by_key(room_type, key, options),
            Enter::Shared { key, connections } => {
                let key = format!("{key}{}", self.number as usize / connections.max(&1));
                client.join_or_create_by_key(room_type, &key, options)
            }
        }
    }

    /// The result of a command. One that the client takes later stops the program for now.
    fn taken<T>(
        &mut self,
        result: Result<T, CommandError>,
        shared: &mut Shared,
    ) -> Result<T, Stop> {
        result.map_err(|error| {
            if !matches!(error, CommandError::Busy { .. } | CommandError::Unconfirmed { .. }) {
                shared.problem(format!("a message could not be sent: {error}"));
                self.end(shared);
            }
            Stop::Here
        })
    }

    /// The end of a repetition.
    fn repeat(&mut self, ops: &[Op], begin: u32) {
        let every_ns = match &ops[begin as usize] {
            Op::Repeat { every_ns, .. } => *every_ns,
            _ => 0,
        };
        let Some(round) = self.loops.last_mut() else { return };
        if round.left != u64::MAX {
            round.left -= 1;
        }
        if round.left == 0 {
            self.loops.pop();
            self.at += 1;
            return;
        }
        if every_ns > 0 {
            // However late this one was, the next is due at its own time.
            round.due += every_ns;
            self.due = round.due;
        }
        self.at = begin + 1;
    }

    fn answered(&mut self, number: u64, is_ping: bool) -> Option<Asked> {
        let index = self
            .asked
            .iter()
            .position(|asked| asked.number == number && (asked.what == What::Ping) == is_ping)?;
        self.asked.remove(index)
    }

    /// The answer that the program waits for has come.
    fn go_on(&mut self, now: u64) {
        self.due = now;
        self.state = State::Running;
    }

    fn seat(&mut self, room: RoomNumber) -> Option<&mut Seat> {
        self.rooms.iter_mut().find(|seat| seat.room == room)
    }
}

/// Hears what the node answers to one connection.
pub(crate) struct Ear<'a> {
    pub(crate) actor: &'a mut Actor,
    pub(crate) shared: &'a mut Shared,
    pub(crate) now: u64,
}

impl Handler for Ear<'_> {
    fn welcome(&mut self, _: &Welcome<'_>) {
        self.actor.is_welcomed = true;
        self.shared.counts.connected += 1;
        self.shared.counts.open += 1;
        self.shared.timings.connect.record(self.now - self.actor.due);
        self.actor.due = self.now;
        let program = &self.shared.programs.programs[self.actor.program as usize];
        if !program.waits_for_all {
            self.actor.settle(self.shared);
        }
        if self.shared.is_going {
            let shared = &*self.shared;
            self.actor.go(shared, self.now);
        }
    }

    fn joined(&mut self, request: RequestNumber, joined: &Joined<'_>) {
        let Some(asked) = self.actor.answered(request.0.into(), false) else { return };
        let What::Join { room } = asked.what else { return };
        self.shared.timings.join.record(self.now - asked.due);
        self.shared.counts.joined += 1;
        self.shared.counts.in_rooms += 1;
        let mut seat = Seat::new(room, joined);
        if (self.actor.number as usize) < self.shared.copies {
            let schema = &self.shared.programs.rooms[room as usize].schema;
            seat.keep_copy(schema, self.shared.programs.format);
        }
        self.actor.rooms.push(seat);
        self.actor.go_on(self.now);
        self.actor.advance();
    }

    fn left(
        &mut self,
        room: RoomNumber,
        request: Option<RequestNumber>,
        code: ErrorCode,
        text: &str,
    ) {
        let count = self.actor.rooms.len();
        self.actor.rooms.retain(|seat| seat.room != room);
        self.shared.counts.in_rooms -= (count - self.actor.rooms.len()) as u64;
        let asked = request.and_then(|request| self.actor.answered(request.0.into(), false));
        if asked.is_some() {
            self.actor.go_on(self.now);
            self.actor.advance();
        } else if !self.shared.is_over {
            self.shared.counts.removed += 1;
            self.shared.problem(format!("removed from a room: {} {text}", code.name()));
        }
    }

    fn reply(&mut self, request: RequestNumber, _: &[u8]) {
        let Some(asked) = self.actor.answered(request.0.into(), false) else { return };
        if let What::Message { timing } = asked.what {
            self.shared.counts.replies += 1;
            self.shared.replied(timing, self.now - asked.due);
        }
        if asked.is_awaited {
            self.actor.go_on(self.now);
        }
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        let Some(asked) = self.actor.answered(request.0.into(), false) else { return };
        match (asked.what, failure) {
            (What::Join { .. }, Failure::Refused { .. }) => {
                self.shared.counts.joins_refused += 1;
                self.shared.problem(format!("a join was refused: {}", explained(failure)));
                self.actor.end(self.shared);
                return;
            }
            (What::Join { .. }, _) => return self.actor.end(self.shared),
            (What::Message { timing }, Failure::Refused { .. }) => {
                self.shared.counts.refused += 1;
                self.shared.replied(timing, self.now - asked.due);
                self.shared.problem(format!("a request was refused: {}", explained(failure)));
            }
            (What::Message { .. }, _) => self.shared.counts.abandoned += 1,
            (What::Leave, _) => self.actor.at += 1,
            (What::Ping, _) => {}
        }
        if asked.is_awaited {
            self.actor.go_on(self.now);
        }
    }

    fn event(&mut self, _: &RoomEvent<'_>) {
        self.shared.counts.events += 1;
    }

    fn update(&mut self, room: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        match update.kind {
            UpdateKind::Snapshot => self.shared.counts.snapshots += 1,
            UpdateKind::Patch => self.shared.counts.patches += 1,
        }
        let now = self.now;
        let Some(seat) = self.actor.seat(room) else { return Ok(()) };
        let lateness = seat.lateness_ns(update, now);
        if let Some(ns) = lateness.filter(|_| self.shared.is_going) {
            self.shared.timings.lateness.record(ns);
        }
        seat.apply(update)
    }

    fn check(&mut self, room: RoomNumber, digest: u64) -> bool {
        let is_right = self.actor.seat(room).and_then(|seat| seat.check(digest));
        self.shared.counts.compared += u64::from(is_right.is_some());
        is_right.unwrap_or(true)
    }

    fn out_of_step(&mut self, _: RoomNumber, why: &OutOfStep) {
        self.shared.counts.wrong += 1;
        self.shared.problem(format!("a copy is wrong: {why}"));
    }

    fn error(&mut self, room: Option<RoomNumber>, code: ErrorCode, text: &str) {
        self.shared.counts.sends_refused += u64::from(room.is_some());
        self.shared.problem(format!("the node reported an error: {} {text}", code.name()));
    }

    fn pong(&mut self, nonce: u64, _: Duration) {
        let Some(asked) = self.actor.answered(nonce, true) else { return };
        self.shared.counts.pongs += 1;
        self.shared.timings.ping.record(self.now - asked.due);
    }

    fn goodbye(&mut self, code: ErrorCode, text: &str) {
        self.actor.goodbye = Some(format!("the node said goodbye: {} {text}", code.name()).into());
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        if let Some(error) = error
            && self.actor.goodbye.is_none()
        {
            self.actor.goodbye = Some(error.to_string().into());
        }
    }
}

fn explained(failure: &Failure<'_>) -> String {
    match failure {
        Failure::Refused { code, text, .. } | Failure::Left { code, text } => {
            format!("{} {text}", code.name())
        }
        Failure::Lost => "the answer was lost".into(),
        Failure::Closed => "the connection ended".into(),
    }
}
