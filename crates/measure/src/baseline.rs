//! Results of earlier measurements, in files that `--json` wrote, and the plans in them.

use serde_json::{Value, json};

use crate::Drive;
use crate::capacity::Plan;

impl Plan {
    /// The behavior of the players in a few words: `bot`, or `messages Steer, 5 a second`.
    #[must_use]
    pub fn players_text(&self) -> String {
        match &self.drive {
            Drive::Bot(_) => "bot".to_owned(),
            Drive::Scripts(_) => match &self.script {
                Some(name) => format!("script {name}"),
                None => "script".to_owned(),
            },
            Drive::Messages { rate, .. } if *rate <= 0.0 => "no messages".to_owned(),
            Drive::Messages { name, value, rate, is_request } => {
                let kind = if *is_request { "requests" } else { "messages" };
                let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                let value = value.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
                format!("{kind}{name}{value}, {rate} a second")
            }
        }
    }

    /// The parts of the plan that figures depend on, for results in files.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "players": self.players, "hz": self.hz, "drive": self.players_text(),
            "tls": self.tls.is_some(),
        })
    }
}

/// Checks that a result was written by this command in this version, for the same room, players,
/// rate and connections.
///
/// # Errors
/// A sentence with both values.
pub(crate) fn check(
    before: &Value,
    command: &str,
    version: u64,
    plan: &Plan,
) -> Result<(), String> {
    match before[command].as_u64() {
        Some(of) if of == version => {}
        Some(other) => {
            return Err(format!("it is of version {other}, and this program has {version}"));
        }
        None => return Err(format!("it is no result of `{command} --json`")),
    }
    let (then, mut now) = (&before["plan"], plan.to_json());
    let has_other_size = then["players"] != now["players"];
    if plan.is_default_size && has_other_size && before["room"] == *plan.room_type {
        // The room type may take fewer. If it can't be asked, the measurement says why.
        if let Ok((settled, _)) = plan.settled() {
            now = settled.to_json();
        }
    }
    let room = ("room", &before["room"], &Value::from(plan.room_type.as_str()));
    let others = ["players", "hz", "drive", "tls"].map(|name| (name, &then[name], &now[name]));
    let differs = |(_, then, now): &(&str, &Value, &Value)| then != now;
    let Some((name, then, now)) = [room].into_iter().chain(others).find(differs) else {
        return Ok(());
    };
    let shown = |value: &Value| match (name, value) {
        ("hz", Value::Null) => "the room's own".to_owned(),
        (_, value) => value.to_string(),
    };
    Err(format!("its {name} is {}, and {} is measured", shown(then), shown(now)))
}

/// A number of a result, by its name.
///
/// # Errors
/// If it is not there.
pub(crate) fn number(of: &Value, name: &str) -> Result<f64, String> {
    of[name].as_f64().ok_or_else(|| format!("{name} is missing: the file is cut or changed"))
}

/// A number of a result that is above 0, by its name.
///
/// # Errors
/// If it is not there, or not above 0.
pub(crate) fn positive(of: &Value, name: &str) -> Result<f64, String> {
    let value = number(of, name)?;
    match value > 0.0 {
        true => Ok(value),
        false => Err(format!("{name} is {value}, and must be above 0: the file is changed")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check, positive};
    use crate::capacity::Plan;
    use crate::compare::tests::capacity;
    use crate::{Certificate, Drive};

    fn plan() -> Plan {
        capacity(0.01, 800.0).plan
    }

    fn result(plan: &Plan) -> Value {
        json!({ "capacity": 2, "room": plan.room_type, "plan": plan.to_json() })
    }

    #[test]
    fn a_result_of_another_plan_is_refused_with_both_values() {
        let before = result(&plan());
        assert_eq!(check(&before, "capacity", 2, &plan()), Ok(()));
        let steer = Drive::Messages {
            name: Some("Steer".into()),
            value: Some(json!({ "angle": 1 })),
            rate: 2.5,
            is_request: true,
        };
        let certificate = Certificate { certificate: "cert.pem".into(), key: "key.pem".into() };
        for (other, expected) in [
            (
                Plan { room_type: "chat".into(), ..plan() },
                "its room is \"arena\", and \"chat\" is measured",
            ),
            (Plan { players: 12, ..plan() }, "its players is 30, and 12 is measured"),
            (Plan { hz: Some(20), ..plan() }, "its hz is the room's own, and 20 is measured"),
            (
                Plan { drive: steer, ..plan() },
                "its drive is \"messages, 5 a second\", and \
                 \"requests Steer {\\\"angle\\\":1}, 2.5 a second\" is measured",
            ),
            (
                Plan { drive: Drive::Scripts(Vec::new()), script: Some("a.toml".into()), ..plan() },
                "its drive is \"messages, 5 a second\", and \"script a.toml\" is measured",
            ),
            (Plan { tls: Some(certificate), ..plan() }, "its tls is false, and true is measured"),
        ] {
            assert_eq!(check(&before, "capacity", 2, &other).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_result_of_another_version_or_command_is_refused() {
        let before = result(&plan());
        let refused = |command, version| check(&before, command, version, &plan()).unwrap_err();
        assert_eq!(refused("capacity", 3), "it is of version 2, and this program has 3");
        assert_eq!(refused("profile", 2), "it is no result of `profile --json`");
    }

    #[test]
    fn a_figure_must_be_above_0() {
        let of = json!({ "core": 0.0 });
        assert!(positive(&of, "core").unwrap_err().starts_with("core is 0, and must be above 0"));
        assert!(positive(&of, "spread").unwrap_err().starts_with("spread is missing"));
    }
}
