//! The exchange of hosts with the engine, the store and clients.

use crate::effect::NodeId;
use crate::engine::{Answer, Command, EngineError, EngineEvent, Tag};
use crate::record::{ClaimRecord, NodeRecord, NodeState};
use crate::sim::client::{Reply, Request};
use crate::sim::faults::SECOND;
use crate::sim::host::Input;
use crate::sim::laws::Law;
use crate::sim::network::Way;
use crate::sim::saves::{SaveAnswer, SaveOutcome, SaveRequest};
use crate::sim::world::{Outage, Scheduled, World};
use crate::sim::{LEASE, Mutation};

/// The time after which the outcome of a command, or of a save, is unknown.
const DEADLINE: u64 = 3 * SECOND;
/// One of that many messages between nodes is lost.
const MESSAGES_LOST: u64 = 200;
/// The shortest outage of the engine that any observer notices.
const OUTAGE_NOTICED: u64 = 6 * SECOND;

impl World {
    /// Sends the command of a host to the engine.
    pub(super) fn engine_sends(&mut self, host: u8, life: u32, mut command: Command) {
        let now = self.now;
        if let Command::Send { to: slot, incarnation, bytes } = command {
            if let Some(at) = self.arrival(host, Way::ToNodes) {
                let to = NodeId { slot, incarnation };
                self.schedule(at, Scheduled::Message { to, bytes });
            }
            return;
        }
        let arrival = self.arrival(host, Way::ToEngine);
        let mut deadline = now + DEADLINE;
        if arrival.is_none_or(|at| at >= deadline) {
            if let Some(tag) = tag_of(&command) {
                self.engine_answers(host, life, deadline, tag, Err(EngineError::Unknown));
            }
            deadline = 0;
        }
        if self.mutation == Some(Mutation::ClaimForOthers) {
            self.claim_for_others(host, &mut command);
        }
        if let Some(at) = arrival {
            let event = Scheduled::Engine { host, life, command, sent_at: now, deadline };
            self.schedule(at, event);
        }
    }

    pub(super) fn engine_hears(
        &mut self,
        host: u8,
        life: u32,
        command: Command,
        sent_at: u64,
        deadline: u64,
    ) {
        let is_away = self.now < self.engine_away.ends;
        let Some(tag) = tag_of(&command) else {
            if !is_away && let Command::Broadcast { bytes } = command {
                self.broadcast(host, &bytes);
            }
            return;
        };
        // While it is away, a write may still take effect.
        let is_lost = is_away && !self.random.one_in(4) || sent_at < self.engine_away.lost_at;
        let result = match is_lost {
            true => Err(EngineError::Unknown),
            false => {
                self.check_death(host, &command, sent_at);
                let is_for_others = self.is_for_others(host, &command);
                let result = self.records.apply(command);
                if is_for_others { result.and(Err(EngineError::Conflict)) } else { result }
            }
        };
        if deadline == 0 {
            return;
        }
        let arrival = self.arrival(host, Way::FromEngine).filter(|&at| !is_away && at < deadline);
        match arrival {
            Some(at) => self.engine_answers(host, life, at, tag, result),
            None => self.engine_answers(host, life, deadline, tag, Err(EngineError::Unknown)),
        }
    }

    fn engine_answers(
        &mut self,
        host: u8,
        life: u32,
        at: u64,
        tag: Tag,
        result: Result<Answer, EngineError>,
    ) {
        let input = Input::Engine(EngineEvent::Answered { tag, result });
        self.schedule(at, Scheduled::Host { host, life, input });
    }

    /// Passes on the message of a node to another one. The engine does not keep it.
    pub(super) fn message(&mut self, to: NodeId, bytes: Vec<u8>) {
        if self.now < self.engine_away.ends || self.random.one_in(MESSAGES_LOST) {
            return;
        }
        let Some(host) = self.hosts.iter().position(|host| host.listens(to)) else { return };
        let (host, life) = (host as u8, self.hosts[host].life);
        if let Some(at) = self.arrival(host, Way::FromNodes) {
            let input = Input::Engine(EngineEvent::Delivered { bytes });
            self.schedule(at, Scheduled::Host { host, life, input });
        }
    }

    fn broadcast(&mut self, from: u8, bytes: &[u8]) {
        for host in 0..self.hosts.len() as u8 {
            let life = self.hosts[usize::from(host)].life;
            if host == from || self.random.one_in(64) {
                continue;
            }
            if let Some(at) = self.arrival(host, Way::FromEngine) {
                let input = Input::Engine(EngineEvent::Received { bytes: bytes.to_vec() });
                self.schedule(at, Scheduled::Host { host, life, input });
            }
        }
    }

    /// Checks that an outage of the engine makes no node declare another one dead, unless its clock
    /// did not show the outage.
    fn check_death(&mut self, host: u8, command: &Command, sent_at: u64) {
        let Command::Write { key, value, .. } = command else { return };
        let Outage { began, ends, .. } = self.engine_away;
        let is_after = sent_at >= ends && sent_at < ends + LEASE * 4 / 5;
        let is_noticed =
            ends >= began + OUTAGE_NOTICED && !self.hosts[usize::from(host)].errs(began);
        if !is_after || !is_noticed || !key.starts_with("n.") {
            return;
        }
        let is_death = |record: NodeRecord| {
            // A node that leaves writes its own.
            record.state == NodeState::Dead && !self.leaving.contains(&record.incarnation)
        };
        if NodeRecord::decode(value).is_ok_and(is_death) {
            let text = format!("{key} is declared dead after an outage of the engine");
            self.laws.break_law(Law::NoDeathByOutage, self.now, text);
        }
    }

    /// Writes a claim for another host than the one that asks: a mutation.
    fn claim_for_others(&mut self, host: u8, command: &mut Command) {
        let Command::Write { key, value, .. } = command else { return };
        if !key.starts_with("r.") || self.random.one_in(4) {
            return;
        }
        let Ok(mut claim) = ClaimRecord::decode(value) else { return };
        let other = (usize::from(host) + 1) % self.hosts.len();
        let Some((slot, incarnation)) = self.hosts[other].identity() else { return };
        (claim.slot, claim.incarnation) = (slot, incarnation);
        *value = claim.encode();
    }

    fn is_for_others(&self, host: u8, command: &Command) -> bool {
        if self.mutation != Some(Mutation::ClaimForOthers) {
            return false;
        }
        let Command::Write { key, value, .. } = command else { return false };
        let own = self.hosts[usize::from(host)].identity();
        key.starts_with("r.")
            && ClaimRecord::decode(value)
                .is_ok_and(|claim| own.is_some_and(|(slot, _)| slot != claim.slot))
    }

    /// Sends the request of a host to the store.
    pub(super) fn saves_send(&mut self, host: u8, life: u32, request: SaveRequest) {
        let arrival = self.arrival(host, Way::ToStore);
        let mut deadline = self.now + DEADLINE;
        if arrival.is_none_or(|at| at >= deadline) {
            self.saves_answer(host, life, deadline, request.failed());
            deadline = 0;
        }
        if let Some(at) = arrival {
            self.schedule(at, Scheduled::Saves { host, life, request, deadline });
        }
    }

    pub(super) fn saves_hear(&mut self, host: u8, life: u32, request: SaveRequest, deadline: u64) {
        let is_away = self.now < self.saves.away_until;
        let answer = match request {
            _ if is_away => request.failed(),
            SaveRequest::Open { key, attempt } => {
                let save = Some(self.saves.open(key));
                SaveAnswer::Opened { key, attempt, save }
            }
            SaveRequest::Save { key, fence, state } => {
                let before = self.saves.save(key, fence, state);
                if let Some(before) = before {
                    self.laws.saved(self.now, usize::from(key), before, state);
                    self.counts.saved += 1;
                } else {
                    self.counts.fenced += 1;
                }
                let outcome =
                    if before.is_some() { SaveOutcome::Saved } else { SaveOutcome::Fenced };
                SaveAnswer::Saved { key, fence, state, outcome }
            }
        };
        if deadline == 0 {
            return;
        }
        let arrival = self.arrival(host, Way::FromStore).filter(|&at| !is_away && at < deadline);
        match arrival {
            Some(at) => self.saves_answer(host, life, at, answer),
            None => self.saves_answer(host, life, deadline, request.failed()),
        }
    }

    fn saves_answer(&mut self, host: u8, life: u32, at: u64, answer: SaveAnswer) {
        self.schedule(at, Scheduled::Host { host, life, input: Input::Saves(answer) });
    }

    pub(super) fn client_sends(&mut self, host: u8, request: Request) {
        let life = self.hosts[usize::from(host)].life;
        if let Some(at) = self.arrival(host, Way::FromClients) {
            self.schedule(at, Scheduled::Host { host, life, input: Input::Client(request) });
        }
    }

    pub(super) fn client_gets(&mut self, host: u8, reply: Reply) {
        if let Some(at) = self.arrival(host, Way::ToClients) {
            self.schedule(at, Scheduled::Reply(reply));
        }
    }
}

fn tag_of(command: &Command) -> Option<Tag> {
    match command {
        Command::Read { tag, .. }
        | Command::List { tag, .. }
        | Command::Write { tag, .. }
        | Command::Purge { tag, .. } => Some(*tag),
        Command::Broadcast { .. } | Command::Send { .. } | Command::Listen { .. } => None,
    }
}
