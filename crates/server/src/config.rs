//! Settings: what they are, where they come from, and errors about wrong values.

mod closest;
mod descriptors;
mod network;
mod origin;
mod secret;
mod settings;

use std::fmt;
use std::time::Duration;

pub use closest::closest;
pub use descriptors::Descriptors;
pub use network::Network;
pub(crate) use network::masked;
pub use origin::Origin;
pub use secret::Secret;
pub use settings::{Config, Setting, settings};

use crate::memory_limit::MemoryLimit;

/// The prefix of a setting's name in the environment.
const ENV_PREFIX: &str = "PLAYFIELD_";

/// `PLAYFIELD_CONFIG` is not a setting: it names a file of settings, which is for the program to
/// read.
const FILE: &str = "CONFIG";

/// The memory that clients may make a node hold, unless that is set: this much, and no more than
/// one part in so many of what the process may use.
const PEER_BYTES_MAX: usize = 1 << 30;
const PEER_BYTES_PART: u64 = 4;
/// No node serves anyone with less.
const PEER_BYTES_MIN: usize = 1 << 20;

/// A setting that is unknown or has a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    name: String,
    value: Option<String>,
    why: String,
}

impl ConfigError {
    /// The setting's name, as it was given; empty if the whole text can't be read.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `shown` says how the user would write a setting's name.
    fn unknown(name: &str, shown: impl FnOnce(&str) -> String) -> Self {
        let why = match closest(name, settings().iter().map(|setting| setting.name)) {
            Some(meant) => format!("no setting has this name; did you mean {}?", shown(meant)),
            None => {
                "no setting has this name; `help serve` and docs/operations.md list them".into()
            }
        };
        Self { name: name.into(), value: None, why }
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

impl Config {
    /// Sets one setting from text.
    ///
    /// # Errors
    /// If there is none of this name, or it does not take this value. Nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let setting = settings()
            .iter()
            .find(|setting| setting.name == name)
            .ok_or_else(|| ConfigError::unknown(name, str::to_owned))?;
        setting.read(self, value).map_err(|why| ConfigError {
            name: name.into(),
            value: (!setting.is_secret).then(|| value.into()),
            why: format!("{why}; give {}", setting.range()),
        })
    }

    /// The value of a setting, as [`set`](Self::set) takes it; `None` if there is none of this
    /// name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        settings().iter().find(|setting| setting.name == name).map(|setting| setting.write(self))
    }

    /// Reads settings from TOML: `name = value`, where a list may be a list. What is not named has
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
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError {
            name: String::new(),
            value: None,
            why: not_toml(text, &error),
        })?;
        for (name, value) in &table {
            let text = plain(name, value).map_err(|why| ConfigError {
                name: name.clone(),
                value: None,
                why: why.into(),
            })?;
            self.set(name, &text)?;
        }
        Ok(())
    }

    /// Reads settings from variables such as `PLAYFIELD_LISTEN`; others are passed over. What is
    /// not named has its default.
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
    /// As [`from_env`](Self::from_env). Settings before the wrong one are set.
    pub fn read_env(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (name, value) in variables {
            let Some(short) = name.strip_prefix(ENV_PREFIX).filter(|short| *short != FILE) else {
                continue;
            };
            let setting = short.to_ascii_lowercase();
            let set = match self.get(&setting) {
                Some(_) => self.set(&setting, &value),
                None => Err(ConfigError::unknown(&setting, |meant| {
                    format!("{ENV_PREFIX}{}", meant.to_ascii_uppercase())
                })),
            };
            // The error names what the user wrote.
            set.map_err(|error| ConfigError { name, ..error })?;
        }
        Ok(())
    }

    /// Checks settings against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (high, most) = (self.outbox_high_bytes, self.outbox_bytes_max);
        if high > most {
            return Err(format!(
                "outbox_high_bytes = {high}: more than outbox_bytes_max, which is {most}"
            ));
        }
        let bytes = self.peer_bytes_max;
        if (1..PEER_BYTES_MIN).contains(&bytes) {
            return Err(format!(
                "peer_bytes_max = {bytes}: less than {PEER_BYTES_MIN}; 0 leaves it to the node"
            ));
        }
        let is_set = |path: &std::path::Path| !path.as_os_str().is_empty();
        match (is_set(&self.tls_cert), is_set(&self.tls_key)) {
            (true, false) => return Err("tls_cert is set, but tls_key is not".into()),
            (false, true) => return Err("tls_key is set, but tls_cert is not".into()),
            (true, true) if self.tls_self_signed => {
                return Err("tls_self_signed and tls_cert are both set; choose one".into());
            }
            (false, false) if self.tls_only && !self.tls_self_signed => {
                return Err("tls_only is set, but neither tls_cert nor tls_self_signed".into());
            }
            _ => {}
        }
        Ok(())
    }

    /// The memory that clients may make the node hold, in bytes.
    pub(crate) fn peer_bytes_max(&self) -> usize {
        if self.peer_bytes_max == 0 { PEER_BYTES_MAX } else { self.peer_bytes_max }
    }

    /// If the memory for clients was left to the node: no more than a part of what the process may
    /// use. What to log if that is less than usual.
    pub(crate) fn fit_memory(&mut self, limit: Option<&MemoryLimit>) -> Option<String> {
        if self.peer_bytes_max > 0 {
            return None;
        }
        self.peer_bytes_max = PEER_BYTES_MAX;
        let MemoryLimit { bytes, said_by } = limit?;
        let part = usize::try_from(bytes / PEER_BYTES_PART).unwrap_or(usize::MAX);
        if part >= PEER_BYTES_MAX {
            return None;
        }
        self.peer_bytes_max = part.max(PEER_BYTES_MIN);
        Some(format!(
            "peer_bytes_max is {} MiB instead of {} MiB: the process may use {} MiB of memory \
             ({}), and clients get a quarter. Set it to choose",
            self.peer_bytes_max >> 20,
            PEER_BYTES_MAX >> 20,
            bytes >> 20,
            said_by.display()
        ))
    }

    pub(crate) fn tls_reload(&self) -> Duration {
        Duration::from_millis(self.tls_reload_ms)
    }

    /// Maximum size of a message. A stranger is a client that has no session.
    #[inline]
    pub(crate) fn message_bytes_max(&self, is_stranger: bool) -> usize {
        let all = self.max_message_bytes;
        if is_stranger { self.hello_bytes_max.min(all) } else { all }
    }

    pub(crate) fn message_timeout(&self) -> Duration {
        Duration::from_millis(self.message_timeout_ms)
    }

    pub(crate) fn hello_timeout(&self) -> Duration {
        Duration::from_millis(self.hello_timeout_ms)
    }

    pub(crate) fn lateness_max(&self) -> Duration {
        Duration::from_millis(self.lateness_max_ms)
    }

    /// The busy share of a shard's time with which it gets no new rooms, as a time per second.
    pub(crate) fn busy_max(&self) -> Duration {
        Duration::from_millis(self.busy_max_percent * 10)
    }

    pub(crate) fn http_request_timeout(&self) -> Duration {
        Duration::from_millis(self.http_request_timeout_ms)
    }

    pub(crate) fn http_answer_timeout(&self) -> Duration {
        Duration::from_millis(self.http_answer_timeout_ms)
    }

    pub(crate) fn http_idle_timeout(&self) -> Duration {
        Duration::from_millis(self.http_idle_timeout_ms)
    }

    pub(crate) fn ask_timeout(&self) -> Duration {
        Duration::from_millis(self.ask_timeout_ms)
    }

    pub(crate) fn session_grace(&self) -> Duration {
        Duration::from_millis(self.session_grace_ms)
    }

    pub(crate) fn channel_linger(&self) -> Duration {
        Duration::from_millis(self.channel_linger_ms)
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms)
    }

    pub(crate) fn close_timeout(&self) -> Duration {
        Duration::from_millis(self.close_timeout_ms)
    }

    pub(crate) fn shutdown_timeout(&self) -> Duration {
        Duration::from_millis(self.shutdown_timeout_ms)
    }

    pub(crate) fn watchdog(&self) -> Duration {
        Duration::from_millis(self.watchdog_ms)
    }
}

/// Describes where a text is not TOML, and why. The line itself is not shown: it may hold a secret.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before
        .map_or(String::new(), |before| format!("line {}: ", before.matches('\n').count() + 1));
    format!("not TOML: {line}{}", error.message())
}

/// A TOML value as one would write it in the environment.
fn plain(name: &str, value: &toml::Value) -> Result<String, &'static str> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(is_set) => Ok(is_set.to_string()),
        toml::Value::Array(items) if LISTS.contains(&name) => {
            let items: Result<Vec<String>, _> = items.iter().map(|item| plain("", item)).collect();
            Ok(items?.join(","))
        }
        toml::Value::Array(_) => Err("a list; give one value"),
        toml::Value::Float(_) => Err("not a whole number"),
        toml::Value::Datetime(_) => Err("a date"),
        toml::Value::Table(_) => Err("a table; put settings at the top of the file"),
    }
}

/// The settings that are lists.
const LISTS: [&str; 4] = ["pin_cores", "allowed_origins", "trusted_addresses", "trusted_proxies"];

#[cfg(test)]
mod tests {
    use super::{Config, settings};
    use crate::memory_limit::MemoryLimit;

    fn set(name: &str, value: &str) -> String {
        match Config::default().set(name, value) {
            Ok(()) => "taken".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_default_can_be_set_and_is_what_is_there_unless_set() {
        let mut config = Config::default();
        for setting in settings() {
            assert_eq!(config.get(setting.name), Some(setting.default()), "{}", setting.name);
            config.set(setting.name, &setting.default()).unwrap();
            assert!(!setting.help.is_empty() && !setting.range().is_empty(), "{}", setting.name);
        }
        assert_eq!(config, Config::default());
    }

    #[test]
    fn every_number_is_refused_beyond_its_range() {
        for setting in settings() {
            let range = setting.range();
            let Some((least, most)) = range.split_once("..=") else { continue };
            assert_eq!(set(setting.name, least), "taken");
            assert_eq!(set(setting.name, most), "taken");
            let beyond = (most.parse::<u128>().unwrap() + 1).to_string();
            assert!(set(setting.name, &beyond).contains("too large"), "{}", setting.name);
            if let Some(below) = least.parse::<u128>().unwrap().checked_sub(1) {
                assert!(
                    set(setting.name, &below.to_string()).contains("too small"),
                    "{}",
                    setting.name
                );
            }
        }
    }

    #[test]
    fn an_error_names_the_setting_the_value_and_what_to_give() {
        assert_eq!(
            set("max_message_bytes", "12x"),
            r#"max_message_bytes = "12x": not a whole number; give 64..=16777216"#
        );
        assert_eq!(
            set("max_message_bytes", "99999999999999999999999"),
            r#"max_message_bytes = "99999999999999999999999": too large; give 64..=16777216"#
        );
        assert!(
            set("listen", "here")
                .starts_with(r#"listen = "here": not an address and a port; give "#)
        );
        assert!(
            set("pin_cores", "0,x")
                .starts_with(r#"pin_cores = "0,x": "x" is not a core's number; give "#)
        );
        assert_eq!(
            set("websocket_deflate", "yes"),
            r#"websocket_deflate = "yes": neither true nor false; give true or false"#
        );
        assert!(
            set("allowed_origins", "https://a,*")
                .starts_with(r#"allowed_origins = "https://a,*": "*" is not an origin: "#)
        );
        assert!(
            set("trusted_proxies", "10.0.0.0/8,proxy").starts_with(
                r#"trusted_proxies = "10.0.0.0/8,proxy": "proxy" is not an address or "#
            )
        );
    }

    #[test]
    fn no_error_shows_a_secret() {
        for secret in ["short-secret", "a secret with spaces in it"] {
            let error = set("console_token", secret);
            assert!(error.starts_with("console_token: it has "), "{error}");
            let named = [("PLAYFIELD_CONSOLE_TOKEN".to_owned(), secret.to_owned())];
            let by_env = Config::from_env(named).unwrap_err();
            let toml = |text: String| Config::from_toml(&text).unwrap_err().to_string();
            let by_toml = toml(format!("console_token = \"{secret}\""));
            let broken = toml(format!("shards = 1\nconsole_token = \"{secret}\nlist_max = 1"));
            assert!(broken.starts_with("not TOML: line 2: "), "{broken}");
            let bare = toml(format!("console_token = {secret}"));
            for text in [error, by_env.to_string(), format!("{by_env:?}"), by_toml, broken, bare] {
                assert!(!text.contains("secret"), "{text}");
            }
        }
    }

    #[test]
    fn the_memory_for_clients_follows_the_machine_unless_it_is_set() {
        let limit = |bytes| MemoryLimit { bytes, said_by: "/sys/fs/cgroup/memory.max".into() };
        for (set, may_use, expected) in [
            (0, None, 1 << 30),
            (0, Some(4 << 30), 1 << 30),
            (0, Some(512 << 20), 128 << 20),
            (0, Some(1 << 20), 1 << 20),
            (700 << 20, Some(512 << 20), 700 << 20),
        ] {
            let mut config = Config { peer_bytes_max: set, ..Config::default() };
            let said = config.fit_memory(may_use.map(limit).as_ref());
            assert_eq!(config.peer_bytes_max, expected);
            assert_eq!(said.is_some(), set == 0 && expected < 1 << 30);
            if expected == 128 << 20 {
                let text = "peer_bytes_max is 128 MiB instead of 1024 MiB: the process may use \
                            512 MiB of memory (/sys/fs/cgroup/memory.max), and clients get a \
                            quarter. Set it to choose";
                assert_eq!(said.as_deref(), Some(text));
            }
        }
        let config = Config { peer_bytes_max: 5, ..Config::default() };
        assert!(config.check().unwrap_err().starts_with("peer_bytes_max = 5: less than 1048576"));
    }

    #[test]
    fn an_unknown_setting_is_answered_with_the_one_that_was_meant() {
        assert_eq!(
            set("max_mesage_bytes", "1"),
            "max_mesage_bytes: no setting has this name; did you mean max_message_bytes?"
        );
        assert_eq!(
            set("verbose", "1"),
            "verbose: no setting has this name; `help serve` and docs/operations.md list them"
        );
        let error = Config::from_toml("conections_max = 1").unwrap_err().to_string();
        assert!(error.ends_with("did you mean connections_max?"), "{error}");
        let variable = ("PLAYFIELD_SHRADS".to_owned(), "2".to_owned());
        assert_eq!(
            Config::from_env([variable]).unwrap_err().to_string(),
            "PLAYFIELD_SHRADS: no setting has this name; did you mean PLAYFIELD_SHARDS?"
        );
    }

    #[test]
    fn every_setting_stands_in_the_documentation() {
        let page = include_str!("../../../docs/operations.md");
        for setting in settings() {
            assert!(page.contains(&format!("\n| `{}` | ", setting.name)), "{}", setting.name);
        }
    }

    #[test]
    fn settings_come_from_toml() {
        let text = "listen = \"0.0.0.0:1\"\nshards = 2\npin_cores = [0, 1]\n";
        let config = Config::from_toml(text).unwrap();
        assert_eq!(config.get("listen").as_deref(), Some("0.0.0.0:1"));
        assert_eq!((config.shards, &config.pin_cores), (2, &vec![0, 1]));
        let config = Config::from_toml(
            "websocket_deflate = true\nallowed_origins = [\"https://a\", \"http://B:80\"]",
        )
        .unwrap();
        assert!(config.websocket_deflate);
        assert_eq!(config.get("allowed_origins").as_deref(), Some("https://a,http://b"));
        assert_eq!(Config::from_toml("").unwrap(), Config::default());

        let error = Config::from_toml("shards = -1").unwrap_err().to_string();
        assert_eq!(error, r#"shards = "-1": not a whole number; give 0..=1024"#);
        for (text, expected) in [
            ("shards = [2]", "shards: a list; give one value"),
            ("list_max = 7.0", "list_max: not a whole number"),
            ("pin_cores = [[0]]", "pin_cores: a list; give one value"),
        ] {
            assert_eq!(Config::from_toml(text).unwrap_err().to_string(), expected);
        }
        assert!(Config::from_toml("shards = ").unwrap_err().to_string().starts_with("not TOML: "));
    }

    #[test]
    fn settings_come_from_the_environment() {
        let variables = |name: &str, value: &str| {
            [("HOME".to_owned(), "/".to_owned()), (name.into(), value.into())]
        };
        assert_eq!(Config::from_env(variables("PLAYFIELD_SHARDS", "3")).unwrap().shards, 3);
        assert_eq!(
            Config::from_env(variables("PLAYFIELD_CONFIG", "a.toml")),
            Ok(Config::default())
        );
        let error =
            Config::from_env(variables("PLAYFIELD_SHARDS", "many")).unwrap_err().to_string();
        assert_eq!(error, r#"PLAYFIELD_SHARDS = "many": not a whole number; give 0..=1024"#);
        let error = Config::from_env(variables("PLAYFIELD_SHARD", "1")).unwrap_err();
        assert_eq!(error.name(), "PLAYFIELD_SHARD");
    }
}
