//! Clients, which join rooms by key, wherever they are, and append numbers.

use crate::sim::faults::SECOND;
use crate::sim::world::{Scheduled, World};

/// A client of one key. It has one request at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) key: u8,
    /// The number of the last request.
    request: u32,
    phase: Phase,
    /// The host that the room is at, or that is asked next.
    host: u8,
    hops: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits before it asks again, or before the next number.
    Idle,
    Joining,
    Joined,
    Appending {
        number: u32,
    },
}

/// A request of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) client: u8,
    pub(super) number: u32,
    pub(super) key: u8,
    pub(super) kind: RequestKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RequestKind {
    Join,
    Append { number: u32 },
}

/// The answer to the request of that number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) client: u8,
    pub(super) number: u32,
    pub(super) kind: ReplyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// Joined, or the number is appended and saved.
    Done,
    /// Ask that host.
    At(u8),
    Busy,
    /// The room is not here: join again.
    Gone,
}

/// The times after which a client no longer waits for an answer, and tries again.
const PATIENCE: u64 = 5 * SECOND;
const AGAIN: u64 = SECOND;
const HOPS_MAX: u8 = 3;

impl Client {
    pub(super) fn new(key: u8) -> Self {
        Self { key, request: 0, phase: Phase::Idle, host: 0, hops: 0 }
    }
}

impl World {
    /// Lets a client do what is due, if it still waits for the request of that number.
    pub(super) fn client_due(&mut self, index: u8, number: u32) {
        let client = &mut self.clients[usize::from(index)];
        if client.request != number {
            return;
        }
        match client.phase {
            Phase::Joined => self.client_appends(index),
            // An answer that did not come: the number may be in the list, and is not sent again.
            Phase::Idle | Phase::Joining | Phase::Appending { .. } => self.client_joins(index),
        }
    }

    pub(super) fn client_hears(&mut self, reply: Reply) {
        let now = self.now;
        let client = &mut self.clients[usize::from(reply.client)];
        if client.request != reply.number {
            return;
        }
        let key = usize::from(client.key);
        match reply.kind {
            ReplyKind::Done => {
                if let Phase::Appending { number } = client.phase {
                    self.laws.answered(now, number);
                    self.counts.appended += 1;
                }
                client.phase = Phase::Joined;
                self.reached[key] = now;
                let think = self.random.between(SECOND / 4, 3 * SECOND);
                self.client_waits(reply.client, think);
            }
            ReplyKind::At(host) if client.hops < HOPS_MAX => {
                client.hops += 1;
                client.host = host;
                self.client_asks(reply.client, Phase::Joining, RequestKind::Join);
            }
            ReplyKind::At(_) | ReplyKind::Busy | ReplyKind::Gone => {
                client.phase = Phase::Idle;
                let wait = if reply.kind == ReplyKind::Gone { 0 } else { AGAIN };
                self.client_waits(reply.client, wait);
            }
        }
    }

    /// Lets all clients join again, each at a host that runs.
    pub(super) fn clients_probe(&mut self) {
        self.is_probed = true;
        for index in 0..self.clients.len() as u8 {
            self.client_joins(index);
        }
    }

    fn client_joins(&mut self, index: u8) {
        let hosts = self.hosts.len() as u64;
        let mut host = self.random.below(hosts);
        // Clients know addresses, not which of them answer. In the end, only the cluster counts.
        for _ in 0..if self.is_probed { hosts } else { 1 } {
            if !self.hosts[host as usize].is_up() {
                host = (host + 1) % hosts;
            }
        }
        let client = &mut self.clients[usize::from(index)];
        client.host = host as u8;
        client.hops = 0;
        self.client_asks(index, Phase::Joining, RequestKind::Join);
    }

    fn client_appends(&mut self, index: u8) {
        let key = self.clients[usize::from(index)].key;
        let number = self.laws.sent(self.now, usize::from(key));
        self.client_asks(index, Phase::Appending { number }, RequestKind::Append { number });
    }

    fn client_asks(&mut self, index: u8, phase: Phase, kind: RequestKind) {
        self.client_waits(index, PATIENCE);
        let client = &mut self.clients[usize::from(index)];
        client.phase = phase;
        let request = Request { client: index, number: client.request, key: client.key, kind };
        let host = client.host;
        self.client_sends(host, request);
    }

    /// Counts a new request, and wakes the client after that time if nothing comes.
    fn client_waits(&mut self, index: u8, time: u64) {
        let client = &mut self.clients[usize::from(index)];
        client.request += 1;
        let number = client.request;
        self.schedule(self.now + time, Scheduled::Client { client: index, number });
    }
}
