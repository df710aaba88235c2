//! The size of a run, and the command lines of its processes.

use std::time::Duration;

use super::driver::Peer;
use super::table::workload;
use super::{Role, Transport};
use crate::Record;
use crate::workloads::colyseus::Colyseus;

/// One size.
#[derive(Clone, Debug)]
pub struct Case {
    /// The number of rooms.
    pub rooms: u32,
    /// The number of players per room, from 1 to [`PLAYERS_MAX`](super::PLAYERS_MAX).
    pub players: u64,
    /// The duration of the measurement, in seconds.
    pub seconds: u32,
    /// The duration of the warm-up before it.
    pub warm_up: Duration,
    /// How many inputs each client sends per second; 0 for none.
    pub inputs_hz: u32,
    /// The transport of the messages.
    pub transport: Transport,
    /// Patches and ticks per second.
    pub hz: u32,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            rooms: 100,
            players: 30,
            seconds: 10,
            warm_up: Duration::from_secs(3),
            inputs_hz: 0,
            transport: Transport::WebSocket,
            hz: 20,
        }
    }
}

impl Case {
    /// The number of clients in all rooms.
    pub fn clients(&self) -> usize {
        self.rooms as usize * self.players as usize
    }

    /// The same without TLS, if this is with TLS.
    pub(super) fn plain(&self) -> Option<Self> {
        let transport = self.transport.plain();
        self.transport.is_secure().then(|| Self { transport, ..self.clone() })
    }

    pub(super) fn workload(&self) -> Colyseus {
        workload(self.players)
    }

    /// The command line of a process with a role in this case.
    pub(super) fn arguments(&self, role: Role) -> Vec<String> {
        ["bench", "rooms"]
            .into_iter()
            .map(str::to_owned)
            .chain([
                format!("--role={}", role.name()),
                format!("--rooms={}", self.rooms),
                format!("--players={}", self.players),
                format!("--hz={}", self.hz),
                format!("--seconds={}", self.seconds),
                format!("--warm-up-ms={}", self.warm_up.as_millis()),
                format!("--inputs-hz={}", self.inputs_hz),
                format!("--transport={}", self.transport.name()),
            ])
            .collect()
    }

    /// The command line of the server process.
    pub(super) fn server_arguments(&self, peer: Peer) -> Vec<String> {
        match peer {
            Peer::Playfield => self.arguments(Role::Server),
            Peer::Baseline { bytes } => self.baseline_arguments(Role::BaselineServer, bytes),
        }
    }

    /// The command line of a process with a role in the baseline.
    pub(super) fn baseline_arguments(&self, role: Role, bytes: usize) -> Vec<String> {
        let mut arguments = self.arguments(role);
        arguments.push(format!("--bytes={bytes}"));
        arguments
    }

    /// Starts the record.
    pub(super) fn record(&self) -> Record {
        Record::new()
            .with("suite", "rooms")
            .with("workload", "colyseus")
            .with("transport", self.transport.name())
            .with("players", self.players)
            .with("hz_nominal", self.hz)
            .with("inputs_hz", self.inputs_hz)
            .with("seconds", self.seconds)
    }
}
