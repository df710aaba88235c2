//! The bytes and the CPU time of a room by field, as its players are sent them.

use std::io;

use playfield_load::{Profiled, Profiler};
use playfield_server::Pace;
use playfield_state::StateTime;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::capacity::{Cell, EVICT_BYTES, Plan};
use crate::exchange::Exchange;
use crate::field_time::{FieldCpu, fields_cpu};
use crate::machine::Machine;
use crate::noise::error_of;
use crate::run::{Case, Run, run, run_profiled};

/// The speed of the node's clock: bytes do not depend on it, and CPU time little.
const SPEED: u32 = 8;
/// The version of results in files.
pub(crate) const VERSION: u64 = 2;
/// The part of the measurement for which the node counts messages and events.
const PROFILED_PART: f64 = 0.8;
/// Runs of the room, each with other random values, for the noise between runs.
const RUNS: u64 = 5;
/// Rounds in which the values of fields are timed.
const ROUNDS: usize = 5;

/// The bytes and the CPU time of a room by field.
#[derive(Clone, Debug)]
pub struct RoomProfiled {
    /// The type of the room.
    pub room_type: String,
    /// The counts of some of its players.
    pub profiled: Profiled,
    /// The CPU time of each field, in the order of `profiled`.
    pub cpu: Vec<FieldCpu>,
    /// Copying what all players are sent to one of them, in nanoseconds.
    pub copy_ns: f64,
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

/// The CPU time of a sync, in nanoseconds: as a whole, as the node counts it, and in parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncCpu {
    /// Finding what has changed, as a whole.
    pub changes: f64,
    /// Making all players' patches, as a whole.
    pub patches: f64,
    /// Reading from sockets, decoding and handling all messages, as a whole.
    pub receive: f64,
    /// The sum of all fields.
    pub fields: f64,
    /// Copying to each player what all are sent.
    pub copies: f64,
    /// Decoding and handling messages.
    pub messages: f64,
}

impl SyncCpu {
    /// The part of finding changes and making patches that belongs to no field: the way to each
    /// entry and each player, masks, versions and headers, and what types that are sent as a unit take.
    #[must_use]
    pub fn rest(&self) -> f64 {
        self.changes + self.patches - self.fields - self.copies
    }
}

/// Runs a room, and counts what players are sent.
///
/// # Errors
/// If the room can't be run, or sends nothing.
pub fn profile(plan: &Plan) -> io::Result<RoomProfiled> {
    let machine = Machine::describe();
    let calibration = Calibration::measure(&machine);
    let profiler = Profiler::default();
    let pace = Pace { speed: SPEED, evict_bytes: 0 };
    let case = Case { pace, profiler: Some(profiler.clone()), ..plan.case(1, 1) };
    let (measured, exchange) = run_profiled(&case, Some(case.time.mul_f64(PROFILED_PART)))?;
    for seed in 2..=RUNS {
        run(&Case { seed, ..case.clone() })?;
    }
    let profiled = profiler.profiled().filter(|profiled| profiled.patches > 0);
    let nothing = || io::Error::other("the room's players were sent no patch: nothing has changed");
    let profiled = profiled.ok_or_else(nothing)?;
    let players = measured.patches as f64 / measured.syncs.max(1) as f64;
    let times: Vec<StateTime> = (0..ROUNDS).map_while(|_| profiler.times(plan.players)).collect();
    let (cpu, copy_ns) = fields_cpu(&times, players);
    // With cold caches, as where other rooms run, and without a profile.
    let pace = Pace { evict_bytes: EVICT_BYTES, ..case.pace };
    let alone = run(&Case { pace, profiler: None, ..case })?;
    Ok(RoomProfiled {
        room_type: plan.room_type.clone(),
        profiled,
        cpu,
        copy_ns,
        exchange,
        run: measured,
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

    /// The CPU time of a sync.
    #[must_use]
    pub fn sync_cpu(&self) -> SyncCpu {
        let per_sync = |part: &str| self.run.part(part) * 1e9 / self.run.syncs.max(1) as f64;
        SyncCpu {
            changes: per_sync("changes"),
            patches: per_sync("patches"),
            receive: per_sync("receive"),
            fields: self.cpu.iter().map(|field| field.per_sync).sum(),
            copies: self.copy_ns * self.players_per_sync(),
            messages: self.exchange.messages.iter().map(|of| of.ns).sum::<u64>() as f64
                / self.exchange.syncs.max(1) as f64,
        }
    }

    /// All of it, for programs, and for [`changes`](Self::changes) later.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = self.profiled.fields.iter().zip(&self.cpu).enumerate();
        let fields = fields.filter(|(_, (field, _))| field.patches.bytes() > 0);
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
                "cpu_ns_per_sync": cpu.per_sync,
                "cpu_ns_error": cpu.error,
                "cpu_ns_compare": cpu.time.compare,
                "cpu_ns_shared": cpu.time.shared,
                "cpu_ns_own_per_player": cpu.time.own,
                "savings": savings.collect::<Vec<_>>(),
            })
        });
        let SyncCpu { changes, patches, receive, fields: sum, copies, messages } = self.sync_cpu();
        json!({
            "profile": VERSION, "room": self.room_type, "players": self.run.players,
            "patches": self.profiled.patches,
            "bytes_per_patch": self.per_patch(self.profiled.bytes.bytes()),
            "patches_per_player_s": self.run.per_player(self.run.patches),
            "bytes_out_per_player_s": self.run.per_player(self.run.bytes_out),
            "core": self.core,
            "cpu_ns_per_sync": {
                "changes": changes, "patches": patches, "receive": receive, "fields": sum,
                "copies": copies, "messages": messages, "rest": self.sync_cpu().rest(),
            },
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
