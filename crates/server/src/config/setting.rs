//! A setting, for help and for messages.

use super::Config;

/// Settings that stand together, in a file below one heading.
#[derive(Debug)]
pub struct Group {
    /// The heading, such as `limits.address`; empty for the top of the file.
    pub name: &'static str,
    /// A description for people.
    pub help: &'static str,
}

/// One setting, for help and for messages.
#[derive(Debug)]
pub struct Setting {
    /// Its name: its group and its key in a file, such as `http.idle_timeout`. It is also its flag.
    pub name: &'static str,
    /// A description for people.
    pub help: &'static str,
    /// The group that it is in.
    pub group: &'static Group,
    /// The names of its parts, if it is a table. A part can be set by itself: its name is that of
    /// the setting, a dot, and its own.
    pub parts: &'static [&'static str],
    /// Whether its value is shown nowhere, not even if it is wrong.
    pub(super) is_secret: bool,
    /// Whether its value may be a list in a file.
    pub(super) is_list: bool,
    pub(super) default: &'static str,
    pub(super) range: fn(Option<&str>) -> String,
    pub(super) read: Read,
    pub(super) write: fn(&Config, Option<&str>) -> Option<String>,
}

/// Reads a setting, or a part of it, or says why it can't.
type Read = fn(&mut Config, Option<&str>, &str) -> Result<(), String>;

impl Setting {
    /// Its name within its group.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The default value, as it would be written.
    #[must_use]
    pub fn default(&self) -> String {
        self.default.into()
    }

    /// The values that it accepts, as text for people.
    #[must_use]
    pub fn range(&self) -> String {
        (self.range)(None)
    }

    /// Returns whether it is true or false, so that its flag alone can mean true.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        matches!(self.default, "true" | "false")
    }

    /// Returns whether it is none: only programs change it.
    pub(super) fn is_tuning(&self) -> bool {
        self.group.name == "tuning"
    }

    /// Its variable in the environment.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}

/// The variable of a setting or a part of one.
pub(super) fn variable(name: &str) -> String {
    format!("{}{}", super::ENV_PREFIX, name.replace('.', "_").to_ascii_uppercase())
}
