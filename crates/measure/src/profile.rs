//! The bytes and the CPU time of a room by field, as its players are sent them.

use std::io;

use playfield_load::{Profiled, Profiler};
use playfield_server::Pace;
use playfield_state::Beside;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::capacity::{Cell, EVICT_BYTES, Plan};
use crate::exchange::Exchange;
use crate::field_time::{FieldCpu, SyncTime, median_run};
use crate::machine::Machine;
use crate::noise::error_of;
use crate::run::{Besides, Case, Run, run, run_with};

/// The speed of the node's clock: bytes do not depend on it, and CPU time little.
const SPEED: u32 = 8;
/// The version of results in files.
pub(crate) const VERSION: u64 = 3;
/// The part of the measurement for which the node counts messages and events.
const PROFILED_PART: f64 = 0.8;
/// Runs of the room, each with other random values, for the noise between runs.
const RUNS: u64 = 5;
/// The names of [`Beside::ALL`].
pub const BESIDE: [&str; Beside::ALL.len()] = ["syncs", "players", "copies", "checks"];

/// The bytes and the CPU time of a room by field.
#[derive(Clone, Debug)]
pub struct RoomProfiled {
    /// The type of the room.
    pub room_type: String,
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
/// If the room can't be run, or sends nothing.
pub fn profile(plan: &Plan) -> io::Result<RoomProfiled> {
    let machine = Machine::describe();
    let (plan, _) = &plan.settled()?;
    let calibration = Calibration::measure(&machine);
    let profiler = Profiler::default();
    // With cold caches, as where other rooms run.
    let pace = Pace { speed: SPEED, evict_bytes: EVICT_BYTES };
    let case = Case { pace, profiler: Some(profiler.clone()), ..plan.case(1, 1) };
    let lasts = Some(case.time.mul_f64(PROFILED_PART));
    let first = run_with(&case, Besides { profile: lasts, is_probed: true, ..Besides::default() })?;
    let mut times = vec![first.times.of_run(&first.run)];
    for seed in 2..=RUNS {
        let besides = Besides { is_probed: true, ..Besides::default() };
        let next = run_with(&Case { seed, ..case.clone() }, besides)?;
        times.push(next.times.of_run(&next.run));
    }
    let profiled = profiler.profiled().filter(|profiled| profiled.patches > 0);
    let nothing = || io::Error::other("the room's players were sent no patch: nothing has changed");
    let profiled = profiled.ok_or_else(nothing)?;
    let unknown = || io::Error::other("the node has measured no syncs: its program is another one");
    let (sync, cpu) = median_run(times.into_iter().flatten().collect()).ok_or_else(unknown)?;
    let alone = run(&Case { profiler: None, ..case })?;
    let unprobed_s = alone.part("changes") + alone.part("patches");
    Ok(RoomProfiled {
        room_type: plan.room_type.clone(),
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

    /// Decoding and handling messages at a sync, in nanoseconds.
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
            "messages": self.messages_ns(), "rest": self.sync.rest(), "unprobed": self.unprobed_ns,
        });
        for (name, ns) in BESIDE.iter().zip(beside) {
            cpu[*name] = json!(ns);
        }
        json!({
            "profile": VERSION, "room": self.room_type, "players": self.run.players,
            "patches": self.profiled.patches,
            "bytes_per_patch": self.per_patch(self.profiled.bytes.bytes()),
            "patches_per_player_s": self.run.per_player(self.run.patches),
            "bytes_out_per_player_s": self.run.per_player(self.run.bytes_out),
            "core": self.core,
            "cpu_ns_per_sync": cpu,
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
