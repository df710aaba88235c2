//! The bytes and the CPU time of a room by field, as its players are sent them.

use std::io;

use playfield_load::{Profiled, Profiler};
use playfield_server::Pace;
use playfield_state::Beside;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::capacity::{Cell, Plan, check_delayed};
use crate::exchange::Exchange;
use crate::field_time::{FieldCpu, SyncTime, median_run};
use crate::machine::Machine;
use crate::measurer::EVICT_BYTES;
use crate::noise::error_of;
use crate::run::{Besides, Case, Measured, Run, run, run_with};

/// The fastest clock of the node: bytes do not depend on it, and CPU time little.
const SPEED: u32 = 8;
/// A room that misses more of its syncs is sent otherwise: there is more in each patch.
const MISSED_MAX: f64 = 0.1;
/// The version of results in files.
pub(crate) const VERSION: u64 = 4;
/// The part of the measurement for which the node counts messages and events.
const PROFILED_PART: f64 = 0.8;
/// Runs of the room, each with other random values, for the noise between runs.
const RUNS: u64 = 5;
/// The names of [`Beside::ALL`].
pub const BESIDE: [&str; Beside::ALL.len()] = ["syncs", "players", "copies", "checks"];

/// The bytes and the CPU time of a room by field.
#[derive(Clone, Debug)]
pub struct RoomProfiled {
    /// The room that was measured.
    pub plan: Plan,
    /// The counts of some of its players.
    pub profiled: Profiled,
    /// The CPU time of each field, in the order of `profiled`.
    pub cpu: Vec<FieldCpu>,
    /// The CPU time of a sync.
    pub sync: SyncTime,
    /// Finding changes and making patches at a sync in a run without the probe, in nanoseconds.
    pub unprobed_ns: f64,
    /// Messages of players and events.
    pub exchange: Exchange,
    /// The run.
    pub run: Run,
    /// The share of a core that the room takes, where the core serves many.
    pub core: f64,
    /// The machine.
    pub machine: Machine,
    /// Its speed and its noise.
    pub calibration: Calibration,
}

/// Runs a room, and counts what players are sent.
///
/// # Errors
/// If the room can't be run, or sends nothing, players are lost or removed, or something else
/// disturbs the runs.
pub fn profile(plan: &Plan) -> io::Result<RoomProfiled> {
    let machine = Machine::describe();
    let (plan, _) = &plan.settled()?;
    let calibration = Calibration::measure(&machine);
    let (case, profiler, first) = first_run(plan)?;
    let mut times = vec![first.times.of_run(&first.run)];
    let mut delayed = vec![first.run.node_delayed];
    for seed in 2..=RUNS {
        let besides = Besides { is_probed: true, ..Besides::default() };
        let next = run_with(&Case { seed, ..case.clone() }, besides)?;
        check(&next.run)?;
        times.push(next.times.of_run(&next.run));
        delayed.push(next.run.node_delayed);
    }
    check_delayed(delayed)?;
    let profiled = profiler.profiled().filter(|profiled| profiled.patches > 0);
    let nothing = || io::Error::other("the room's players were sent no patch: nothing has changed");
    let profiled = profiled.ok_or_else(nothing)?;
    let unknown = || io::Error::other("the node has measured no syncs: its program is another one");
    let (sync, cpu) = median_run(times.into_iter().flatten().collect()).ok_or_else(unknown)?;
    let alone = run(&Case { profiler: None, ..case })?;
    check(&alone)?;
    let unprobed_s = alone.part("changes") + alone.part("patches");
    Ok(RoomProfiled {
        plan: plan.clone(),
        profiled,
        cpu,
        sync,
        unprobed_ns: unprobed_s * 1e9 / alone.syncs.max(1) as f64,
        exchange: first.exchange,
        run: first.run,
        core: Cell::of(&alone, plan.hz, 1.0).core,
        machine,
        calibration: calibration.now(),
    })
}

/// Runs a room as fast as it misses few syncs: the fastest clock is too fast for a large room.
fn first_run(plan: &Plan) -> io::Result<(Case, Profiler, Measured)> {
    let mut speed = SPEED;
    loop {
        let profiler = Profiler::default();
        // With cold caches, as where other rooms run.
        let pace = Pace { speed, evict_bytes: EVICT_BYTES };
        let case = Case { pace, profiler: Some(profiler.clone()), ..plan.case(1, 1) };
        let lasts = Some(case.time.mul_f64(PROFILED_PART));
        let first =
            run_with(&case, Besides { profile: lasts, is_probed: true, ..Besides::default() })?;
        if speed == 1 || missed(&first.run) <= MISSED_MAX {
            check(&first.run)?;
            return Ok((case, profiler, first));
        }
        speed /= 2;
    }
}

/// Refuses a run whose figures mean nothing.
fn check(run: &Run) -> io::Result<()> {
    match too_noisy(missed(run)) {
        Some(text) => Err(io::Error::other(text)),
        None => Ok(()),
    }
}

fn too_noisy(missed: f64) -> Option<String> {
    (missed > MISSED_MAX).then(|| {
        format!(
            "too noisy to say: the room missed {:.0} % of its syncs; stop what else runs, or \
             measure fewer players, and measure again",
            missed * 100.0
        )
    })
}

/// The share of syncs that a run has missed.
fn missed(run: &Run) -> f64 {
    run.syncs_missed as f64 / (run.syncs + run.syncs_missed).max(1) as f64
}

impl RoomProfiled {
    /// The bytes of a number of patches, in a patch.
    #[must_use]
    pub fn per_patch(&self, bytes: u64) -> f64 {
        bytes as f64 / self.profiled.patches.max(1) as f64
    }

    /// Players that are sent a patch at a sync.
    #[must_use]
    pub fn players_per_sync(&self) -> f64 {
        self.run.patches as f64 / self.run.syncs.max(1) as f64
    }

    /// Decoding and handling messages at a sync, in nanoseconds by the clock: also while something
    /// else ran.
    #[must_use]
    pub fn messages_ns(&self) -> f64 {
        let sum = self.exchange.messages.iter().map(|of| of.ns).sum::<u64>();
        sum as f64 / self.exchange.syncs.max(1) as f64
    }

    /// All of it, for programs, and for [`changes`](Self::changes) later.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = self.profiled.fields.iter().zip(&self.cpu).enumerate();
        let fields =
            fields.filter(|(_, (field, cpu))| field.patches.bytes() > 0 || cpu.time.all() > 0.0);
        let fields = fields.map(|(at, (field, cpu))| {
            let savings = field.savings.iter().map(|saving| {
                json!({ "to": saving.to, "bytes_per_patch": self.per_patch_signed(saving.patches) })
            });
            json!({
                "path": field.path, "type": field.of,
                "bytes_per_patch": self.per_patch(field.patches.bytes()),
                "bytes_error": error_of(&self.profiled.runs, at),
                "own_bytes_per_patch": self.per_patch(field.patches.own),
                "values_per_patch": self.per_patch(field.patches.writes),
                "cpu_ns_per_sync": cpu.time.all(),
                "cpu_ns_error": cpu.error,
                "cpu_ns_compare": cpu.time.compare,
                "cpu_ns_shared": cpu.time.shared,
                "cpu_ns_own": cpu.time.own,
                "savings": savings.collect::<Vec<_>>(),
            })
        });
        let SyncTime { changes, patches, receive, beside, .. } = &self.sync;
        let mut cpu = json!({
            "changes": changes, "patches": patches, "receive": receive, "fields": self.sync.sum(),
            "rest": self.sync.rest(), "unprobed": self.unprobed_ns,
        });
        for (name, ns) in BESIDE.iter().zip(beside) {
            cpu[*name] = json!(ns);
        }
        json!({
            "profile": VERSION, "room": self.plan.room_type, "plan": self.plan.to_json(),
            "seconds": self.plan.time.as_secs_f64(), "players": self.run.players,
            "patches": self.profiled.patches,
            "bytes_per_patch": self.per_patch(self.profiled.bytes.bytes()),
            "patches_per_player_s": self.run.per_player(self.run.patches),
            "bytes_out_per_player_s": self.run.per_player(self.run.bytes_out),
            "core": self.core,
            "cpu_ns_per_sync": cpu, "messages_ns_per_sync": self.messages_ns(),
            "fields": fields.collect::<Vec<_>>(),
            "messages": self.exchange.messages_json(self.run.players),
            "events": self.exchange.events_json(self.run.players),
            "machine": self.machine.to_json(&self.calibration),
            "warnings": self.calibration.trouble().into_iter().collect::<Vec<_>>(),
        })
    }

    /// A saving in a patch; negative if it costs more.
    #[must_use]
    pub fn per_patch_signed(&self, bytes: i64) -> f64 {
        bytes as f64 / self.profiled.patches.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{check_delayed, too_noisy};

    #[test]
    fn a_run_with_missed_syncs_is_refused_with_the_reason() {
        assert_eq!(too_noisy(0.1), None);
        let text = too_noisy(0.25).unwrap();
        assert!(text.starts_with("too noisy to say: the room missed 25 % of its syncs"), "{text}");
    }

    #[test]
    fn runs_that_waited_for_their_core_are_refused() {
        assert!(check_delayed(vec![0.01, 0.9, 0.02]).is_ok(), "the median counts");
        let error = check_delayed(vec![0.3, 0.4, 0.02]).unwrap_err().to_string();
        assert!(
            error.contains("too noisy to say") && error.contains("30 % of the time"),
            "{error}"
        );
    }
}
