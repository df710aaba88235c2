//! The bytes of a room by field, as its players are sent them.

use std::io;

use playfield_load::{Profiled, Profiler};
use playfield_server::Pace;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::capacity::Plan;
use crate::machine::Machine;
use crate::run::{Case, Run, run};

/// How fast the node's clock runs: a profile counts bytes, which do not depend on it.
const SPEED: u32 = 8;
/// The version of results in files.
const VERSION: u64 = 1;
/// The least change of a field's bytes that is not noise, as a part of all bytes.
const NOISE: f64 = 0.02;

/// The bytes of a room by field.
#[derive(Clone, Debug)]
pub struct RoomBytes {
    /// The type of the room.
    pub room_type: String,
    /// The counts of some of its players.
    pub profiled: Profiled,
    /// The run.
    pub run: Run,
    /// The machine.
    pub machine: Machine,
    /// Its speed and its noise.
    pub calibration: Calibration,
}

/// Runs a room, and counts what players are sent.
///
/// # Errors
/// If the room can't be run, or sends nothing.
pub fn profile(plan: &Plan) -> io::Result<RoomBytes> {
    let machine = Machine::describe();
    let calibration = Calibration::measure(&machine);
    let profiler = Profiler::default();
    let run = run(&Case {
        room_type: plan.room_type.clone(),
        rooms: 1,
        players: plan.players,
        hz: plan.hz,
        drive: plan.drive.clone(),
        pace: Pace { speed: SPEED, evict_bytes: 0 },
        tls: None,
        time: plan.time,
        profiler: Some(profiler.clone()),
        seed: 1,
    })?;
    let profiled = profiler.profiled().filter(|profiled| profiled.patches > 0);
    let nothing = || io::Error::other("the room's players were sent no patch: nothing has changed");
    Ok(RoomBytes {
        room_type: plan.room_type.clone(),
        profiled: profiled.ok_or_else(nothing)?,
        run,
        machine,
        calibration: calibration.now(),
    })
}

impl RoomBytes {
    /// The bytes of a number of patches, in a patch.
    #[must_use]
    pub fn per_patch(&self, bytes: u64) -> f64 {
        bytes as f64 / self.profiled.patches.max(1) as f64
    }

    /// All of it, for programs, and for [`changes`](Self::changes) later.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = self.profiled.fields.iter().filter(|field| field.patches.bytes() > 0);
        let fields = fields.map(|field| {
            let savings = field.savings.iter().map(|saving| {
                json!({ "to": saving.to, "bytes_per_patch": self.per_patch_signed(saving.patches) })
            });
            json!({
                "path": field.path, "type": field.of,
                "bytes_per_patch": self.per_patch(field.patches.bytes()),
                "own_bytes_per_patch": self.per_patch(field.patches.own),
                "values_per_patch": self.per_patch(field.patches.writes),
                "savings": savings.collect::<Vec<_>>(),
            })
        });
        json!({
            "profile": VERSION, "room": self.room_type, "players": self.run.players,
            "patches": self.profiled.patches,
            "bytes_per_patch": self.per_patch(self.profiled.bytes.bytes()),
            "patches_per_player_s": self.run.per_player(self.run.patches),
            "bytes_out_per_player_s": self.run.per_player(self.run.bytes_out),
            "fields": fields.collect::<Vec<_>>(),
            "machine": self.machine.to_json(&self.calibration),
            "warnings": self.calibration.trouble().into_iter().collect::<Vec<_>>(),
        })
    }

    /// A saving in a patch; negative if it costs more.
    #[must_use]
    pub fn per_patch_signed(&self, bytes: i64) -> f64 {
        bytes as f64 / self.profiled.patches.max(1) as f64
    }

    /// The fields whose bytes have changed by more than the noise since an earlier result: what has
    /// changed, in words, and whether it costs more.
    ///
    /// # Errors
    /// If the JSON was not written by `profile`, or by another version, or for another room.
    pub fn changes(&self, before: &Value) -> Result<Vec<(String, bool)>, String> {
        if before["profile"].as_u64() != Some(VERSION) {
            return Err("it is no result of `profile --json`, or of another version".into());
        }
        let now = self.to_json();
        for name in ["room", "players"] {
            if before[name] != now[name] {
                return Err(format!(
                    "its {name} is {}, and {} is measured",
                    before[name], now[name]
                ));
            }
        }
        let whole = before["bytes_per_patch"].as_f64().filter(|whole| *whole > 0.0);
        let whole = whole.ok_or("bytes_per_patch is missing: the file is cut or changed")?;
        let listed = |value: &Value| value["fields"].as_array().cloned().unwrap_or_default();
        let (old, new) = (listed(before), listed(&now));
        let bytes = |of: &[Value], path: &Value| {
            let found = of.iter().find(|field| field["path"] == *path);
            found.and_then(|field| field["bytes_per_patch"].as_f64()).unwrap_or(0.0)
        };
        let mut paths: Vec<&Value> = old.iter().chain(&new).map(|field| &field["path"]).collect();
        paths.sort_by_key(|path| path.as_str().unwrap_or_default());
        paths.dedup();
        let changes = paths.into_iter().filter_map(|path| {
            let (then, now) = (bytes(&old, path), bytes(&new, path));
            let part = (now - then) / whole;
            let shown = path.as_str().filter(|path| !path.is_empty()).unwrap_or("(root)");
            (part.abs() > NOISE).then(|| {
                (
                    format!(
                        "{:+.1} % of all bytes in {shown}: {then:.1} → {now:.1} B a patch",
                        part * 100.0
                    ),
                    part > 0.0,
                )
            })
        });
        Ok(changes.collect())
    }
}
