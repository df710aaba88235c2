//! Fields that cost more than in an earlier profile, beyond the noise.

use std::collections::BTreeSet;

use playfield_load::Profiled;
use serde_json::Value;

use crate::Target;
use crate::baseline::{check, number, positive};
use crate::capacity::Plan;
use crate::compare::not_quiet;
use crate::machine::is_same;
use crate::noise::error_of;
use crate::profile::{RoomProfiled, VERSION};

/// A change of a field's bytes is real from so many standard errors on. These are estimated from
/// few runs: with five before and five now, one of 3,000 changes is as large by chance (Student's
/// t).
const ERRORS: f64 = 6.0;
/// A smaller change of a field, as a part of it, is not worth a word.
const PART_MIN: f64 = 0.005;
/// A smaller change of a field, as a part of all bytes, is not worth a word either.
const WHOLE_MIN: f64 = 0.0005;
/// The factor by which runs that were too short should be longer.
const LONGER: f64 = 4.0;
/// The longest run that the command line takes.
const SECONDS_MAX: f64 = 60.0;
/// A change of a field's CPU time is real from so many times the difference of the runs on.
const CPU_ERRORS: f64 = 2.0;
/// A smaller change, as a part of the CPU time of finding changes and making patches, is not worth
/// a word.
const CPU_MIN: f64 = 0.02;

/// An earlier result of `profile`, for the same plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileBaseline {
    machine: Value,
    /// The share of a core that the room takes.
    core: f64,
    /// The bytes of a patch.
    bytes: f64,
    /// Finding changes and making patches at a sync, in nanoseconds.
    cpu: f64,
    /// The length of a run.
    seconds: f64,
    fields: Vec<Value>,
}

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
    /// The rooms of one core, used to the full: before and now. `None` if CPU time can't be
    /// compared.
    pub rooms: Option<[u64; 2]>,
    /// Figures that can't be compared, and why.
    pub notes: Vec<String>,
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

    /// Returns whether `now` differs from this by more than the noise of both; `None` if one of
    /// these is not known. `whole` are the bytes of all fields in a patch.
    #[must_use]
    pub fn differs(&self, now: &Self, whole: f64) -> Option<bool> {
        let change = (now.bytes - self.bytes).abs();
        let noise = ERRORS * self.error?.hypot(now.error?);
        Some(change > noise.max(PART_MIN * self.bytes).max(WHOLE_MIN * whole))
    }
}

impl ProfileBaseline {
    /// Reads the JSON of an earlier profile.
    ///
    /// # Errors
    /// If it was not written by `profile`, or by another version, or for another plan than this
    /// one, or if it is cut.
    pub fn read(before: &Value, plan: &Plan) -> Result<Self, String> {
        check(before, "profile", VERSION, plan)?;
        let Some(fields) = before["fields"].as_array() else {
            return Err("fields is missing: the file is cut or changed".into());
        };
        let cpu = &before["cpu_ns_per_sync"];
        Ok(Self {
            machine: before["machine"].clone(),
            core: positive(before, "core")?,
            bytes: positive(before, "bytes_per_patch")?,
            cpu: number(cpu, "changes")? + number(cpu, "patches")?,
            seconds: positive(before, "seconds")?,
            fields: fields.clone(),
        })
    }
}

impl RoomProfiled {
    /// The fields that have changed by more than the noise since an earlier profile, each by its
    /// own.
    #[must_use]
    pub fn changes(&self, before: &ProfileBaseline) -> FieldChanges {
        changes(before, &self.to_json())
    }
}

fn changes(before: &ProfileBaseline, now: &Value) -> FieldChanges {
    let none = Vec::new();
    let new = now["fields"].as_array().unwrap_or(&none);
    let paths = before.fields.iter().chain(new).filter_map(|field| field["path"].as_str());
    let paths: BTreeSet<&str> = paths.collect();
    let not_compared = if is_same(&before.machine, &now["machine"]) {
        not_quiet(&before.machine, &now["machine"])
    } else {
        Some("it was measured on another machine, kernel or build".to_owned())
    };
    let (mut fields, mut short, count) = (Vec::new(), 0, paths.len());
    for path in paths {
        let of = |all: &[Value]| all.iter().find(|field| field["path"] == path).cloned();
        let [then, now] = [of(&before.fields), of(new)].map(Option::unwrap_or_default);
        let shown = if path.is_empty() { "(root)" } else { path };
        match bytes_change(shown, &then, &now, before.bytes) {
            Ok(change) => fields.extend(change),
            Err(TooShort) => short += 1,
        }
        if not_compared.is_none() {
            fields.extend(cpu_change(shown, &then, &now, before.cpu));
        }
    }
    let rooms = |core: f64| {
        let need = crate::Need { core, bytes_per_s: 0.0, memory: 0.0, players: 1 };
        Target::FULL_CORE.answer(&need).rooms
    };
    let core = now["core"].as_f64().filter(|_| not_compared.is_none());
    let mut notes = Vec::new();
    if short > 0 {
        let seconds = before.seconds.max(now["seconds"].as_f64().unwrap_or(0.0));
        let longer = (seconds * LONGER).ceil().min(SECONDS_MAX);
        notes.push(format!(
            "bytes of {short} of {count} fields: too short to compare; use --seconds {longer}, for \
             the baseline too"
        ));
    }
    notes.extend(not_compared.map(|why| format!("CPU time is not compared: {why}")));
    FieldChanges { fields, rooms: core.map(|core| [rooms(before.core), rooms(core)]), notes }
}

/// The runs were too short to know the noise of a field's bytes.
struct TooShort;

/// The change of a field's bytes, if there is one.
fn bytes_change(
    path: &str,
    then: &Value,
    now: &Value,
    whole: f64,
) -> Result<Option<FieldChange>, TooShort> {
    // A field that a result lacks was not sent, without noise.
    let read = |field: &Value| match field {
        Value::Null => FieldBytes { bytes: 0.0, error: Some(0.0) },
        field => FieldBytes {
            bytes: field["bytes_per_patch"].as_f64().unwrap_or(0.0),
            error: field["bytes_error"].as_f64(),
        },
    };
    let (then, now) = (read(then), read(now));
    if !then.differs(&now, whole).ok_or(TooShort)? {
        return Ok(None);
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
    Ok(Some(FieldChange { text, is_worse: now.bytes > then.bytes }))
}

/// The change of a field's CPU time, if there is one.
fn cpu_change(path: &str, then: &Value, now: &Value, whole: f64) -> Option<FieldChange> {
    let number = |field: &Value, name: &str| field[name].as_f64();
    let (before, after) = (number(then, "cpu_ns_per_sync")?, number(now, "cpu_ns_per_sync")?);
    let error = number(then, "cpu_ns_error")? + number(now, "cpu_ns_error")?;
    let change = after - before;
    if change.abs() <= (CPU_ERRORS * error).max(CPU_MIN * whole) {
        return None;
    }
    let [before_us, after_us] = [before, after].map(|ns| ns / 1e3);
    let text = match (before > 0.0, after > 0.0) {
        (true, true) => {
            let percent = change / before * 100.0;
            format!("{percent:+.0} % CPU in {path}: {before_us:.2} → {after_us:.2} µs a sync")
        }
        (true, false) => format!("CPU in {path}: {before_us:.2} µs a sync before, none now"),
        _ => format!("CPU in {path}: none before, {after_us:.2} µs a sync now"),
    };
    Some(FieldChange { text, is_worse: change > 0.0 })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FieldBytes, FieldChanges, ProfileBaseline};
    use crate::calibration::Calibration;
    use crate::compare::tests::capacity;
    use crate::machine::Machine;

    fn profile(bytes: f64, cpu: f64, core: f64) -> Value {
        json!({
            "profile": 4, "room": "arena", "plan": capacity(0.01, 800.0).plan.to_json(),
            "bytes_per_patch": 100.0, "core": core, "seconds": 3.0,
            "machine": Machine::describe().to_json(&Calibration::quiet()),
            "cpu_ns_per_sync": { "changes": 20_000.0, "patches": 30_000.0 },
            "fields": [
                { "path": "", "bytes_per_patch": 3.0, "bytes_error": 0.0 },
                { "path": "players.*.pos", "bytes_per_patch": bytes, "bytes_error": 0.1,
                  "cpu_ns_per_sync": cpu, "cpu_ns_error": 200.0 },
            ],
        })
    }

    fn read(before: &Value) -> Result<ProfileBaseline, String> {
        ProfileBaseline::read(before, &capacity(0.01, 800.0).plan)
    }

    fn changes(before: &Value, now: &Value) -> FieldChanges {
        super::changes(&read(before).unwrap(), now)
    }

    fn texts(found: &FieldChanges) -> Vec<&str> {
        found.fields.iter().map(|change| change.text.as_str()).collect()
    }

    #[test]
    fn a_field_that_has_grown_is_named_with_its_effect() {
        let before = profile(50.0, 4_000.0, 0.0053);
        let found = changes(&before, &profile(55.5, 8_000.0, 0.0059));
        assert_eq!(
            texts(&found),
            [
                "+11.0 % bytes in players.*.pos: 50.0 → 55.5 B a patch",
                "+100 % CPU in players.*.pos: 4.00 → 8.00 µs a sync",
            ]
        );
        assert!(found.fields.iter().all(|change| change.is_worse));
        assert_eq!((found.rooms, found.notes.len()), (Some([158, 142]), 0));
        let found = changes(&before, &profile(50.4, 4_500.0, 0.0054));
        assert_eq!(found.fields, [], "that is within the noise");
    }

    #[test]
    fn another_calibration_of_the_same_machine_is_no_other_machine() {
        let before = profile(50.0, 4_000.0, 0.005);
        let mut now = profile(50.0, 9_000.0, 0.01);
        let mut later = Calibration::quiet();
        (later.us, later.load) = (231.0, Some(0.6));
        now["machine"] = Machine::describe().to_json(&later);
        let found = changes(&before, &now);
        assert_eq!(texts(&found), ["+125 % CPU in players.*.pos: 4.00 → 9.00 µs a sync"]);
        assert_eq!(found.rooms, Some([168, 84]));
        // Of a machine that was not quiet, its CPU time says nothing.
        later.load = Some(1e3);
        now["machine"] = Machine::describe().to_json(&later);
        let found = changes(&before, &now);
        assert_eq!((found.fields.len(), found.rooms), (0, None));
        assert!(found.notes[0].contains("the machine was not quiet now"), "{found:?}");
    }

    #[test]
    fn another_machine_has_other_cpu_time_and_the_same_bytes() {
        let mut before = profile(50.0, 4_000.0, 0.005);
        before["machine"]["cpu"] = json!("another");
        let found = changes(&before, &profile(45.0, 9_000.0, 0.01));
        assert_eq!((found.fields.len(), found.rooms), (1, None));
        assert!(!found.fields[0].is_worse && found.fields[0].text.starts_with("-10.0 % bytes"));
        assert!(found.notes[0].contains("another machine, kernel or build"), "{found:?}");
    }

    #[test]
    fn nothing_is_claimed_of_runs_that_were_too_short() {
        let mut before = profile(50.0, 4_000.0, 0.005);
        before["fields"][1]["bytes_error"] = Value::Null;
        let mut now = profile(126.5, 4_000.0, 0.005);
        now["seconds"] = json!(0.5);
        let expected = "bytes of 1 of 2 fields: too short to compare; use --seconds 12, for the \
                        baseline too";
        for (before, now) in [(&before, &now), (&now, &before)] {
            let found = changes(before, now);
            assert_eq!((found.fields.len(), found.notes[0].as_str()), (0, expected));
        }
    }

    #[test]
    fn a_field_that_comes_or_goes_is_named() {
        let (before, mut now) = (profile(50.0, 0.0, 0.005), profile(50.0, 0.0, 0.005));
        now["fields"][1]["path"] = json!("players.*.place");
        let found = changes(&before, &now);
        assert_eq!(
            texts(&found),
            [
                "players.*.place was not sent before: it takes 50.0 B a patch",
                "players.*.pos is not sent any more: it took 50.0 B a patch",
            ]
        );
        let found = changes(&before, &profile(50.0, 4_000.0, 0.005));
        assert_eq!(texts(&found), ["CPU in players.*.pos: none before, 4.00 µs a sync now"]);
        assert!(found.fields[0].is_worse);
        let found = changes(&profile(50.0, 4_000.0, 0.005), &before);
        assert_eq!(texts(&found), ["CPU in players.*.pos: 4.00 µs a sync before, none now"]);
    }

    #[test]
    fn a_file_that_is_no_such_result_is_refused() {
        for (name, value, expected) in [
            ("profile", json!(3), "of version 3"),
            ("profile", Value::Null, "no result"),
            ("room", json!("chat"), "its room is \"chat\""),
            ("core", Value::Null, "core is missing"),
            ("core", json!(0.0), "core is 0"),
            ("fields", Value::Null, "fields is missing"),
            ("plan", Value::Null, "its players is null"),
        ] {
            let mut before = profile(50.0, 0.0, 0.005);
            before[name] = value;
            assert!(read(&before).unwrap_err().contains(expected), "{name}");
        }
    }

    #[test]
    fn without_errors_nothing_is_known() {
        let of = |bytes, error| FieldBytes { bytes, error };
        assert_eq!(of(50.0, Some(0.1)).differs(&of(51.5, Some(0.1)), 100.0), Some(true));
        assert_eq!(of(50.0, Some(0.1)).differs(&of(50.2, Some(0.1)), 100.0), Some(false));
        assert_eq!(of(50.0, None).differs(&of(150.0, Some(0.1)), 100.0), None);
    }
}

#[cfg(test)]
mod runs;
