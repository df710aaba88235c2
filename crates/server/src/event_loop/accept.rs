//! New connections: from the listener to a shard.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::net::TcpStream;

use super::EventLoop;
use crate::mailbox::Parcel;

/// How many connections are accepted in one turn.
const ACCEPTS: usize = 64;
/// After an accept that failed for want of resources, when to try again.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

impl EventLoop {
    /// Accepts who waits, if the listener may have someone.
    pub(super) fn accept(&mut self) {
        if self.accepts_at.is_none_or(|at| at > self.now()) {
            return;
        }
        self.accepts_at = None;
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((socket, _)) => self.deal(socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client is gone again already, or was interrupted: the next one may be there.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(error) => {
                    log::warn!("no connection can be accepted for now: {error}");
                    self.accepts_at = Some(self.now() + ACCEPT_RETRY);
                    return;
                }
            }
        }
        self.accepts_at = Some(Duration::ZERO);
    }

    /// Sends a new connection to the shard whose turn it is, unless there are too many.
    fn deal(&mut self, socket: TcpStream) {
        if self.floor.connections.fetch_add(1, Ordering::Relaxed) >= self.floor.connections_max {
            self.floor.connections.fetch_sub(1, Ordering::Relaxed);
            self.refused += 1;
            return;
        }
        let shards = self.floor.mailboxes.len();
        let target = self.dealt;
        if self.deals {
            self.dealt = (self.dealt + 1) % shards;
        }
        if target == self.index {
            self.welcome(socket);
        } else if self.floor.mailboxes[target].push(Parcel::Accepted(socket)).is_err() {
            self.floor.connections.fetch_sub(1, Ordering::Relaxed);
            self.refused += 1;
        }
    }

    /// Takes in a new connection.
    pub(super) fn welcome(&mut self, socket: TcpStream) {
        // Without it small messages would wait for each other's acknowledgements. Not worth a refusal.
        if let Err(error) = socket.set_nodelay(true) {
            log::debug!("a connection keeps its delay: {error}");
        }
        let key = self.shard.accepted();
        self.place(key, socket);
    }
}
