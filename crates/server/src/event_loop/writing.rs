//! Writing: the newest output first, as long as no room is late.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use super::layer::part;
use super::{EventLoop, Layer};
use crate::shard::keys::ConnectionKey;
use crate::upgrade::gate::Stage;

/// When connections have been answered this much, the answers are written before more is read: as
/// long as all of it lies in the processor's cache.
pub(super) const EARLY_WRITE_BYTES: usize = 64 << 10;
/// A room that is late by more than this comes before output: what is half written is better
/// finished.
const ROOM_BEFORE_OUTPUT: Duration = Duration::from_millis(4);
/// The time for which output is written in one turn even if rooms are late.
const OUTPUT_PER_TURN: Duration = Duration::from_millis(5);

impl EventLoop {
    /// Writes what every connection is owed.
    pub(super) fn write(&mut self) {
        let began = self.now();
        // Drained connections get the messages that they have missed meanwhile.
        self.writes_on =
            !(self.write_new(began) && self.write_where_space(began) && self.write_new(began));
        while let Some(key) = self.shard.links.next_written() {
            if let Some(socket) = self.socket(key) {
                part(socket);
            }
        }
    }

    /// Writes the answers to connections that were served in this turn, before it is over: the
    /// newest first, which are in the nearest cache.
    pub(super) fn write_answers(&mut self) {
        while let Some(key) = self.answered.pop() {
            if !self.shard.links.is_blocked(key) {
                self.flush(key);
            }
        }
        self.answered_bytes = 0;
        // Connections that had too much unsent are read again in this turn, if it is written now.
        self.queue_resumed();
    }

    /// Writes what is new, the newest first: that is the output of rooms that were late. `false` if
    /// a room is late again.
    fn write_new(&mut self, began: Duration) -> bool {
        while let Some(key) = self.shard.next_dirty() {
            let waits = self.gate_stage > Stage::Draining && self.holds_back(key);
            if !waits && !self.shard.links.is_blocked(key) {
                self.flush(key);
                if self.is_output_over(began) {
                    return false;
                }
            }
        }
        true
    }

    /// Writes where a socket was full and has space again. `false` if a room is late.
    fn write_where_space(&mut self, began: Duration) -> bool {
        while let Some(key) = self.writable.pop_front() {
            self.flush(key);
            if self.is_output_over(began) {
                return false;
            }
        }
        true
    }

    /// Writes to one connection as much as its socket takes.
    pub(super) fn flush(&mut self, key: ConnectionKey) {
        let Some(Some(socket)) = self.sockets.get_mut(key.index()) else { return };
        if matches!(socket.layer, Layer::Tls(_)) {
            if socket.key == key {
                self.tls.flush(socket, &mut self.shard);
            }
            return;
        }
        loop {
            let bytes = self.shard.links.unsent(key);
            if bytes.is_empty() || socket.key != key {
                return;
            }
            match socket.stream.write(bytes) {
                Ok(written) => self.shard.wrote(key, written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.shard.wrote(key, 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.shard.by_outlet(|out| out.drop_connection(key)),
            }
        }
    }

    /// Returns whether it is time for rooms again, after output was written since `began`.
    fn is_output_over(&self, began: Duration) -> bool {
        // At the gate none runs, however late it is.
        if self.gate_stage > Stage::Draining || self.shard.host.due_at().is_none() {
            return false; // Without asking for the time after each write.
        }
        let now = self.now();
        self.is_room_late(now, ROOM_BEFORE_OUTPUT) && now.saturating_sub(began) >= OUTPUT_PER_TURN
    }

    /// Returns whether a room is late by more than this.
    fn is_room_late(&self, now: Duration, by: Duration) -> bool {
        self.shard.host.due_at().is_some_and(|at| at + by <= now)
    }
}
