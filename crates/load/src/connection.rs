//! One connection, and the actor that uses it.

use playfield_client::poll::{self, Buffers, Readiness};
use playfield_client::session::Session;

use crate::actor::Actor;
use crate::dial::explain;
use crate::engine::Shared;
use crate::timers::NEVER;

/// The runs of its program that a connection does before others get their turn.
const RUNS_AT_ONCE: usize = 8;

pub(crate) struct Connection {
    pub(crate) client: poll::Connection,
    pub(crate) actor: Actor,
    pub(crate) stage: Stage,
    /// When its valid entry in the heap of timers is due.
    pub(crate) timer_at: u64,
    /// When it must be welcomed, or closed.
    pub(crate) deadline: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not yet welcomed.
    Opening,
    Open,
    /// The connection has said goodbye, and waits for the node to close it.
    Leaving,
}

impl Connection {
    /// Does everything that can be done now. `Some` if the connection is over, with the reason.
    pub(crate) fn serve(
        &mut self,
        buffers: &mut Buffers,
        shared: &mut Shared,
        now: u64,
        readiness: Readiness,
    ) -> Option<String> {
        self.client.pump(readiness, buffers);
        let mut why = None;
        self.hear(shared, now, &mut why);
        if self.stage == Stage::Opening && self.actor.is_welcomed {
            (self.stage, self.deadline) = (Stage::Open, NEVER);
        }
        // A program that hears of the end of its room would go on.
        if !self.is_over() {
            if now >= self.deadline {
                return Some("the node did not answer in time".into());
            }
            if now >= self.actor.deadline(shared.timeout_ns) {
                self.actor.expire(shared, now);
            }
            self.run(buffers, shared, now);
            return None;
        }
        if let Some(session) = self.client.session() {
            session.give_up();
        }
        self.hear(shared, now, &mut why);
        let said = self.actor.goodbye.take().map(String::from);
        let why = said.or(why).unwrap_or_else(|| "the node closed it".into());
        let moves_on = self.stage == Stage::Open && self.actor.is_unreachable(&why, shared, now);
        (!moves_on).then_some(why)
    }

    fn is_over(&mut self) -> bool {
        let ended = |session: &mut Session| session.is_finished() || session.is_away();
        self.client.is_over() || self.client.session().is_some_and(ended)
    }

    /// Takes what has happened. The first reason for an end is kept.
    fn hear(&mut self, shared: &mut Shared, now: u64, why: &mut Option<String>) {
        while let Some((event, because)) = self.client.poll_event() {
            if let Some(because) = because {
                why.get_or_insert_with(|| explain(&because));
            }
            if let Some((room, copy)) = self.actor.hear(event, shared, now)
                && let Some(session) = self.client.session()
            {
                session.set_copy(room, Box::new(copy));
            }
        }
    }

    /// Runs the program, and sends what it says.
    fn run(&mut self, buffers: &mut Buffers, shared: &mut Shared, now: u64) {
        for _ in 0..RUNS_AT_ONCE {
            let mut goes_on = false;
            if self.stage == Stage::Open
                && !self.client.is_blocked()
                && let Some(session) = self.client.session()
            {
                self.actor.join_there(session, shared);
                self.actor.ping_if_due(session, shared, now);
                self.actor.answer_commands(session, shared);
                goes_on = self.actor.run(session, shared, now);
                if self.actor.is_done() {
                    self.leave(now, shared);
                }
            }
            self.client.flush(buffers);
            if !goes_on {
                return;
            }
        }
        // After the others.
        self.actor.wake_at = now + 1;
    }

    /// Says goodbye. The node then closes the connection.
    pub(crate) fn leave(&mut self, now: u64, shared: &Shared) {
        if self.stage == Stage::Open {
            self.stage = Stage::Leaving;
            self.deadline = now;
            // There is none while the connection moves to another node.
            if let Some(session) = self.client.session() {
                session.goodbye();
                self.deadline = now.saturating_add(shared.timeout_ns);
            }
        }
    }

    /// When there is something to do without input.
    pub(crate) fn due_at(&self, shared: &Shared) -> u64 {
        let client = self.client.due_at().map_or(NEVER, |at| shared.nanoseconds(at));
        let actor = match self.stage {
            // A blocked socket becomes writable first.
            Stage::Open if !self.client.is_blocked() => self.actor.wake_at.min(self.actor.ping_at),
            _ => NEVER,
        };
        client.min(actor).min(self.deadline).min(self.actor.deadline(shared.timeout_ns))
    }
}
