//! A shard at the [gate](crate::upgrade::gate) of an upgrade.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use mio::Events;
use socket2::SockRef;

use super::EventLoop;
use crate::event_loop::accept::Listener;
use crate::upgrade::gate::{Collected, Stage};

/// The time that clients have to close their connections when another process has taken over. What
/// they send is read until then: the system would reset a connection with unread input, and its
/// client might lose what it was sent.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
/// The interval between looks for those that have.
const CLOSE_POLL: Duration = Duration::from_millis(10);

impl EventLoop {
    /// Takes a turn in which no client is heard. Returns whether another process has taken over.
    #[cold]
    pub(super) fn gated_turn(&mut self, events: &Events) -> bool {
        // In this order: a round is of the stage that was named before it, and of all mail that was
        // sent before it.
        let round = self.shared.gate.round(self.index);
        let stage = self.shared.gate.stage();
        if stage == Stage::Open {
            return false;
        }
        self.take_mail(true);
        self.note(events);
        if stage == Stage::Draining {
            let is_busy = self.shard.has_work_in_flight();
            self.shared.gate.note_busy(self.index, is_busy);
            self.shard.advance();
        } else {
            self.go_to(stage);
            if stage == Stage::Stopped {
                self.shard.settle_stopped();
            }
        }
        self.change_sockets();
        self.write();
        self.hand_over();
        let posts = !self.shard.is_quiet();
        self.post();
        self.change_sockets();
        if stage == Stage::Draining {
            return false;
        }
        if let Some(round) = round {
            let moved = posts || self.mail_taken > 0 || !self.shard.is_quiet();
            self.mail_taken = 0;
            self.shared.gate.report(self.index, round, moved);
        }
        stage == Stage::Collected && self.hand_in()
    }

    /// Does what has to be done once for each stage on the way to this one.
    fn go_to(&mut self, stage: Stage) {
        if self.gate_stage < Stage::Stopped {
            self.shard.stop_rooms();
        }
        if self.gate_stage < Stage::Written && stage >= Stage::Written {
            self.shard.freeze_rooms();
        }
        self.gate_stage = stage;
    }

    /// Hands in what the shard has, and waits. Returns whether another process has taken over.
    fn hand_in(&mut self) -> bool {
        let frozen = self.shard.collect_frozen();
        let of = |listener: &Listener| {
            Some((SockRef::from(&listener.socket).try_clone().ok()?.into(), listener.service))
        };
        // A descriptor of the shard's own table means nothing to other threads.
        let is_shared = self.shared.tables.is_none();
        let listeners = self.listeners.iter().filter(|_| is_shared).filter_map(of).collect();
        self.published.pulse.rest();
        self.shared.gate.hand_in(self.index, Collected { frozen, listeners })
    }

    /// Goes on as if nothing had happened.
    #[cold]
    pub(super) fn leave_gate(&mut self) {
        if std::mem::take(&mut self.gate_stage) > Stage::Draining {
            self.shard.thaw_here();
        }
    }

    /// Another process serves: closes all connections, so that the clients go there.
    pub(super) fn close_for_successor(&mut self) {
        self.listeners.clear();
        let by = Instant::now() + CLOSE_WAIT;
        for socket in self.sockets.iter().flatten() {
            // One that is gone needs none.
            let _ = socket.stream.shutdown(Shutdown::Write);
        }
        while self.sockets.iter().any(Option::is_some) && Instant::now() < by {
            for place in &mut self.sockets {
                let Some(socket) = place else { continue };
                let is_over = loop {
                    match socket.stream.read(&mut self.buffer) {
                        Ok(0) => break true,
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break true,
                    }
                };
                if is_over {
                    *place = None;
                }
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "its rooms are in the other process, and a deadline is near"
            )]
            std::thread::sleep(CLOSE_POLL);
        }
    }
}
