//! Changes since an earlier measurement, beyond the noise.

use serde_json::Value;

use crate::baseline::{check, number, positive};
use crate::calibration::{Conditions, speed};
use crate::capacity::{Capacity, Plan};
use crate::change::{BYTES_NOISE, CPU_NOISE, Change, Finding, MEMORY_NOISE};
use crate::machine::is_same;
use crate::target::Target;

/// The version of results in files. Others are not compared.
pub(crate) const VERSION: u64 = 2;

/// An earlier result of `capacity`, for the same plan.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityBaseline {
    machine: Value,
    core: f64,
    bytes_out: f64,
    bytes_in: f64,
    /// Memory of a room with its players, in bytes.
    memory: f64,
    spread: f64,
    bytes_spread: f64,
}

/// The changes since a measurement, and what can't be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The figures.
    pub changes: Vec<Change>,
    /// The rooms of one core, used to the full: before and now; `None` if CPU time can't be compared.
    pub rooms: Option<[u64; 2]>,
    /// The way in which CPU time is compared, if the machine was another one or not quiet, or why it
    /// is not.
    pub note: Option<String>,
}

impl CapacityBaseline {
    /// Reads the JSON of an earlier measurement.
    ///
    /// # Errors
    /// If it was not written by `capacity`, or by another version, or for another plan than this one,
    /// or if it is cut.
    pub fn read(before: &Value, plan: &Plan) -> Result<Self, String> {
        check(before, "capacity", VERSION, plan)?;
        let cell = &before["cell"];
        let [room, player] = ["room_bytes", "player_bytes"].map(|name| number(before, name));
        Ok(Self {
            machine: before["machine"].clone(),
            core: positive(cell, "core")?,
            bytes_out: number(cell, "bytes_out_per_player_s")?,
            bytes_in: number(cell, "bytes_in_per_player_s")?,
            memory: room? + player? * plan.players as f64,
            spread: number(before, "spread")?,
            bytes_spread: number(before, "bytes_spread")?,
        })
    }
}

impl Comparison {
    /// Returns whether any figure has grown by more than the noise.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.changes.iter().any(Change::is_worse)
    }

    /// The changes in words.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let text = |change: &Change| match change.finding() {
            finding @ Finding::TooNoisy => format!("{}: {change}", finding.name()),
            _ => change.to_string(),
        };
        self.changes.iter().map(text).collect()
    }
}

/// Compares a measurement with an earlier one.
#[must_use]
pub fn compare(before: &CapacityBaseline, now: &Capacity) -> Comparison {
    let machine = now.machine.to_json(&now.calibration);
    let scale = speed(&before.machine, &machine);
    let noisy = not_quiet(&before.machine, &machine);
    let mut changes = Vec::new();
    let mut add = |name, before: f64, now, noise| {
        changes.push(Change::of(name, [before, now], noise));
    };
    let bytes_noise = BYTES_NOISE.max(before.bytes_spread).max(now.bytes_spread);
    add("bytes a second to a player", before.bytes_out, now.cell.bytes_out, bytes_noise);
    add("bytes a second from a player", before.bytes_in, now.cell.bytes_in, BYTES_NOISE);
    let need = now.need(&now.cell);
    let memory = "bytes of memory for a room with its players";
    add(memory, before.memory, need.memory, MEMORY_NOISE);
    let Some(scale) = scale else {
        let note = "CPU time is not compared: it was measured on another machine, kernel or \
                    build, without a calibration";
        return Comparison { changes, rooms: None, note: Some(note.into()) };
    };
    let core = now.cell.core * scale;
    let noise = CPU_NOISE.max(before.spread).max(now.spread);
    let cpu = Change {
        is_quiet: noisy.is_none(),
        ..Change::of("of a core for a room", [before.core, core], noise)
    };
    let is_said = cpu.finding() != Finding::TooNoisy;
    changes.insert(0, cpu);
    let rooms = |core| Target::FULL_CORE.answer(&crate::Need { core, ..need }).rooms;
    let by_calibration = (!is_same(&before.machine, &machine)).then(|| {
        format!("CPU time is compared by calibration: a core here is {scale:.2} times as fast")
    });
    Comparison {
        changes,
        rooms: is_said.then(|| [rooms(before.core), rooms(core)]),
        note: noisy.filter(|_| !is_said).or(by_calibration),
    }
}

/// Says which one of two machines was not quiet; `None` if both were, or are not known.
pub(crate) fn not_quiet(before: &Value, now: &Value) -> Option<String> {
    let was_quiet = |machine| Conditions::read(machine).is_none_or(|machine| machine.is_quiet);
    let when = match (was_quiet(before), was_quiet(now)) {
        (true, true) => return None,
        (false, true) => "then",
        (true, false) => "now",
        (false, false) => "both times",
    };
    Some(format!("the machine was not quiet {when}: stop what else runs, and measure again"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{CapacityBaseline, Change, Comparison, Finding};
    use crate::calibration::Calibration;
    use crate::capacity::{Capacity, Cell, Plan};
    use crate::drive::Drive;
    use crate::machine::Machine;

    pub(crate) fn capacity(core: f64, bytes_out: f64) -> Capacity {
        let drive = Drive::Messages { name: None, value: None, rate: 5.0, is_request: false };
        let plan = Plan {
            room_type: "arena".into(),
            players: 30,
            is_default_size: false,
            hz: None,
            drive,
            script: None,
            tls: None,
            time: Duration::from_secs(1),
            is_whole: false,
        };
        let cell = Cell {
            players: 30,
            hz: None,
            message_rate: 1.0,
            core,
            parts: Vec::new(),
            bytes_out,
            bytes_in: 64.0,
            patches: 20.0,
            messages_out: 25.0,
            syncs: 20.0,
            messages: 150.0,
        };
        Capacity {
            plan,
            cell,
            others: Vec::new(),
            spread: 0.01,
            bytes_spread: 0.01,
            system_share: Some(0.6),
            fit: None,
            room_bytes: 30_000.0,
            player_bytes: 3_000.0,
            machine: Machine::describe(),
            calibration: Calibration::quiet(),
            warnings: Vec::new(),
        }
    }

    fn compare(before: &Value, now: &Capacity) -> Comparison {
        super::compare(&CapacityBaseline::read(before, &now.plan).unwrap(), now)
    }

    #[test]
    fn only_changes_beyond_the_noise_are_real() {
        let before = capacity(0.01, 800.0).to_json();
        let same = compare(&before, &capacity(0.0104, 810.0));
        assert!(!same.is_worse() && !same.changes.iter().any(Change::is_real), "{same:?}");
        let worse = compare(&before, &capacity(0.0112, 888.0));
        let said = worse.texts();
        assert!(worse.is_worse());
        assert_eq!(said[0], "+12.0 % of a core for a room: 0.0100 → 0.0112");
        assert_eq!(said[1], "+11.0 % bytes a second to a player: 800.0000 → 888.0000");
        assert_eq!((worse.rooms, worse.note), (Some([84, 75]), None));
        assert!(!compare(&before, &capacity(0.005, 700.0)).is_worse(), "it is better");
        let mute = compare(&capacity(0.01, 0.0).to_json(), &capacity(0.01, 250.0));
        assert_eq!(mute.texts()[1], "bytes a second to a player: none before, 250.0000 now");
        assert!(mute.is_worse());
    }

    #[test]
    fn on_one_machine_calibrations_change_nothing() {
        let mut before = capacity(0.01, 800.0).to_json();
        before["machine"]["calibration_us"] = json!(152.0);
        before["machine"]["load"] = json!(0.7);
        let compared = compare(&before, &capacity(0.01, 800.0));
        assert!(compared.changes.iter().all(|change| change.finding() == Finding::Equal));
        assert_eq!((compared.rooms, compared.note), (Some([84, 84]), None));
    }

    #[test]
    fn a_machine_that_was_not_quiet_is_not_slower() {
        let before = capacity(0.01, 800.0);
        let mut now = capacity(0.02, 900.0);
        now.calibration.load = Some(1.9);
        let busy = compare(&before.to_json(), &now);
        assert_eq!(
            busy.texts()[0],
            "too noisy to say: +100.0 % of a core for a room: 0.0100 → 0.0200"
        );
        assert_eq!(busy.rooms, None);
        assert!(busy.note.as_ref().is_some_and(|note| note.contains("not quiet now")), "{busy:?}");
        assert_eq!(busy.changes[1].finding(), Finding::Worse, "bytes are not the machine's");
        now.cell.bytes_out = 800.0;
        assert!(!compare(&before.to_json(), &now).is_worse());
        let mut noisy = before.to_json();
        noisy["machine"]["quiet"] = json!(false);
        let compared = compare(&noisy, &capacity(0.02, 800.0));
        assert!(!compared.is_worse() && compared.note.is_some_and(|note| note.contains("then")));
    }

    #[test]
    fn another_machine_is_compared_by_its_calibration() {
        let mut before = capacity(0.01, 800.0).to_json();
        before["machine"]["cpu"] = json!("a faster one");
        before["machine"]["calibration_us"] = json!(100.0);
        let compared = compare(&before, &capacity(0.02, 800.0));
        assert!(!compared.is_worse(), "{compared:?}");
        let note = compared.note.unwrap();
        assert!(note.contains("0.50 times as fast"), "{note}");
        let compared = compare(&before, &capacity(0.03, 800.0));
        assert!(compared.is_worse() && compared.rooms == Some([84, 56]), "{compared:?}");
        before["machine"]["calibration_us"] = Value::Null;
        let compared = compare(&before, &capacity(0.02, 800.0));
        assert!(compared.rooms.is_none() && compared.note.is_some() && !compared.is_worse());
    }

    #[test]
    fn a_file_that_is_no_such_result_is_refused() {
        let now = capacity(0.01, 800.0);
        let refused = |change: fn(&mut Value)| {
            let mut before = now.to_json();
            change(&mut before);
            CapacityBaseline::read(&before, &now.plan).unwrap_err()
        };
        assert!(refused(|before| *before = json!([1])).contains("no result"));
        assert!(refused(|before| before["capacity"] = json!(1)).contains("version 1"));
        assert!(refused(|before| before["room"] = json!("chat")).contains("room is \"chat\""));
        assert!(refused(|before| before["spread"] = Value::Null).contains("spread is missing"));
        assert!(refused(|before| before["cell"]["core"] = json!(0.0)).contains("core is 0"));
        let refused = refused(|before| before["plan"]["drive"] = json!("bot"));
        assert_eq!(refused, "its drive is \"bot\", and \"messages, 5 a second\" is measured");
    }
}
