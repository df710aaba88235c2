//! The actor of one connection: runs a program, and hears what the node answers.

mod bots;
mod channels;
mod devices;
mod events;
mod moves;
mod steps;

use std::collections::VecDeque;

use playfield_client::RoomNumber;

use bots::Acting;
use moves::Move;

use crate::copies::Seat;
use crate::deliveries::{Deliveries, Subscription};
use crate::engine::Shared;
use crate::program::{Op, Programs};
use crate::random::Random;
use crate::settings::MessageKind;
use crate::timers::NEVER;

/// A message that was due for so long at the end of the load was held up. One due later may only
/// have been about to be sent.
const OVERDUE_NS: u64 = 100_000_000;

/// No place in a program.
const NOWHERE: u32 = u32::MAX;

/// The state of one connection's program. Times are in nanoseconds since the load began.
pub(crate) struct Actor {
    number: u32,
    program: u32,
    /// The step to run.
    at: u32,
    /// The step to go on at after a room was joined again.
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
    subscriptions: Vec<Subscription>,
    /// The number of publications that it has sent in each channel.
    published: Vec<(u32, u32)>,
    /// The step that has registered it as a device.
    registered_at: u32,
    /// The join that was redirected last, until its room is entered.
    moving: Option<Box<Move>>,
    /// The bot that acts, if one does.
    bot: Option<Box<Acting>>,
    /// Answers to commands that were not sent yet.
    answers: VecDeque<(u64, Vec<u8>)>,
    /// When the program began to wait for an answer.
    waits_since: u64,
    is_settled: bool,
    pub(crate) is_welcomed: bool,
    /// The node's words before it ended the connection.
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
    /// The step that repeats.
    begin: u32,
    left: u64,
    /// When the present repetition was due.
    due: u64,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Asked {
    number: u64,
    what: What,
    /// Says whether the program waits for it.
    is_awaited: bool,
    due: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Join {
        room: u32,
    },
    Leave,
    Message {
        timing: u32,
    },
    Publish {
        timing: u32,
        channel: u32,
        epoch: u64,
    },
    /// Its number is that of the subscription.
    Subscribe {
        timing: u32,
    },
    Register {
        timing: u32,
    },
    Ping,
}

/// Requests, pings and subscriptions are numbered apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    Request,
    Ping,
    Subscription,
}

impl What {
    fn numbers(self) -> Numbers {
        match self {
            Self::Ping => Numbers::Ping,
            Self::Subscribe { .. } => Numbers::Subscription,
            _ => Numbers::Request,
        }
    }
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
            subscriptions: Vec::new(),
            published: Vec::new(),
            registered_at: NOWHERE,
            moving: None,
            bot: None,
            answers: VecDeque::new(),
            waits_since: 0,
            is_settled: false,
            is_welcomed: false,
            goodbye: None,
        }
    }

    /// Returns whether the program has ended and nothing is waited for.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Ended && self.asked.is_empty()
    }

    /// Returns whether answers or deliveries are waited for.
    pub(crate) fn is_waiting(&self, deliveries: &Deliveries, now: u64) -> bool {
        let is_complete = |of| deliveries.is_complete(of);
        !self.asked.is_empty()
            || !self.subscriptions.is_empty()
                && (!deliveries.is_quiet(now) || !self.subscriptions.iter().all(is_complete))
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
        let (mut due, at, mut left) = match (self.state, self.loops.last(), every_ns) {
            (State::Running, round, _) => (self.due, self.at, round.map_or(1, |round| round.left)),
            // The next repetition is due, though this one still waits for an answer.
            (State::Waiting, Some(round), Some(every)) => {
                (round.due.saturating_add(every), round.begin, round.left - 1)
            }
            _ => return,
        };
        let ops = &shared.programs.programs[self.program as usize].ops;
        let message = ops.iter().skip(at as usize).find_map(|op| match op {
            Op::Message { choices, kind, .. } => Some((choices[0].timing, *kind)),
            Op::Publish { timing, kind, .. } | Op::Report { timing, kind, .. } => {
                Some((*timing, *kind))
            }
            _ => None,
        });
        let Some((timing, kind)) = message else { return };
        while due < now && left > 0 {
            left -= 1;
            shared.counts.unsent += 1;
            shared.counts.overdue += u64::from(now - due >= OVERDUE_NS);
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
        let is_message = |what| matches!(what, What::Message { .. } | What::Publish { .. });
        let lost = self.asked.drain(..).filter(|asked| is_message(asked.what));
        shared.counts.abandoned += lost.count() as u64;
        self.rooms.clear();
        let open = self.subscriptions.drain(..).filter(|subscription| subscription.is_open);
        shared.counts.in_channels -= open.count() as u64;
    }

    /// The answers did not come in time.
    pub(crate) fn give_up(&mut self, shared: &mut Shared, now: u64) {
        for asked in std::mem::take(&mut self.asked) {
            Self::unanswered(&asked, shared, now);
        }
    }

    fn unanswered(asked: &Asked, shared: &mut Shared, now: u64) {
        match asked.what {
            What::Ping => return,
            What::Message { timing }
            | What::Publish { timing, .. }
            | What::Subscribe { timing }
            | What::Register { timing } => shared.replied(timing, now - asked.due),
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
        if self.is_unreachable("it did not answer in time", shared, now) {
            return;
        }
        let Some(index) = self.asked.iter().position(|asked| asked.is_awaited) else { return };
        let Some(asked) = self.asked.remove(index) else { return };
        Self::unanswered(&asked, shared, now);
        match asked.what {
            What::Join { .. } | What::Subscribe { .. } | What::Register { .. } => {
                let what = match asked.what {
                    What::Join { .. } => "join",
                    What::Subscribe { .. } => "subscription",
                    _ => "registration",
                };
                shared.problem(format!("a {what} was not answered in time"));
                self.end(shared);
            }
            What::Leave => self.end(shared),
            What::Message { .. } | What::Publish { .. } | What::Ping => self.go_on(now),
        }
    }

    /// The program can't go on.
    fn end(&mut self, shared: &mut Shared) {
        self.state = State::Ended;
        self.settle(shared);
    }

    /// Removes the pending request, ping or subscription that has this number.
    fn answered(&mut self, number: u64, of: Numbers) -> Option<Asked> {
        let is_it = |asked: &Asked| asked.number == number && asked.what.numbers() == of;
        let index = self.asked.iter().position(is_it)?;
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
