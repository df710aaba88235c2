//! Measures one case.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::case::{Case, Scenario, Which};
use super::copies::{Checked, check};
use super::room::Room;
use crate::harness::machine::thread_cpu;
use crate::harness::report::Record;
use crate::harness::stats::Samples;
use crate::workloads::Workload;
use crate::workloads::colyseus::Colyseus;
use crate::workloads::entities::{Entities, Open, Windowed};
use crate::workloads::swift::Swift;

/// Iterations at the start of each sequence that are not measured.
pub(crate) const WARM_UP: u64 = 5;

/// Measured iterations after them.
pub(crate) const MEASURED: u64 = 100;

/// The result of a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    sync_us: Vec<f64>,
    mutate_us: Vec<f64>,
    mutate_plain_us: Vec<f64>,
    snapshot_us: Vec<f64>,
    cpu: Duration,
    cpu_syncs: u64,
    bytes: u64,
    messages: u64,
    compared: u64,
    pub(super) failure: Option<String>,
}

/// Measures a case over `sequences` restarts: first each sync by wall-clock time, then by CPU time.
pub(super) fn measure(case: &Case, sequences: u32, corrupt_one: bool) -> Outcome {
    let all_players = case.scenario == Scenario::B;
    let sequences = case.which.sequences(sequences);
    match case.which {
        Which::Swift => {
            let workload = Swift::new(case.players, case.cards, all_players, case.hands);
            measure_workload(&workload, case, sequences, corrupt_one)
        }
        Which::Colyseus => {
            let workload = Colyseus::new(case.players, 0, case.cards, all_players, case.hands);
            measure_workload(&workload, case, sequences, corrupt_one)
        }
        Which::Entities => {
            let workload = entities::<Open>(case);
            measure_workload(&workload, case, sequences, corrupt_one)
        }
        Which::Windows => {
            let workload = entities::<Windowed>(case);
            measure_workload(&workload, case, sequences, corrupt_one)
        }
    }
}

fn entities<S>(case: &Case) -> Entities<S> {
    Entities::new(case.players, case.entities, case.changed, case.scattered, case.moving)
}

fn measure_workload<W: Workload>(
    workload: &W,
    case: &Case,
    sequences: u32,
    corrupt_one: bool,
) -> Outcome {
    let mut outcome = Outcome::default();
    for sequence in 0..sequences {
        let mut room = Room::new(workload, case.format, case.tracking);
        outcome.time(workload, &mut room);
        if corrupt_one && sequence == 0 {
            room.sent.corrupt_one();
        }
        outcome.check(workload, case, &room);
    }
    let at_once = case.which.rooms_a_reading();
    for _ in 0..(sequences as usize).div_ceil(at_once) {
        let mut rooms: Vec<_> =
            (0..at_once).map(|_| Room::new(workload, case.format, case.tracking)).collect();
        outcome.time_cpu(&mut rooms);
        for room in &rooms {
            outcome.check(workload, case, room);
        }
    }
    outcome
}

impl Outcome {
    /// One sequence, each sync by wall-clock time.
    ///
    /// Messages are moved aside between syncs and checked after the sequence. So syncs follow each
    /// other as in a server, rather than after a check that has emptied the caches.
    fn time<W: Workload>(&mut self, workload: &W, room: &mut Room<'_, W>) {
        let mut model = workload.model();
        for iteration in 0..WARM_UP + MEASURED {
            let begin = Instant::now();
            room.step(iteration);
            let stepped = Instant::now();
            workload.step_model(black_box(&mut model), iteration);
            let plain = Instant::now();
            room.sync();
            let synced = plain.elapsed();
            let bytes = room.keep();
            if iteration >= WARM_UP {
                self.mutate_us.push(micros(stepped - begin));
                self.mutate_plain_us.push(micros(plain - stepped));
                self.sync_us.push(micros(synced));
                self.bytes += bytes as u64;
            }
        }
        let begin = Instant::now();
        room.snapshots();
        self.snapshot_us.push(micros(begin.elapsed()));
        room.keep();
    }

    /// One sequence of several rooms in turn, measured by CPU time.
    fn time_cpu<W: Workload>(&mut self, rooms: &mut [Room<'_, W>]) {
        for iteration in 0..WARM_UP + MEASURED {
            for room in &mut *rooms {
                room.step(iteration);
            }
            let begin = thread_cpu();
            for room in &mut *rooms {
                room.sync();
            }
            let spent = thread_cpu() - begin;
            for room in &mut *rooms {
                room.keep();
            }
            if iteration >= WARM_UP {
                self.cpu += spent;
                self.cpu_syncs += rooms.len() as u64;
            }
        }
    }

    fn check<W: Workload>(&mut self, workload: &W, case: &Case, room: &Room<'_, W>) {
        let Checked { compared, failure } = check(workload, room, case.format, WARM_UP + MEASURED);
        self.messages += room.sent.messages();
        self.compared += compared;
        if self.failure.is_none() {
            self.failure = failure;
        }
    }

    /// Returns whether everything counted was compared and equal.
    pub(super) fn verified(&self) -> bool {
        self.failure.is_none() && self.messages > 0 && self.compared == self.messages
    }

    pub(super) fn report(&self, case: &Case) -> Record {
        let sync = Samples::new(self.sync_us.clone());
        let record = match case.which {
            Which::Windows => {
                let pairs = case.players * u64::from(case.changed);
                case.record().measured("ns_per_player_and_change", 1e3 * sync.mean() / pairs as f64)
            }
            _ => case.record(),
        };
        record
            .measured("sync_us_mean", sync.mean())
            .measured("sync_us_p50", sync.percentile(50.0))
            .measured("sync_us_p99", sync.percentile(99.0))
            .measured("cpu_us_mean", micros(self.cpu) / self.cpu_syncs.max(1) as f64)
            .measured("mutate_us_mean", Samples::new(self.mutate_us.clone()).mean())
            .measured("mutate_plain_us_mean", Samples::new(self.mutate_plain_us.clone()).mean())
            .measured("bytes_per_sync", self.bytes as f64 / self.sync_us.len().max(1) as f64)
            .measured("snapshot_us", Samples::new(self.snapshot_us.clone()).mean())
            .with("syncs", self.sync_us.len())
            .with("messages", self.messages)
            .with("compared", self.compared)
            .with("verified", self.verified())
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
