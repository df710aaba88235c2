//! New connections: from the listener to a shard.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::net::TcpListener;

use super::{EventLoop, Layer};
use crate::mailbox::{Newcomer, Parcel};
use crate::shard::Part;
use crate::sys;
use crate::upgrade::PassedOn;

/// The most connections that are accepted in one turn.
const ACCEPTS: usize = 64;
/// The time to wait after an accept that failed for lack of resources.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A socket that listens, and for what.
pub(crate) struct Listening {
    pub(crate) socket: std::net::TcpListener,
    /// The number of the service that connections are for; `None` is for rooms and pages.
    pub(crate) service: Option<u16>,
}

/// All sockets with which a shard begins.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) listening: Vec<Listening>,
    /// Its listeners are the only ones, and deal connections to all shards.
    pub(crate) deals: bool,
    /// The open connections of another process that go on here.
    pub(crate) passed_on: Vec<PassedOn>,
}

/// A [`Listening`] socket in the event loop.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) service: Option<u16>,
    /// When to accept again, even if the system announces nothing.
    pub(super) accepts_at: Option<Duration>,
    /// The shard that the next connection goes to.
    dealt: usize,
}

impl Listener {
    /// Its connections go to this shard, or to this shard first.
    pub(super) fn new(listening: Listening, shard: usize) -> Self {
        let Listening { socket, service } = listening;
        Self { socket: TcpListener::from_std(socket), service, accepts_at: None, dealt: shard }
    }
}

impl EventLoop {
    /// Accepts who waits, where a listener may have someone.
    pub(super) fn accept(&mut self) {
        self.shard.pacing.begin_part(&self.shard.env, Part::Accepts);
        for number in 0..self.listeners.len() {
            if self.listeners[number].accepts_at.is_some_and(|at| at <= self.now()) {
                self.accept_from(number);
            }
        }
        self.shard.pacing.end_part(&self.shard.env);
    }

    fn accept_from(&mut self, number: usize) {
        self.listeners[number].accepts_at = None;
        for _ in 0..ACCEPTS {
            if self.shard.is_part_over() {
                break;
            }
            let listener = &self.listeners[number];
            let service = listener.service;
            match listener.socket.accept() {
                Ok((socket, address)) => {
                    if let Some(tally) = self.shard.links.admit_from(
                        &mut self.shard.env,
                        address.ip(),
                        service.is_some(),
                    ) {
                        self.deal(number, Newcomer { socket, address, tally, service });
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client is gone again already, or was interrupted: the next one may be there.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    log::warn!("no connection can be accepted for now: {error}");
                    self.listeners[number].accepts_at = Some(self.now() + ACCEPT_RETRY);
                    return;
                }
            }
        }
        self.listeners[number].accepts_at = Some(Duration::ZERO);
    }

    /// Sends a new connection to the shard whose turn it is, unless there are too many.
    fn deal(&mut self, listener: usize, newcomer: Newcomer) {
        if self.shared.connections.fetch_add(1, Ordering::Relaxed) >= self.shared.connections_max {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.refused += 1;
            self.shard.links.note_full(&mut self.shard.env, newcomer.address.ip());
            return;
        }
        if !self.shared.takes(self.index) {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.refused += 1;
            return;
        }
        let shards = self.shared.mailboxes.len();
        let dealt = &mut self.listeners[listener].dealt;
        let target = *dealt;
        if self.deals {
            *dealt = (*dealt + 1) % shards;
        }
        if target == self.index {
            self.welcome(newcomer);
        } else if self.shared.mailboxes[target].push(Parcel::Accepted(newcomer)).is_err() {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.refused += 1;
        }
    }

    /// Takes in a new connection.
    pub(super) fn welcome(&mut self, newcomer: Newcomer) {
        let Newcomer { socket, address, tally, service } = newcomer;
        // Without it small messages would wait for each other's acknowledgements. Not worth a
        // refusal.
        if !sys::INHERITS_NODELAY
            && let Err(error) = socket.set_nodelay(true)
        {
            log::debug!("a connection keeps its delay: {error}");
        }
        let key = match service {
            None => self.shard.by_outlet(|out| out.accepted(address, tally)),
            Some(service) => self.shard.accepted_for(service, address, tally),
        };
        let layer = match service {
            None if self.shard.env.is_proxy(address.ip()) => {
                self.tls.layer(address.ip()).behind_proxy()
            }
            None => self.tls.layer(address.ip()),
            Some(_) => Layer::Plain,
        };
        self.place(key, socket, layer);
    }
}
