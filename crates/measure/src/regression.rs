//! Fields that cost more than in an earlier profile, beyond the noise.

use playfield_load::Profiled;
use serde_json::Value;

use crate::Target;
use crate::noise::error_of;
use crate::profile::{RoomProfiled, VERSION};

/// A change of a field's bytes is real from so many standard errors on. These are estimated from few
/// runs: with five before and five now, one of 3,000 changes is as large by chance (Student's t).
const ERRORS: f64 = 6.0;
/// A smaller change of a field, as a part of it, is not worth a word.
const PART_MIN: f64 = 0.005;
/// A smaller change of a field, as a part of all bytes, is not worth a word either.
const WHOLE_MIN: f64 = 0.0005;
/// The least change without errors in both results: too short runs.
const WHOLE_UNKNOWN: f64 = 0.02;
/// A change of a field's CPU time is real from so many times the difference of the runs on.
const CPU_ERRORS: f64 = 2.0;
/// A smaller change, as a part of the CPU time of finding changes and making patches, is not worth a
/// word.
const CPU_MIN: f64 = 0.02;

/// A field that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Says it in words.
    pub text: String,
    /// Set if it costs more than before.
    pub is_worse: bool,
}

/// The changes since an earlier profile.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChanges {
    /// The fields, by their paths.
    pub fields: Vec<FieldChange>,
    /// The rooms of one core, used to the full: before and now. `None` if the earlier profile was
    /// made on another machine, kernel or build, where CPU time is another.
    pub rooms: Option<[u64; 2]>,
}

/// A field's bytes in a patch, and their standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldBytes {
    /// Bytes in a patch.
    pub bytes: f64,
    /// The standard error; `None` if it is not known.
    pub error: Option<f64>,
}

impl FieldBytes {
    /// The numbers of a field of a profile.
    #[must_use]
    pub fn of(profiled: &Profiled, field: usize) -> Self {
        let bytes = profiled.fields[field].patches.bytes() as f64;
        Self {
            bytes: bytes / profiled.patches.max(1) as f64,
            error: error_of(&profiled.runs, field),
        }
    }

    /// Returns whether `now` differs from this by more than the noise of both. `whole` are the bytes
    /// of all fields in a patch.
    #[must_use]
    pub fn differs(&self, now: &Self, whole: f64) -> bool {
        let change = (now.bytes - self.bytes).abs();
        let noise = match (self.error, now.error) {
            (Some(then), Some(now)) => ERRORS * then.hypot(now),
            _ => WHOLE_UNKNOWN * whole,
        };
        change > noise.max(PART_MIN * self.bytes).max(WHOLE_MIN * whole)
    }
}

impl RoomProfiled {
    /// The fields that have changed by more than the noise since an earlier result, each by its own.
    ///
    /// # Errors
    /// If the JSON was not written by `profile`, or by another version, or for another room.
    pub fn changes(&self, before: &Value) -> Result<FieldChanges, String> {
        changes(before, &self.to_json())
    }
}

fn changes(before: &Value, now: &Value) -> Result<FieldChanges, String> {
    if before["profile"].as_u64() != Some(VERSION) {
        return Err("it is no result of `profile --json`, or of another version".into());
    }
    for name in ["room", "players"] {
        if before[name] != now[name] {
            return Err(format!("its {name} is {}, and {} is measured", before[name], now[name]));
        }
    }
    let positive = |name: &str| {
        let number = before[name].as_f64().filter(|number| *number > 0.0);
        number.ok_or_else(|| format!("{name} is missing: the file is cut or changed"))
    };
    let (whole, core) = (positive("bytes_per_patch")?, positive("core")?);
    let is_same_machine = is_same(&before["machine"], &now["machine"]);
    let listed = |value: &Value| value["fields"].as_array().cloned().unwrap_or_default();
    let (old, new) = (listed(before), listed(now));
    let mut paths: Vec<&str> =
        old.iter().chain(&new).filter_map(|field| field["path"].as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let none = Value::Null;
    let of = |all: &'_ [Value], path: &str| {
        all.iter().find(|field| field["path"] == path).cloned().unwrap_or(none.clone())
    };
    let cpu_whole = {
        let cpu = &before["cpu_ns_per_sync"];
        ["changes", "patches"].iter().filter_map(|part| cpu[part].as_f64()).sum::<f64>()
    };
    let mut fields = Vec::new();
    for path in paths {
        let (then, now) = (of(&old, path), of(&new, path));
        let shown = if path.is_empty() { "(root)" } else { path };
        if let Some(change) = bytes_change(shown, &then, &now, whole) {
            fields.push(change);
        }
        if is_same_machine && let Some(change) = cpu_change(shown, &then, &now, cpu_whole) {
            fields.push(change);
        }
    }
    let rooms = |core: f64| {
        let need = crate::Need { core, bytes_per_s: 0.0, memory: 0.0, players: 1 };
        Target::FULL_CORE.answer(&need).rooms
    };
    let core_now = now["core"].as_f64().unwrap_or(core);
    Ok(FieldChanges { fields, rooms: is_same_machine.then(|| [rooms(core), rooms(core_now)]) })
}

/// Returns whether both are the same machine, kernel and kind of build.
fn is_same(one: &Value, other: &Value) -> bool {
    let of = |machine: &Value| {
        let mut fields = machine.as_object().cloned().unwrap_or_default();
        fields.remove("version");
        fields
    };
    of(one) == of(other)
}

fn bytes_change(path: &str, then: &Value, now: &Value, whole: f64) -> Option<FieldChange> {
    // A field that a result lacks was not sent, without noise.
    let read = |field: &Value| match field {
        Value::Null => FieldBytes { bytes: 0.0, error: Some(0.0) },
        field => FieldBytes {
            bytes: field["bytes_per_patch"].as_f64().unwrap_or(0.0),
            error: field["bytes_error"].as_f64(),
        },
    };
    let (then, now) = (read(then), read(now));
    if !then.differs(&now, whole) {
        return None;
    }
    let text = match (then.bytes > 0.0, now.bytes > 0.0) {
        (true, true) => format!(
            "{:+.1} % bytes in {path}: {:.1} → {:.1} B a patch",
            (now.bytes / then.bytes - 1.0) * 100.0,
            then.bytes,
            now.bytes
        ),
        (true, false) => {
            format!("{path} is not sent any more: it took {:.1} B a patch", then.bytes)
        }
        _ => format!("{path} was not sent before: it takes {:.1} B a patch", now.bytes),
    };
    Some(FieldChange { text, is_worse: now.bytes > then.bytes })
}

fn cpu_change(path: &str, then: &Value, now: &Value, whole: f64) -> Option<FieldChange> {
    let number = |field: &Value, name: &str| field[name].as_f64();
    let (before, after) = (number(then, "cpu_ns_per_sync")?, number(now, "cpu_ns_per_sync")?);
    let error = number(then, "cpu_ns_error")? + number(now, "cpu_ns_error")?;
    let change = after - before;
    if before <= 0.0 || change.abs() <= (CPU_ERRORS * error).max(CPU_MIN * whole) {
        return None;
    }
    let text = format!(
        "{:+.0} % CPU in {path}: {:.2} → {:.2} µs a sync",
        change / before * 100.0,
        before / 1e3,
        after / 1e3
    );
    Some(FieldChange { text, is_worse: change > 0.0 })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FieldBytes, changes};

    fn profile(bytes: f64, cpu: f64, core: f64) -> Value {
        json!({
            "profile": 3, "room": "arena", "players": 30, "bytes_per_patch": 100.0, "core": core,
            "machine": { "cpu": "one" },
            "cpu_ns_per_sync": { "changes": 20_000.0, "patches": 30_000.0 },
            "fields": [
                { "path": "", "bytes_per_patch": 3.0, "bytes_error": 0.0 },
                { "path": "players.*.pos", "bytes_per_patch": bytes, "bytes_error": 0.1,
                  "cpu_ns_per_sync": cpu, "cpu_ns_error": 200.0 },
            ],
        })
    }

    #[test]
    fn a_field_that_has_grown_is_named_with_its_effect() {
        let before = profile(50.0, 4_000.0, 0.0053);
        let found = changes(&before, &profile(55.5, 8_000.0, 0.0059)).unwrap();
        let texts: Vec<_> = found.fields.iter().map(|change| change.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "+11.0 % bytes in players.*.pos: 50.0 → 55.5 B a patch",
                "+100 % CPU in players.*.pos: 4.00 → 8.00 µs a sync",
            ]
        );
        assert!(found.fields.iter().all(|change| change.is_worse));
        assert_eq!(found.rooms, Some([186, 167]));
        let found = changes(&before, &profile(50.4, 4_500.0, 0.0054)).unwrap();
        assert_eq!(found.fields, [], "that is within the noise");
    }

    #[test]
    fn another_machine_has_other_cpu_time_and_the_same_bytes() {
        let mut before = profile(50.0, 4_000.0, 0.005);
        before["machine"]["cpu"] = json!("another");
        let found = changes(&before, &profile(45.0, 9_000.0, 0.01)).unwrap();
        assert_eq!((found.fields.len(), found.rooms), (1, None));
        assert!(!found.fields[0].is_worse && found.fields[0].text.starts_with("-10.0 % bytes"));
    }

    #[test]
    fn a_field_that_comes_or_goes_is_named() {
        let (before, mut now) = (profile(50.0, 0.0, 0.005), profile(50.0, 0.0, 0.005));
        now["fields"][1]["path"] = json!("players.*.place");
        let found = changes(&before, &now).unwrap();
        let texts: Vec<_> = found.fields.iter().map(|change| change.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "players.*.place was not sent before: it takes 50.0 B a patch",
                "players.*.pos is not sent any more: it took 50.0 B a patch",
            ]
        );
    }

    #[test]
    fn a_file_that_is_no_such_result_is_refused() {
        let now = profile(50.0, 0.0, 0.005);
        for (name, value, expected) in [
            ("profile", json!(1), "another version"),
            ("room", json!("chat"), "its room is \"chat\""),
            ("core", Value::Null, "core is missing"),
        ] {
            let mut before = now.clone();
            before[name] = value;
            assert!(changes(&before, &now).unwrap_err().contains(expected), "{name}");
        }
    }

    #[test]
    fn without_errors_only_a_large_change_counts() {
        let of = |bytes, error| FieldBytes { bytes, error };
        assert!(of(50.0, Some(0.1)).differs(&of(51.5, Some(0.1)), 100.0));
        assert!(!of(50.0, None).differs(&of(51.5, Some(0.1)), 100.0));
        assert!(of(50.0, None).differs(&of(52.5, None), 100.0));
    }
}

#[cfg(test)]
mod runs;
