//! Errors about settings.

use std::fmt;

use super::{Setting, closest, find, keys, renamed, settings};

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
        let key = name.rsplit('.').next().unwrap_or(name);
        let old = renamed(name, &shown).or_else(|| renamed(key, &shown));
        let why = old.unwrap_or_else(|| match (meant(name), settings_in(name)) {
            (_, settings) if !settings.is_empty() => {
                format!("this is a group of settings: {}", settings.join(", "))
            }
            (Some(meant), _) => format!("no setting has this name; did you mean {}?", shown(meant)),
            (None, _) => match name.rsplit_once('.').map(|(group, _)| settings_in(group)) {
                Some(settings) if !settings.is_empty() => {
                    format!("no setting has this name; the group has {}", settings.join(", "))
                }
                _ => "no setting has this name; `serve --help` and docs/operations.md list them"
                    .into(),
            },
        });
        Self::new(name, why)
    }
}

/// The keys of the settings in a group.
fn settings_in(group: &str) -> Vec<&'static str> {
    let of_group = settings().iter().filter(|setting| setting.group.name == group);
    of_group.filter(|_| !group.is_empty()).map(Setting::key).collect()
}

/// The name that a wrong one was meant to be: the same key in another group, or one like it in the
/// same group, which may be misspelt as well, or else in any.
fn meant(wrong: &str) -> Option<&'static str> {
    let split = |name: &'static str| name.rsplit_once('.').unwrap_or(("", name));
    let (wrong_group, wrong_key) = wrong.rsplit_once('.').unwrap_or(("", wrong));
    let is_part = || settings().iter().any(|setting| setting.parts.contains(&wrong_key));
    let groups = keys().map(|name| split(name).0);
    let group = if wrong_group.is_empty() { Some("") } else { closest(wrong_group, groups) };
    let of_group = keys().map(split).filter(|(other, _)| Some(*other) == group);
    let key = closest(wrong_key, of_group.map(|(_, key)| key));
    let name = |group: &str, key: &str| keys().find(|name| split(name) == (group, key));
    let same = |key: &str| settings().iter().find(|setting| setting.key() == key);
    if !wrong_group.is_empty() && find(wrong_group).is_none() && is_part() {
        // A part of a setting that does not exist: the setting is what is wrong.
        let setting = wrong_group.rsplit('.').next().and_then(same);
        if let Some(setting) = setting {
            return Some(setting.name);
        }
    }
    match (group, key) {
        (Some(group), Some(key)) if key == wrong_key => name(group, key),
        (group, key) => {
            if let Some(setting) = same(wrong_key) {
                return Some(setting.name);
            }
            if let (Some(group), Some(key)) = (group, key) {
                return name(group, key);
            }
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
