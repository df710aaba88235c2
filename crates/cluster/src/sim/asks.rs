//! Requests and messages of hosts to each other over the links of their nodes: plain requests,
//! numbered messages, and rooms without a key that one host places at another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::effect::{AskError, NodeId};
use crate::event::Event;
use crate::record::Slot;
use crate::sim::Mutation;
use crate::sim::faults::SECOND;
use crate::sim::host::{Input, Process};
use crate::sim::laws::Law;
use crate::sim::network::Way;
use crate::sim::world::{Scheduled, World};

/// The longest time that a request may take.
const WITHIN_MAX: u64 = 4 * SECOND;
/// The time after which the placing of a room that was given up is known to both nodes, once
/// nothing fails: a dead node is known to be dead by then.
const SETTLED: u64 = 36 * SECOND;

/// A request of a run, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskLog {
    host: u8,
    life: u32,
    to: Slot,
    sent_at: u64,
    is_carried_out: bool,
    /// Its host no longer waits for the room that it would place.
    given_up_at: Option<u64>,
}

/// The requests and messages of a process.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// Requests without an answer.
    asks: BTreeSet<u32>,
    /// Answers that are given with the next turn.
    owed: Vec<(Slot, u64, Vec<u8>)>,
    /// The last number sent to each slot.
    told: BTreeMap<Slot, u32>,
    /// The last number of each node, and whether the link was reset since.
    heard: BTreeMap<NodeId, (u32, bool)>,
    /// Rooms without a key that others have placed here.
    placed: BTreeMap<u32, Placed>,
}

impl Talk {
    pub(super) fn has_placed(&self, number: u32) -> bool {
        self.placed.contains_key(&number)
    }
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    by: NodeId,
    is_entered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Place,
    Number,
    Withdraw,
}

const KINDS: [Kind; 4] = [Kind::Plain, Kind::Place, Kind::Number, Kind::Withdraw];

fn body(kind: Kind, number: u32) -> Vec<u8> {
    let mut body = vec![kind as u8];
    body.extend(number.to_le_bytes());
    body
}

fn read(body: &[u8]) -> (Kind, u32) {
    let number = body[1..].try_into().expect("four bytes after the kind");
    (KINDS[usize::from(body[0])], u32::from_le_bytes(number))
}

impl World {
    /// Lets a host ask or tell another one something, now and then.
    pub(super) fn talk(&mut self, host: u8, process: &mut Process) {
        for (to, number, body) in std::mem::take(&mut process.talk.owed) {
            self.node_event(host, process, Event::Answer { to, number, body });
        }
        if !self.random.one_in(16) {
            return;
        }
        let peers: Vec<Slot> = process.node.peers().map(|peer| peer.slot).collect();
        if peers.is_empty() {
            return;
        }
        let to = peers[self.random.below(peers.len() as u64) as usize];
        match self.random.below(6) {
            0 => {
                for _ in 0..1 + self.random.below(3) {
                    let told = process.talk.told.entry(to).or_default();
                    *told += 1;
                    let body = body(Kind::Number, *told);
                    self.node_event(host, process, Event::Tell { to, body });
                }
            }
            1..4 => self.ask(host, process, to, Kind::Plain),
            _ => self.ask(host, process, to, Kind::Place),
        }
    }

    fn ask(&mut self, host: u8, process: &mut Process, to: Slot, kind: Kind) {
        let number = self.asks.len() as u32;
        let life = self.hosts[usize::from(host)].life;
        let (sent_at, is_carried_out, given_up_at) = (self.now, false, None);
        self.asks.push(AskLog { host, life, to, sent_at, is_carried_out, given_up_at });
        process.talk.asks.insert(number);
        let within = Duration::from_micros(self.random.between(SECOND / 5, WITHIN_MAX));
        let (ask, body) = (number.into(), body(kind, number));
        self.node_event(host, process, Event::Ask { to, ask, within, body });
    }

    pub(super) fn asked(
        &mut self,
        host: u8,
        process: &mut Process,
        from: NodeId,
        number: u64,
        body: Vec<u8>,
    ) {
        let (kind, ask) = read(&body);
        if std::mem::replace(&mut self.asks[ask as usize].is_carried_out, true) {
            let text = format!("request {ask} is carried out twice");
            self.laws.break_law(Law::Asks, self.now, text);
        }
        if kind == Kind::Place {
            process.talk.placed.insert(ask, Placed { by: from, is_entered: false });
        }
        match self.random.below(8) {
            0 => {}
            1..3 => process.talk.owed.push((from.slot, number, body)),
            _ => self.node_event(host, process, Event::Answer { to: from.slot, number, body }),
        }
    }

    pub(super) fn answered(
        &mut self,
        host: u8,
        process: &mut Process,
        ask: u64,
        result: Result<Vec<u8>, AskError>,
    ) {
        let number = ask as u32;
        if !process.talk.asks.remove(&number) {
            let text = format!("request {ask} is answered twice");
            self.laws.break_law(Law::Asks, self.now, text);
        }
        self.counts.asked += 1;
        match result {
            Ok(body) => {
                let (kind, answered) = read(&body);
                if answered != number || !self.asks[number as usize].is_carried_out {
                    let text = format!("request {ask} has the answer to {answered}");
                    self.laws.break_law(Law::Asks, self.now, text);
                }
                self.counts.answered += 1;
                if kind == Kind::Place {
                    self.enter(number);
                }
            }
            Err(error) => {
                let log = &mut self.asks[number as usize];
                log.given_up_at = Some(self.now);
                if error == AskError::Timeout {
                    let (to, body) = (log.to, body(Kind::Withdraw, number));
                    self.node_event(host, process, Event::Tell { to, body });
                }
            }
        }
    }

    pub(super) fn told(&mut self, process: &mut Process, from: NodeId, body: &[u8]) {
        let (kind, number) = read(body);
        if kind == Kind::Withdraw {
            process.talk.placed.retain(|&ask, placed| ask != number || placed.is_entered);
            return;
        }
        let (last, is_reset) =
            process.talk.heard.insert(from, (number, false)).unwrap_or((0, true));
        if number <= last || number != last + 1 && !is_reset {
            let text = format!("{from:?} tells {number} after {last}");
            self.laws.break_law(Law::InOrder, self.now, text);
        }
        self.counts.told += 1;
    }

    pub(super) fn link_reset(&mut self, process: &mut Process, with: NodeId) {
        self.counts.resets += 1;
        if let Some((_, is_reset)) = process.talk.heard.get_mut(&with) {
            *is_reset = true;
        }
        if self.mutation != Some(Mutation::KeepPlaced) {
            process.talk.placed.retain(|_, placed| placed.by != with || placed.is_entered);
        }
    }

    /// Lets a client enter a room that was placed here.
    pub(super) fn entered(&mut self, process: &mut Process, number: u32) {
        if let Some(placed) = process.talk.placed.get_mut(&number) {
            placed.is_entered = true;
            self.counts.entered += 1;
            if self.asks[number as usize].given_up_at.is_some() {
                let text = format!("a client enters room {number}, which was given up");
                self.laws.break_law(Law::NoTwin, self.now, text);
            }
        }
    }

    /// Checks at the end that each request has its answer, and that no room is left that was given
    /// up.
    pub(super) fn finish_asks(&mut self, talk: &Talk) {
        let settled = self.now.saturating_sub(SETTLED);
        for &number in &talk.asks {
            if self.asks[number as usize].sent_at + 2 * WITHIN_MAX < self.now {
                let text = format!("request {number} was never answered");
                self.laws.break_law(Law::Asks, self.now, text);
            }
        }
        for (&number, placed) in &talk.placed {
            let log = self.asks[number as usize];
            let is_gone = self.hosts[usize::from(log.host)].life != log.life;
            let is_given_up = log.given_up_at.is_some_and(|at| at < settled) || is_gone;
            if is_given_up && !placed.is_entered {
                let text = format!("room {number} is left, which was given up");
                self.laws.break_law(Law::NoTwin, self.now, text);
            }
        }
    }

    /// Sends a client to a room that was placed.
    fn enter(&mut self, number: u32) {
        for host in 0..self.hosts.len() as u8 {
            let life = self.hosts[usize::from(host)].life;
            let talk = self.hosts[usize::from(host)].talk();
            if talk.is_some_and(|talk| talk.has_placed(number))
                && let Some(at) = self.arrival(host, Way::FromClients)
            {
                let input = Input::Enter(number);
                self.schedule(at, Scheduled::Host { host, life, input });
            }
        }
    }
}
