//! Settings: what they are, where they come from, and errors about wrong values.

mod closest;
mod cluster;
mod descriptors;
mod duration;
mod error;
mod network;
mod origin;
mod renamed;
mod secret;
mod setting;
mod settings;
mod tables;
mod url;
mod value;

use std::sync::LazyLock;
use std::time::Duration;

pub use closest::closest;
pub use descriptors::Descriptors;
pub use error::ConfigError;
pub use network::Network;
pub(crate) use network::masked;
pub use origin::Origin;
pub use renamed::renamed;
pub use secret::Secret;
pub use setting::{Group, Setting};
pub use settings::{
    AddressLimits, Cluster, Config, Http, Journal, Limits, Recordings, Rooms, SessionLimits,
    Threads, Timeouts, Tls, Tuning, WebSocket, settings,
};
pub use tables::{DeviceLimits, Listed, NameBytes, OutboxBytes, Per, Queues, Quota, RateLimit};

pub use url::{ClientUrl, EngineUrl};

use crate::memory_limit::MemoryLimit;
use settings::tuning;

/// The prefix of a setting's name in the environment.
const ENV_PREFIX: &str = "PLAYFIELD_";

/// `PLAYFIELD_CONFIG` is not a setting: it names a file of settings, which is for the program to
/// read.
const FILE: &str = "CONFIG";

/// The memory that clients may make a node hold, unless that is set: this much, and no more than
/// one part in so many of what the process may use.
const MEMORY_MAX: usize = 1 << 30;
const MEMORY_PART: u64 = 4;
/// No node serves anyone with less.
const MEMORY_MIN: usize = 1 << 20;

/// The names of all settings, and of the parts of those that are tables.
pub fn keys() -> impl Iterator<Item = &'static str> {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let of = |setting: &Setting| {
            let name = setting.name;
            let parts = setting.parts.iter().map(move |part| format!("{name}.{part}"));
            [name.to_owned()].into_iter().chain(parts)
        };
        settings().iter().flat_map(of).collect()
    });
    KEYS.iter().map(String::as_str)
}

/// The setting of a name, which may be that of a part.
#[must_use]
pub fn setting_of(name: &str) -> Option<&'static Setting> {
    find(name).map(|(setting, _)| setting).filter(|setting| !setting.is_tuning())
}

/// The names of all that is limited: [`keys`], and fields of [`Tuning`].
pub(crate) fn limit_keys() -> impl Iterator<Item = &'static str> {
    keys().chain(tuning().iter().map(|field| field.name))
}

/// The setting of a name, and the part of it that the name is for.
pub(crate) fn find(name: &str) -> Option<(&'static Setting, Option<&'static str>)> {
    settings().iter().chain(tuning()).find_map(|setting| {
        let rest = name.strip_prefix(setting.name)?;
        if rest.is_empty() {
            return Some((setting, None));
        }
        let part = rest.strip_prefix('.')?;
        setting.parts.iter().find(|known| **known == part).map(|part| (setting, Some(*part)))
    })
}

impl Config {
    /// Sets one setting, or a part of one, from text. A table keeps the parts that are not named,
    /// except the burst of a rate: without one it is as much as the number.
    /// Fields of [`Tuning`] can be set as well, such as `tuning.hello_bytes`.
    ///
    /// # Errors
    /// If there is none of this name, or it does not take this value. Nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let (setting, part) =
            find(name).ok_or_else(|| ConfigError::unknown(name, str::to_owned))?;
        (setting.read)(self, part, value.trim()).map_err(|why| ConfigError {
            name: name.into(),
            value: (!setting.is_secret).then(|| value.into()),
            why: format!("{why}; give {}", (setting.range)(part)),
        })
    }

    /// Sets several settings, and parts of settings, that were given in no order: a table before
    /// its parts, and the number of a rate before its burst.
    ///
    /// # Errors
    /// As [`set`](Self::set), and if a rate is given by the second and by the minute. Settings
    /// before the wrong one are set.
    pub fn set_all(&mut self, mut values: Vec<(&str, String)>) -> Result<(), ConfigError> {
        let is_part = |key: &str| find(key).is_some_and(|(_, part)| part.is_some());
        values.sort_by_key(|(key, _)| (is_part(key), key.ends_with(".burst")));
        for (key, _) in &values {
            let rate = key.strip_suffix(".per_minute").map(|rate| format!("{rate}.per_second"));
            if rate.is_some_and(|other| values.iter().any(|(key, _)| *key == other)) {
                return Err(ConfigError::new(key, "both per_second and per_minute; choose one"));
            }
        }
        values.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// The value of a setting, or of a part of one, as [`set`](Self::set) takes it; `None` if there
    /// is none of this name, or the part is not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        let (setting, part) = find(name)?;
        (setting.write)(self, part)
    }

    /// Returns the limit that a [key](limit_keys) sets: a number, that of a rate, or a time in
    /// milliseconds.
    pub(crate) fn limit(&self, key: &str) -> Option<u64> {
        let number = |name: &str| self.get(name)?.parse().ok();
        let time = || Some(duration::read(&self.get(key)?).ok()?.as_millis() as u64);
        number(key)
            .or_else(|| number(&format!("{key}.per_second")))
            .or_else(|| number(&format!("{key}.per_minute")))
            .or_else(time)
    }

    /// Reads settings from TOML: groups are tables, and a list may be a list. What is not named has
    /// its default.
    ///
    /// # Errors
    /// If the text is not TOML, or as [`set`](Self::set).
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.read_toml(text)?;
        Ok(config)
    }

    /// Like [`from_toml`](Self::from_toml), but keeps the present value of a setting that is not
    /// named.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml). Settings before the wrong one are set.
    pub fn read_toml(&mut self, text: &str) -> Result<(), ConfigError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::new("", not_toml(text, &error)))?;
        self.read_table("", &table)
    }

    fn read_table(&mut self, path: &str, table: &toml::Table) -> Result<(), ConfigError> {
        if let Some((Setting { parts: ["per_second", "per_minute", ..], .. }, None)) = find(path)
            && table.contains_key("per_second")
            && table.contains_key("per_minute")
        {
            return Err(ConfigError::new(path, "both per_second and per_minute; choose one"));
        }
        // The number of a rate sets its burst, too.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| *key == "burst");
        for (key, value) in entries {
            let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let found = find(&name).filter(|(setting, _)| !setting.is_tuning());
            let may_be_table =
                found.is_none_or(|(setting, part)| part.is_none() && !setting.parts.is_empty());
            match value {
                toml::Value::Table(inner)
                    if may_be_table && (!inner.is_empty() || holds_keys(&name)) =>
                {
                    self.read_table(&name, inner)?;
                }
                _ => {
                    let (setting, _) =
                        found.ok_or_else(|| ConfigError::unknown(&name, str::to_owned))?;
                    let text = plain(value, setting.is_list)
                        .map_err(|why| ConfigError::new(&name, why))?;
                    self.set(&name, &text)?;
                }
            }
        }
        Ok(())
    }

    /// Reads settings from variables such as `PLAYFIELD_LISTEN` and `PLAYFIELD_TIMEOUTS_HELLO`;
    /// others are passed over. What is not named has its default.
    ///
    /// # Errors
    /// As [`set`](Self::set), also for a variable with this beginning that names no setting: it may
    /// be misspelt.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.read_env(variables)?;
        Ok(config)
    }

    /// Like [`from_env`](Self::from_env), but keeps the present value of a setting that is not
    /// named.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env). Settings before the wrong one may be set.
    pub fn read_env(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        let mut values = Vec::new();
        for (name, value) in variables {
            let Some(short) = name.strip_prefix(ENV_PREFIX).filter(|short| *short != FILE) else {
                continue;
            };
            let Some(key) = keys().find(|key| setting::variable(key) == name) else {
                let error = unknown_variable(&short.to_ascii_lowercase());
                return Err(ConfigError { name, ..error });
            };
            values.push((key, value));
        }
        // The error names what the user wrote.
        let named =
            |error: ConfigError| ConfigError { name: setting::variable(&error.name), ..error };
        self.set_all(values).map_err(named)
    }

    /// Checks settings against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let OutboxBytes { high, max } = self.limits.session.outbox_bytes;
        if high > max {
            return Err(format!(
                "limits.session.outbox_bytes.high = {high}: more than max, which is {max}"
            ));
        }
        let bytes = self.limits.memory.total;
        if (1..MEMORY_MIN).contains(&bytes) {
            return Err(format!(
                "limits.memory.total = {bytes}: less than {MEMORY_MIN}; 0 leaves it to the node"
            ));
        }
        for (name, rate) in self.limits.address.rates() {
            let minute =
                rate.count.saturating_mul(Per::Minute.time().as_secs() / rate.per.time().as_secs());
            if rate.burst() > minute {
                return Err(format!(
                    "limits.address.{name}.burst = {}: more than the {minute} of a minute, after \
                     which addresses are forgotten",
                    rate.burst()
                ));
            }
        }
        self.cluster.check()?;
        let Tls { cert, key, self_signed, only } = &self.tls;
        let is_set = |path: &std::path::Path| !path.as_os_str().is_empty();
        match (is_set(cert), is_set(key)) {
            (true, false) => return Err("tls.cert is set, but tls.key is not".into()),
            (false, true) => return Err("tls.key is set, but tls.cert is not".into()),
            (true, true) if *self_signed => {
                return Err("tls.self_signed and tls.cert are both set; choose one".into());
            }
            (false, false) if *only && !self_signed => {
                return Err("tls.only is set, but neither tls.cert nor tls.self_signed".into());
            }
            _ => {}
        }
        Ok(())
    }

    /// The memory that clients may make the node hold, in bytes. If it is left to the node, no more
    /// than a part of what the process may use; then also what to log if that is less than usual.
    pub(crate) fn memory_max(&self, limit: Option<&MemoryLimit>) -> (usize, Option<String>) {
        let total = self.limits.memory.total;
        if total > 0 {
            return (total, None);
        }
        let Some(MemoryLimit { bytes, said_by }) = limit else { return (MEMORY_MAX, None) };
        let part = usize::try_from(bytes / MEMORY_PART).unwrap_or(usize::MAX);
        if part >= MEMORY_MAX {
            return (MEMORY_MAX, None);
        }
        let total = part.max(MEMORY_MIN);
        let text = format!(
            "limits.memory.total is {} MiB instead of {} MiB: the process may use {} MiB of memory \
             ({}), and clients get a quarter. Set it to choose",
            total >> 20,
            MEMORY_MAX >> 20,
            bytes >> 20,
            said_by.display()
        );
        (total, Some(text))
    }

    /// Maximum size of a message. A stranger is a client that has no session.
    #[inline]
    pub(crate) fn message_bytes_max(&self, is_stranger: bool) -> usize {
        let all = self.limits.message_bytes;
        if is_stranger { self.tuning.hello_bytes.min(all) } else { all }
    }

    /// The busy share of a shard's time with which it gets no new rooms, as a time per second.
    pub(crate) fn busy_max(&self) -> Duration {
        Duration::from_millis(self.rooms.busy_percent * 10)
    }
}

impl AddressLimits {
    /// The rates, with their keys.
    fn rates(&self) -> [(&'static str, RateLimit); 6] {
        [
            ("sessions", self.sessions),
            ("resumes", self.resumes),
            ("joins", self.joins),
            ("rooms_created", self.rooms_created),
            ("keys_missed", self.keys_missed),
            ("channels_opened", self.channels_opened),
        ]
    }
}

/// The error about a variable, by its name without the prefix, in lower case.
fn unknown_variable(short: &str) -> ConfigError {
    if renamed(short, str::to_owned).is_some() {
        return ConfigError::unknown(short, setting::variable);
    }
    let variables: Vec<String> = keys().map(|key| key.replace('.', "_")).collect();
    let meant = closest(short, variables.iter().map(String::as_str));
    match meant.and_then(|meant| keys().find(|key| key.replace('.', "_") == meant)) {
        Some(key) => ConfigError::new(
            short,
            format!("no setting has this name; did you mean {}?", setting::variable(key)),
        ),
        None => ConfigError::unknown(short, setting::variable),
    }
}

/// Returns whether settings or their parts lie below a name.
fn holds_keys(name: &str) -> bool {
    keys().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Describes where a text is not TOML, and why. The line itself is not shown: it may hold a secret.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before
        .map_or(String::new(), |before| format!("line {}: ", before.matches('\n').count() + 1));
    format!("not TOML: {line}{}", error.message())
}

/// A TOML value as one would write it in the environment.
fn plain(value: &toml::Value, may_be_list: bool) -> Result<String, &'static str> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(is_set) => Ok(is_set.to_string()),
        toml::Value::Array(items) if may_be_list => {
            let items: Result<Vec<String>, _> =
                items.iter().map(|item| plain(item, false)).collect();
            Ok(items?.join(","))
        }
        toml::Value::Array(_) => Err("a list; give one value"),
        toml::Value::Float(number) => Ok(format!("{number:?}")),
        toml::Value::Datetime(_) => Err("a date"),
        toml::Value::Table(_) => Err("a table; give one value"),
    }
}

#[cfg(test)]
mod tests;
