//! Errors about settings.

use std::fmt;

use super::{closest, keys, renamed};

/// A setting that is unknown or has a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) why: String,
}

impl ConfigError {
    /// The setting's name, as it was given; empty if the whole text can't be read.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn new(name: &str, why: impl Into<String>) -> Self {
        Self { name: name.into(), value: None, why: why.into() }
    }

    /// `shown` says how the user would write a setting's name.
    pub(super) fn unknown(name: &str, shown: impl Fn(&str) -> String) -> Self {
        let why = renamed(name, &shown).unwrap_or_else(|| match meant(name) {
            Some(meant) => format!("no setting has this name; did you mean {}?", shown(meant)),
            None => {
                "no setting has this name; `serve --help` and docs/operations.md list them".into()
            }
        });
        Self::new(name, why)
    }
}

/// The name that a wrong one was meant to be: in the same group if possible, which may be misspelt
/// as well, or else in any.
fn meant(wrong: &str) -> Option<&'static str> {
    let split = |name: &'static str| name.rsplit_once('.').unwrap_or(("", name));
    let (wrong_group, wrong_key) = wrong.rsplit_once('.').unwrap_or(("", wrong));
    let groups = keys().map(|name| split(name).0);
    let group = if wrong_group.is_empty() { Some("") } else { closest(wrong_group, groups) };
    let of_group = keys().map(split).filter(|(other, _)| Some(*other) == group);
    let key = closest(wrong_key, of_group.map(|(_, key)| key));
    let name = |group: &str, key: &str| keys().find(|name| split(name) == (group, key));
    match (group, key) {
        (Some(group), Some(key)) => name(group, key),
        _ => {
            let key = closest(wrong_key, keys().map(|name| split(name).1))?;
            keys().find(|name| split(name).1 == key)
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value:?}: {}", self.name, self.why),
            None if self.name.is_empty() => f.write_str(&self.why),
            None => write!(f, "{}: {}", self.name, self.why),
        }
    }
}

impl std::error::Error for ConfigError {}
