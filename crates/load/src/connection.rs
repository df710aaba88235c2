//! One connection: its socket, its client and its actor.

use std::io::ErrorKind;
use std::time::Duration;

use playfield_client::poll::Stream;
use playfield_client::session::Session;

use crate::actor::Actor;
use crate::engine::Shared;
use crate::timers::NEVER;

/// How often a connection runs its program before others get their turn.
const RUNS_AT_ONCE: usize = 8;

pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Session,
    pub(crate) actor: Actor,
    pub(crate) stage: Stage,
    /// When its valid entry in the heap of timers is due.
    pub(crate) timer_at: u64,
    /// When it must be welcomed, or closed.
    pub(crate) deadline: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Connecting,
    /// Connected, and not yet welcomed.
    Greeting,
    Open,
    /// It said goodbye, and waits for the node to close the connection.
    Leaving,
}

/// What the socket has for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    None,
    Some,
    /// The end follows.
    Last,
}

/// Buffers that all connections share.
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
}

impl Connection {
    /// Does everything that can be done now. `Some` if the connection is over, with the reason.
    pub(crate) fn serve(
        &mut self,
        buffers: &mut Buffers,
        shared: &mut Shared,
        now: u64,
        input: Input,
    ) -> Option<String> {
        let time = Duration::from_nanos(now);
        if self.stage == Stage::Connecting {
            match self.stream.is_connected() {
                Ok(true) => self.stage = Stage::Greeting,
                // It was connected, and has ended already.
                Ok(false) if input != Input::None => {
                    return Some("the node closed it at once".into());
                }
                Ok(false) if now < self.deadline => return None,
                Ok(false) => return Some("the connection was not answered in time".into()),
                Err(error) => return Some(format!("can't connect: {error}")),
            }
        }
        self.client.advance(time);
        self.hear(shared, now);
        let failed = match input {
            Input::None => None,
            _ => self.read(buffers, shared, now, input == Input::Last),
        };
        if self.stage == Stage::Greeting && self.actor.is_welcomed {
            (self.stage, self.deadline) = (Stage::Open, NEVER);
        }
        if failed.is_some() {
            return failed;
        }
        if now >= self.deadline {
            return Some("the node did not answer in time".into());
        }
        if now >= self.actor.deadline(shared.timeout_ns) {
            self.actor.expire(shared, now);
        }
        // A program that hears of the end of its room would go on.
        let is_over = |client: &Session| client.is_finished() || client.is_away();
        if !is_over(&self.client)
            && let Err(error) = self.run(buffers, shared, now)
        {
            return Some(format!("the connection failed: {error}"));
        }
        if is_over(&self.client) {
            let lost = self.client.lost().map(ToString::to_string);
            self.client.give_up();
            self.hear(shared, now);
            let said = self.actor.goodbye.take().map(String::from);
            return Some(said.or(lost).unwrap_or_else(|| "the node closed it".into()));
        }
        None
    }

    /// Reads all there is. `Some` if the connection failed.
    fn read(
        &mut self,
        buffers: &mut Buffers,
        shared: &mut Shared,
        now: u64,
        is_last: bool,
    ) -> Option<String> {
        loop {
            match self.stream.read(&mut buffers.input) {
                Ok(0) => {
                    self.client.ended();
                    self.hear(shared, now);
                    return None;
                }
                Ok(count) => {
                    shared.counts.bytes_in += count as u64;
                    self.client.received(&buffers.input[..count]);
                    self.hear(shared, now);
                    // The end comes with the event of the last bytes, or with one of its own.
                    if !is_last && self.stream.is_drained(count, buffers.input.len()) {
                        return None;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Some(format!("the connection failed: {error}")),
            }
        }
    }

    /// Takes what has happened.
    fn hear(&mut self, shared: &mut Shared, now: u64) {
        while let Some(event) = self.client.poll_event() {
            let entered = self.actor.hear(event, shared, now);
            if let Some((room, copy)) = entered {
                self.client.set_copy(room, Box::new(copy));
            }
        }
    }

    /// Runs the program, and sends what it says.
    fn run(&mut self, buffers: &mut Buffers, shared: &mut Shared, now: u64) -> std::io::Result<()> {
        for _ in 0..RUNS_AT_ONCE {
            let mut goes_on = false;
            if self.stage == Stage::Open && !self.stream.is_blocked() {
                self.actor.ping_if_due(&mut self.client, shared, now);
                self.actor.answer_commands(&mut self.client, shared);
                goes_on = self.actor.run(&mut self.client, shared, now);
                if self.actor.is_done() {
                    self.leave(now, shared);
                }
            }
            buffers.output.clear();
            self.client.take_output(&mut buffers.output);
            shared.counts.bytes_out += buffers.output.len() as u64;
            self.stream.write(&buffers.output)?;
            if !goes_on {
                return Ok(());
            }
        }
        // After the others.
        self.actor.wake_at = now + 1;
        Ok(())
    }

    /// Says goodbye. The node then closes the connection.
    pub(crate) fn leave(&mut self, now: u64, shared: &Shared) {
        if self.stage == Stage::Open {
            self.client.goodbye();
            self.stage = Stage::Leaving;
            self.deadline = now.saturating_add(shared.timeout_ns);
        }
    }

    /// When there is something to do without input.
    pub(crate) fn due_at(&self, shared: &Shared) -> u64 {
        let client = self.client.due_at().map_or(NEVER, |at| at.as_nanos() as u64);
        let actor = match self.stage {
            // A blocked socket becomes writable first.
            Stage::Open if !self.stream.is_blocked() => self.actor.wake_at.min(self.actor.ping_at),
            _ => NEVER,
        };
        client.min(actor).min(self.deadline).min(self.actor.deadline(shared.timeout_ns))
    }
}
