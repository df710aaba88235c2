//! What one connection does: it runs a program, and hears what the node answers.

mod ear;
mod steps;

use std::collections::VecDeque;

use playfield_client::RoomNumber;

use crate::copies::Seat;
use crate::engine::Shared;
use crate::program::{Op, Programs};
use crate::random::Random;
use crate::settings::MessageKind;
use crate::timers::NEVER;

pub(crate) use ear::Ear;

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
