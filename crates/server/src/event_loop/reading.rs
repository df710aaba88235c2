//! Reading: input of clients, connection by connection, while time is left.

use std::io::{ErrorKind, Read};

use super::writing::EARLY_WRITE_BYTES;
use super::{EventLoop, Layer};
use crate::shard::keys::ConnectionKey;
use crate::sys;

/// The most bytes that are read from a connection at once.
pub(super) const READ_BYTES: usize = 64 << 10;
/// The most bytes that are read from a connection, one read after another, before others are
/// served. To switch after each read costs half as much again in the system.
const READ_AT_ONCE_BYTES: usize = 256 << 10;
/// The space before that, for the beginning of a message of which the end is read.
pub(super) const KEPT_BYTES: usize = READ_BYTES;
/// A shorter answer from a room waits for what others cause, so that all leaves in one write: a
/// write costs as much as handling some messages.
const EARLY_WRITE_MIN: usize = 1 << 10;

impl EventLoop {
    /// Serves each waiting connection once, as long as there is time.
    pub(super) fn read(&mut self) {
        self.queue_resumed();
        self.answered.clear();
        self.answered_bytes = 0;
        self.shard.begin_work();
        while let Some(key) = self.shard.next_input() {
            // A session that was resumed since the last one has another socket.
            self.change_sockets();
            let before = self.shard.links.unsent(key).len();
            self.serve(key);
            let bytes = self.shard.links.unsent(key).len().saturating_sub(before);
            if bytes >= EARLY_WRITE_MIN || bytes > 0 && self.shard.links.is_served(key) {
                self.answered.push(key);
                self.answered_bytes += bytes;
                if self.answered_bytes > EARLY_WRITE_BYTES {
                    self.write_answers();
                }
            }
        }
        self.shard.end_input();
    }

    /// Lets a connection wait to be served, unless it does already.
    pub(super) fn queue(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key)
            && !socket.queued
        {
            socket.queued = true;
            self.shard.links.queue_input(key, self.shard.env.now);
        }
    }

    /// Lets connections wait to be served that are read again.
    pub(super) fn queue_resumed(&mut self) {
        while let Some(key) = self.shard.links.next_resumed() {
            self.queue(key);
        }
    }

    /// Handles what came from a connection, for as long as it is its turn.
    fn serve(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key) {
            socket.queued = false;
            self.shard.visit(key);
            self.read_one(key);
            if self.shard.visited(key) {
                return self.queue(key);
            }
            self.follow_up(key);
        }
    }

    /// Reads from a connection until nothing is left, it was read enough for now, or the shard
    /// takes no more. What is not read now stays where it is.
    fn read_one(&mut self, key: ConnectionKey) {
        let mut read = 0;
        while read < READ_AT_ONCE_BYTES {
            let bytes = self.read_piece(key);
            read += bytes;
            if bytes < READ_BYTES {
                return;
            }
            // Answers that pile up are written between reads: the connection's part of the system
            // is in the cache now, and the client can go on.
            if !self.shard.links.reads(key) && !self.shard.links.is_blocked(key) {
                self.flush(key);
            }
        }
    }

    /// Reads once from a connection, if it may be read. Returns how many bytes came.
    fn read_piece(&mut self, key: ConnectionKey) -> usize {
        let Some(Some(socket)) = self.sockets.get_mut(key.index()) else { return 0 };
        if socket.key != key {
            return 0;
        }
        while socket.readable && self.shard.links.reads(key) && self.tls.reads(socket) {
            let read = if socket.layer.is_ended() {
                Ok(0)
            } else {
                socket.stream.read(&mut self.buffer[KEPT_BYTES..])
            };
            match read {
                Ok(0) => {
                    socket.readable = false;
                    self.shard.by_outlet(|out| out.hung_up(key));
                }
                Ok(bytes) => {
                    let buffer = &mut self.buffer[..KEPT_BYTES + bytes];
                    if matches!(socket.layer, Layer::Plain) {
                        self.shard.received_behind(key, buffer, KEPT_BYTES);
                    } else {
                        self.tls.received(socket, &mut self.shard, &mut buffer[KEPT_BYTES..]);
                    }
                    if bytes == READ_BYTES {
                        return bytes;
                    }
                    socket.readable = socket.ends || !sys::SHORT_READ_EMPTIES;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => socket.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    socket.readable = false;
                    self.shard.by_outlet(|out| out.drop_connection(key));
                }
            }
        }
        0
    }

    /// Decides what follows for a connection that was served and is not read for now.
    fn follow_up(&mut self, key: ConnectionKey) {
        let Some(Some(socket)) = self.sockets.get(key.index()) else { return };
        if socket.key != key {
            return;
        }
        if socket.readable && self.shard.links.reads(key) {
            self.queue(key);
        } else if socket.is_gone {
            self.shard.by_outlet(|out| out.vanished(key));
        } else if socket.ends {
            self.shard.by_outlet(|out| out.half_closed(key));
        }
    }
}
