//! The behavior of players in a run.

use std::io;
use std::time::Duration;

use playfield_load::{Action, Enter, MakeBot, MessageKind, Script, Step};
use serde_json::Value;

/// The longest time between two messages of a player, in seconds. A lower rate counts as none.
const BETWEEN_MESSAGES_MAX_S: f64 = 3600.0;

/// The behavior of players.
#[derive(Clone, Debug, PartialEq)]
pub enum Drive {
    /// Bots in Rust.
    Bot(MakeBot),
    /// Scripts, which join rooms of the type that is measured.
    Scripts(Vec<Script>),
    /// Messages generated from the schema.
    Messages {
        /// The message's name; any message of the room without one.
        name: Option<String>,
        /// The message. Fields that it leaves out are generated.
        value: Option<Value>,
        /// The number that each player sends in a second; 0 for none.
        rate: f64,
        /// Says whether a reply is asked for.
        is_request: bool,
    },
}

impl Drive {
    /// Messages at another rate; what has rates of its own stays as it is.
    #[must_use]
    pub fn at_rate(&self, times: f64) -> Self {
        match self {
            Self::Messages { name, value, rate, is_request } => Self::Messages {
                name: name.clone(),
                value: value.clone(),
                rate: rate * times,
                is_request: *is_request,
            },
            other => other.clone(),
        }
    }

    pub(crate) fn scripts(&self, room_type: &str, players: usize) -> Vec<Script> {
        let step = |action| Step { place: "capacity".into(), action };
        let mut steps = vec![
            step(Action::Join {
                room_type: room_type.into(),
                enter: Enter::Shared { key: "measured-".into(), connections: players },
                options: None,
            }),
            step(Action::WaitForAll),
        ];
        match self {
            Self::Scripts(scripts) => return scripts.clone(),
            Self::Bot(make) => steps.push(step(Action::Bot { make: make.clone() })),
            Self::Messages { rate, .. } if *rate * BETWEEN_MESSAGES_MAX_S < 1.0 => {
                steps.push(step(Action::Hold));
            }
            Self::Messages { name, value, rate, is_request } => {
                let kind = match is_request {
                    true => MessageKind::RequestAhead,
                    false => MessageKind::Send,
                };
                let message = Action::Message {
                    room_type: None,
                    name: name.clone(),
                    value: value.clone(),
                    kind,
                };
                steps.push(step(Action::Repeat {
                    times: None,
                    every: Some(Duration::from_secs_f64(1.0 / rate)),
                    steps: vec![step(message)],
                }));
            }
        }
        vec![Script { weight: 1, token: None, steps }]
    }

    /// Checks that players join rooms of the type that is measured, and no others.
    pub(crate) fn check(&self, room_type: &str) -> io::Result<()> {
        let Self::Scripts(scripts) = self else { return Ok(()) };
        let mut joins = Vec::new();
        scripts.iter().for_each(|script| add_joins(&script.steps, &mut joins));
        let text = match joins.iter().find(|(_, other)| *other != room_type) {
            Some((place, other)) => format!(
                "{place}: the script joins rooms of the type {other:?}, and {room_type:?} is \
                 measured: let it join {room_type:?} alone, or measure {other:?}"
            ),
            None if joins.is_empty() => {
                format!("the script joins no room: let it join {room_type:?}")
            }
            None => return Ok(()),
        };
        Err(io::Error::other(text))
    }
}

/// Adds the room types that steps join, each with the place of its step.
fn add_joins<'a>(steps: &'a [Step], joins: &mut Vec<(&'a str, &'a str)>) {
    for Step { place, action } in steps {
        match action {
            Action::Join { room_type, .. } => joins.push((place, room_type)),
            Action::Repeat { steps, .. } => add_joins(steps, joins),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use playfield_load::{Action, script};

    use super::Drive;

    fn refused(text: &str) -> String {
        let scripts = script::parse("players.toml", text).expect("it is a script");
        Drive::Scripts(scripts).check("arena").expect_err("it joins others").to_string()
    }

    #[test]
    fn a_script_joins_rooms_of_the_type_that_is_measured() {
        let text = "[[script]]\nsteps = [{ repeat = 2, steps = [{ join = \"chat\" }] }]";
        let why = refused(text);
        assert!(why.starts_with("players.toml:2: the script joins rooms of the type \"chat\""));
        assert!(why.contains("\"arena\" is measured"), "{why}");
        let why = refused("[[script]]\nsteps = [{ hold = true }]");
        assert!(why.contains("joins no room"), "{why}");
    }

    #[test]
    fn a_rate_that_is_almost_none_is_none() {
        for rate in [0.0, 1e-300, 1e-20] {
            let drive = Drive::Messages { name: None, value: None, rate, is_request: false };
            let scripts = drive.scripts("arena", 2);
            let last = scripts[0].steps.last().map(|step| &step.action);
            assert_eq!(last, Some(&Action::Hold), "{rate}");
        }
    }
}
