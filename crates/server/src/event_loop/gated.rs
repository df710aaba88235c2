//! A shard at the [gate](crate::upgrade::gate) of an upgrade.

use std::io::{ErrorKind, Read};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::Events;
use mio::net::TcpStream;
use socket2::SockRef;

use super::{EventLoop, Layer, Socket};
use crate::event_loop::accept::Listener;
use crate::event_loop::layer::part;
use crate::shard::keys::ConnectionKey;
use crate::upgrade::PassedOn;
use crate::upgrade::gate::{Collected, Stage};

/// The time that clients have to read what they were sent, and to close their connections, when
/// another process has taken over. Their input is read until then: the system would reset a
/// connection with unread input, and its client might lose output.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

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
            let is_unsaved = self.shard.waits_for_store(self.shared.gate.number());
            self.shared.gate.note_busy(self.index, is_busy, is_unsaved);
            self.shard.advance();
        } else {
            self.go_to(stage);
            match stage {
                Stage::Stopped => self.shard.settle_stopped(),
                _ => self.shard.settle_journaled(),
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
        // A descriptor of the shard's own table means nothing to other threads.
        let is_shared = self.shared.tables.is_none();
        let Self { shard, sockets, passed, .. } = self;
        let mut connections = Vec::new();
        let frozen = shard.collect_frozen(|key| {
            let socket = sockets.get(key.index()).and_then(Option::as_ref);
            let socket =
                socket.filter(|socket| is_shared && socket.key == key && socket.is_plain());
            let Some(copy) = socket.and_then(Socket::copy) else { return false };
            connections.push(copy);
            passed.push(key);
            true
        });
        let of = |listener: &Listener| {
            Some((SockRef::from(&listener.socket).try_clone().ok()?.into(), listener.service))
        };
        let listeners = self.listeners.iter().filter(|_| is_shared).filter_map(of).collect();
        self.published.pulse.rest();
        self.shared.gate.hand_in(self.index, Collected { frozen, listeners, connections })
    }

    /// Returns whether the output of a connection is left to the next process, which writes it with
    /// its own. Others are written to as ever.
    pub(super) fn holds_back(&mut self, key: ConnectionKey) -> bool {
        let is_plain = |socket: &mut Socket| socket.is_plain();
        let holds_back = self.shared.tables.is_none()
            && self.socket(key).is_some_and(is_plain)
            && self.shard.may_pass_on(key);
        if holds_back {
            self.held_back.push(key);
        }
        holds_back
    }

    /// Goes on as if nothing had happened.
    #[cold]
    pub(super) fn leave_gate(&mut self) {
        self.passed.clear();
        self.writable.extend(self.held_back.drain(..));
        if std::mem::take(&mut self.gate_stage) > Stage::Draining {
            self.shard.thaw_here();
        }
    }

    /// The other process has let go of the connections that it has passed on.
    #[cold]
    pub(super) fn take_passed_on(&mut self) {
        for PassedOn { key, socket } in std::mem::take(&mut self.passed_on) {
            self.shared.connections.fetch_add(1, Ordering::Relaxed);
            self.place(key, TcpStream::from_std(socket), Layer::Plain);
            self.shard.goes_on(key);
            // Output that the old process had not written, and that of rooms meanwhile.
            self.writable.push_back(key);
        }
    }

    /// Another process serves: closes all connections but those that it has, so that the clients go
    /// there.
    pub(super) fn close_for_successor(&mut self, events: &mut Events) {
        self.listeners.clear();
        for key in std::mem::take(&mut self.passed) {
            if let Some(place) = self.sockets.get_mut(key.index()) {
                *place = None;
            }
        }
        for place in 0..self.sockets.len() {
            self.finish_output(place);
            self.read_out(place);
        }
        let by = Instant::now() + CLOSE_WAIT;
        while self.sockets.iter().any(Option::is_some) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() || self.poll.poll(events, Some(left)).is_err() {
                return;
            }
            for event in &*events {
                if let Some(place) = event.token().0.checked_sub(self.first_connection) {
                    self.finish_output(place);
                    self.read_out(place);
                }
            }
        }
    }

    /// Writes a connection's pending output, until its socket is full, and signals the end after
    /// all of it. A client with the complete output needs no snapshot when it comes back, and one
    /// that can't resume its session misses nothing.
    fn finish_output(&mut self, place: usize) {
        let Some(Some(socket)) = self.sockets.get(place) else { return };
        let key = socket.key;
        self.flush(key);
        if self.shard.links.unsent(key).is_empty()
            && let Some(socket) = self.socket(key)
        {
            part(socket);
        }
    }

    /// Reads what a client sends, to no use, and drops its socket once it has closed it.
    fn read_out(&mut self, place: usize) {
        let Some(place) = self.sockets.get_mut(place) else { return };
        let Some(socket) = place else { return };
        loop {
            match socket.stream.read(&mut self.buffer) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => break,
            }
        }
        *place = None;
    }
}

impl Socket {
    /// Returns whether its client has not ended it, and nothing is between it and its connection.
    fn is_plain(&self) -> bool {
        matches!(self.layer, Layer::Plain) && !self.ends && !self.is_gone
    }

    /// Another descriptor of it; `None` if there are too many.
    fn copy(&self) -> Option<std::net::TcpStream> {
        Some(SockRef::from(&self.stream).try_clone().ok()?.into())
    }
}
