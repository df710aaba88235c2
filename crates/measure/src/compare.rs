//! Changes since an earlier measurement, beyond the noise.

use serde_json::Value;

use crate::calibration::{Conditions, SPEED_NOISE, speed};
use crate::capacity::Capacity;
use crate::change::{BYTES_NOISE, CPU_NOISE, Change, MEMORY_NOISE};
use crate::target::Target;

/// The version of results in files. Others are not compared.
pub(crate) const VERSION: u64 = 1;

/// The changes since a measurement, and what can't be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The figures.
    pub changes: Vec<Change>,
    /// The rooms of one core, used to the full: before and now; `None` if CPU time can't be compared.
    pub rooms: Option<[u64; 2]>,
    /// The way in which CPU time is compared, if the machine was another one, or why it is not.
    pub note: Option<String>,
}

impl Comparison {
    /// Returns whether any figure has grown by more than the noise.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.changes.iter().any(Change::is_worse)
    }
}

/// Compares a measurement with the JSON of an earlier one.
///
/// # Errors
/// If the JSON was not written by `capacity`, or by another version, or for another room.
pub fn compare(before: &Value, now: &Capacity) -> Result<Comparison, String> {
    let version = before["capacity"].as_u64();
    if version != Some(VERSION) {
        return Err(match version {
            Some(version) => format!("it is of version {version}, and this program has {VERSION}"),
            None => "it is no result of `capacity --json`".into(),
        });
    }
    let text = |name: &str| before[name].as_str().unwrap_or_default().to_owned();
    let plan = &now.plan;
    let same = [
        ("room", text("room"), plan.room_type.clone()),
        ("players", before["cell"]["players"].to_string(), plan.players.to_string()),
        (
            "hz",
            before["cell"]["hz"].to_string(),
            plan.hz.map_or("null".into(), |hz| hz.to_string()),
        ),
    ];
    if let Some((name, before, now)) = same.into_iter().find(|(_, before, now)| before != now) {
        return Err(format!("its {name} is {before}, and {now} is measured"));
    }
    let number = |value: &Value, name: &str| {
        value.as_f64().ok_or_else(|| format!("{name} is missing: the file is cut or changed"))
    };
    let cell = &before["cell"];
    let spread = number(&before["spread"], "spread")?.max(now.spread);
    let bytes_spread = number(&before["bytes_spread"], "bytes_spread")?.max(now.bytes_spread);
    let mut changes = Vec::new();
    let mut add = |name, before: f64, now, noise| {
        changes.push(Change::of(name, [before, now], noise));
    };
    let core = number(&cell["core"], "core")?;
    let (scale, note) = cores(&before["machine"], now);
    if let Some(scale) = scale {
        add("of a core for a room", core, now.cell.core * scale, CPU_NOISE.max(spread));
    }
    let bytes_out = number(&cell["bytes_out_per_player_s"], "bytes_out_per_player_s")?;
    add("bytes a second to a player", bytes_out, now.cell.bytes_out, BYTES_NOISE.max(bytes_spread));
    let bytes_in = number(&cell["bytes_in_per_player_s"], "bytes_in_per_player_s")?;
    add("bytes a second from a player", bytes_in, now.cell.bytes_in, BYTES_NOISE);
    let room_bytes = number(&before["room_bytes"], "room_bytes")?;
    let player_bytes = number(&before["player_bytes"], "player_bytes")?;
    let need = now.need(&now.cell);
    let memory = room_bytes + player_bytes * plan.players as f64;
    add("bytes of memory for a room with its players", memory, need.memory, MEMORY_NOISE);
    let rooms = |core| Target::FULL_CORE.answer(&crate::Need { core, ..need }).rooms;
    let rooms = scale.map(|scale| [rooms(core), rooms(now.cell.core * scale)]);
    Ok(Comparison { changes, rooms, note })
}

/// The factor that makes CPU time of now that of the machine before, and a note about it; `None` if
/// nobody knows.
fn cores(before: &Value, now: &Capacity) -> (Option<f64>, Option<String>) {
    let own = now.machine.to_json(&now.calibration);
    let is_same = |names: &[&str]| names.iter().all(|name| before[*name] == own[*name]);
    let is_same_machine = is_same(&["cores", "cpu", "kernel", "memory_mb", "profile"]);
    let conditions = Conditions::read(before).zip(Conditions::read(&own));
    match conditions.filter(|_| is_same(&["profile"])) {
        Some((before, now)) => {
            let speed = speed(before, now);
            let note = format!(
                "CPU time is compared by calibration: a core here is {speed:.2} times as fast"
            );
            (Some(speed), ((speed - 1.0).abs() > SPEED_NOISE).then_some(note))
        }
        None if is_same_machine => (Some(1.0), None),
        None => {
            let text = "CPU time is not compared: it was measured on another machine, kernel or \
                        build, without a calibration";
            (None, Some(text.into()))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::compare;
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

    #[test]
    fn only_changes_beyond_the_noise_are_real() {
        let before = capacity(0.01, 800.0).to_json();
        let same = compare(&before, &capacity(0.0104, 810.0)).unwrap();
        assert!(!same.is_worse() && !same.changes.iter().any(super::Change::is_real), "{same:?}");
        let worse = compare(&before, &capacity(0.0112, 888.0)).unwrap();
        let said: Vec<_> = worse.changes.iter().map(ToString::to_string).collect();
        assert!(worse.is_worse());
        assert_eq!(said[0], "+12.0 % of a core for a room: 0.0100 → 0.0112");
        assert_eq!(said[1], "+11.0 % bytes a second to a player: 800.0000 → 888.0000");
        assert_eq!(worse.rooms, Some([97, 87]));
        assert!(!compare(&before, &capacity(0.005, 700.0)).unwrap().is_worse(), "it is better");
    }

    #[test]
    fn another_machine_is_compared_by_its_calibration() {
        let mut before = capacity(0.01, 800.0).to_json();
        before["machine"]["cpu"] = json!("a faster one");
        before["machine"]["calibration_us"] = json!(100.0);
        let compared = compare(&before, &capacity(0.02, 800.0)).unwrap();
        assert!(!compared.is_worse(), "{compared:?}");
        let note = compared.note.unwrap();
        assert!(note.contains("0.50 times as fast"), "{note}");
        let compared = compare(&before, &capacity(0.03, 800.0)).unwrap();
        assert!(compared.is_worse() && compared.rooms == Some([97, 64]), "{compared:?}");
        before["machine"]["calibration_us"] = Value::Null;
        let compared = compare(&before, &capacity(0.02, 800.0)).unwrap();
        assert!(compared.rooms.is_none() && compared.note.is_some() && !compared.is_worse());
    }

    #[test]
    fn a_file_that_is_no_such_result_is_refused() {
        let now = capacity(0.01, 800.0);
        let refused = |change: fn(&mut Value)| {
            let mut before = now.to_json();
            change(&mut before);
            compare(&before, &now).unwrap_err()
        };
        assert!(refused(|before| *before = json!([1])).contains("no result"));
        assert!(refused(|before| before["capacity"] = json!(2)).contains("version 2"));
        assert!(refused(|before| before["room"] = json!("chat")).contains("room is chat"));
        assert!(refused(|before| before["spread"] = Value::Null).contains("spread is missing"));
    }
}
