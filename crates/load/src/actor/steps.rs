//! Runs a connection's program, step by step.

use playfield_client::RequestNumber;
use playfield_client::session::{CommandError, Creation, Session};

use super::{Actor, Asked, Loop, NOWHERE, State, What};
use crate::engine::Shared;
use crate::program::{Op, Programs};
use crate::settings::{Enter, MessageKind};
use crate::timers::NEVER;

/// The most requests of one connection that may wait for answers. Later ones are due, and wait.
pub(super) const IN_FLIGHT_MAX: usize = 1024;

/// The steps that a connection runs before others get their turn.
const STEPS_AT_ONCE: usize = 64;

/// The bytes that a connection writes before they are sent.
const OUTPUT_MAX: usize = 64 << 10;

/// Why the program does not go on.
pub(super) enum Stop {
    /// The step waits, or the connection takes nothing more now.
    Here,
    /// Others get their turn.
    Yield,
}

impl Actor {
    /// The time between two repetitions of the innermost loop, if it has one.
    pub(super) fn every_ns(&self, programs: &Programs) -> Option<u64> {
        let ops = &programs.programs[self.program as usize].ops;
        match ops[self.loops.last()?.begin as usize] {
            Op::Repeat { every_ns, .. } if every_ns > 0 => Some(every_ns),
            _ => None,
        }
    }

    pub(super) fn advance(&mut self) {
        self.state = State::Running;
        self.at = match std::mem::replace(&mut self.back, NOWHERE) {
            NOWHERE => self.at + 1,
            back => back,
        };
    }

    /// Runs the program as far as it goes now. Returns whether it would go on.
    pub(crate) fn run(&mut self, client: &mut Session, shared: &mut Shared, now: u64) -> bool {
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
    pub(crate) fn ping_if_due(&mut self, client: &mut Session, shared: &mut Shared, now: u64) {
        let (true, Some(period)) = (self.ping_at <= now, shared.ping_ns) else { return };
        let due = self.ping_at;
        self.ping_at = due + period.max(1);
        if self.asked.len() >= IN_FLIGHT_MAX {
            shared.counts.unsent += 1;
            shared.counts.overdue += 1;
        } else {
            self.ping(client, shared, due);
        }
    }

    fn ping(&mut self, client: &mut Session, shared: &mut Shared, due: u64) {
        if let Ok(nonce) = client.ping() {
            shared.counts.pings += 1;
            self.ask(nonce, What::Ping, false, due);
        }
    }

    pub(super) fn ask(&mut self, number: u64, what: What, is_awaited: bool, due: u64) {
        self.asked.push_back(Asked { number, what, is_awaited, due });
        if is_awaited {
            self.state = State::Waiting;
        }
    }

    fn step(&mut self, client: &mut Session, shared: &mut Shared, now: u64) -> Result<(), Stop> {
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
            Op::Ping if self.asked.len() >= IN_FLIGHT_MAX => return Err(Stop::Here),
            Op::Ping => {
                let due = self.due;
                self.ping(client, shared, due);
                self.advance();
            }
            Op::Repeat { times: 0, end, .. } => self.at = end + 1,
            Op::Repeat { times, every_ns, .. } => {
                // Connections that begin together are spread over the first interval.
                self.due += self.random.below(*every_ns);
                self.loops.push(Loop { begin: self.at, left: *times, due: self.due });
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
                    shared.undone(format!("a value could not be generated: {why}"));
                }
                let sent = match kind {
                    MessageKind::Send => {
                        client.send(number, message.index, &payload).map(|()| None)
                    }
                    MessageKind::Request | MessageKind::RequestAhead => {
                        client.request(number, message.index, &payload).map(Some)
                    }
                };
                shared.payload = payload;
                let request = self.taken(sent, shared)?;
                let what = What::Message { timing: message.timing };
                self.sent(request, what, *kind, client, shared)?;
            }
            Op::Bot { room, join, make, timing } => {
                return self.act((*room, *join), make, *timing, client, shared);
            }
            Op::Publish { .. } | Op::Report { .. }
                if self.asked.len() >= IN_FLIGHT_MAX || client.is_full() =>
            {
                return Err(Stop::Here);
            }
            Op::Subscribe { channel, presence, timing } => {
                self.subscribe(channel, *presence, *timing, client, shared)?;
            }
            Op::Unsubscribe { channel } => self.unsubscribe(channel.as_ref(), client, shared),
            Op::Publish { channel, payload, kind, timing } => {
                self.publish(channel, payload, *kind, *timing, client, shared)?;
            }
            Op::Register { device, metadata, tags, timing, .. } => {
                self.register(device, metadata, tags, *timing, client, shared)?;
            }
            Op::Report { payload, kind, timing } => {
                self.report(payload, *kind, *timing, client, shared)?;
            }
        }
        Ok(())
    }

    /// A message was sent: goes on, or waits for the answer.
    pub(super) fn sent(
        &mut self,
        request: Option<RequestNumber>,
        what: What,
        kind: MessageKind,
        client: &Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        shared.counts.sent += 1;
        self.advance();
        if let Some(request) = request {
            shared.counts.requests += 1;
            self.ask(request.0.into(), what, kind == MessageKind::Request, self.due);
        }
        if client.output_bytes() > OUTPUT_MAX { Err(Stop::Yield) } else { Ok(()) }
    }

    fn enter(
        &self,
        client: &mut Session,
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
                let key = self.shared_key(key, *connections);
                client.join_or_create_by_key(room_type, &key, options)
            }
        }
    }

    /// The result of a command. One that the client takes later stops the program for now.
    pub(super) fn taken<T>(
        &mut self,
        result: Result<T, CommandError>,
        shared: &mut Shared,
    ) -> Result<T, Stop> {
        result.map_err(|error| {
            if !matches!(error, CommandError::Busy { .. } | CommandError::Unconfirmed { .. }) {
                shared.undone(format!("a step could not be done: {error}"));
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
}
