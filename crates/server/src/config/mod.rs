//! Settings: from flags, the environment and a file, all by one table.

mod table;

use std::fmt;
use std::net::SocketAddr;

pub use table::{Setting, settings};

/// All settings of a node. Each has a name, a default and a range; [`settings`] lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Threads that hold connections and run rooms; 0 = one for each core.
    pub shards: usize,
    /// The cores that shards are pinned to, in turn; empty = none.
    pub pin_cores: Vec<usize>,
    /// The longest message from a client, bytes.
    pub max_message_bytes: usize,
    /// The longest HTTP request head, bytes.
    pub http_head_bytes_max: usize,
    /// A client says hello within this time, milliseconds.
    pub hello_timeout_ms: u64,
    /// A client is heard at least this often, milliseconds; after twice that it is closed.
    pub heartbeat_ms: u64,
    /// What may wait for a slow client, bytes.
    pub outbox_bytes_max: usize,
    /// Past this much waiting, a connection is not read from, bytes.
    pub outbox_high_bytes: usize,
    /// Connections of the whole node.
    pub connections_max: usize,
    /// Rooms of the whole node.
    pub rooms_max: usize,
    /// Rooms that one session may be in.
    pub rooms_per_session_max: usize,
    /// The longest display name, bytes.
    pub name_bytes_max: usize,
    /// Rooms in one answer to `list`.
    pub list_max: usize,
    /// Mail from other shards that may wait for one.
    pub mailbox_max: usize,
    /// Ticks that a late room catches up with; the rest is skipped.
    pub catch_up_ticks_max: u64,
    /// Threads for computation aside; 0 = one less than cores, at least one.
    pub compute_threads: usize,
    /// Computations that may wait.
    pub compute_queue_max: usize,
    /// How long clients have to take their goodbyes, milliseconds.
    pub shutdown_timeout_ms: u64,
    /// A turn of a shard that takes longer is reported, milliseconds.
    pub watchdog_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7350)),
            shards: 0,
            pin_cores: Vec::new(),
            max_message_bytes: 1 << 20,
            http_head_bytes_max: 8 << 10,
            hello_timeout_ms: 10_000,
            heartbeat_ms: 30_000,
            outbox_bytes_max: 1 << 20,
            outbox_high_bytes: 64 << 10,
            connections_max: 100_000,
            rooms_max: 100_000,
            rooms_per_session_max: 16,
            name_bytes_max: 64,
            list_max: 100,
            mailbox_max: 16_384,
            catch_up_ticks_max: 5,
            compute_threads: 0,
            compute_queue_max: 1_024,
            shutdown_timeout_ms: 3_000,
            watchdog_ms: 1_000,
        }
    }
}

impl Config {
    /// Sets one setting by its name.
    ///
    /// # Errors
    /// No such setting, or a value that it can't have; the error names both, and says why.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let wrong = |why: String| ConfigError { name: name.to_owned(), value: value.to_owned(), why };
        let setting = settings().iter().find(|setting| setting.name == name).ok_or_else(|| {
            wrong(match table::nearest(name) {
                Some(near) => format!("there is no such setting; did you mean {near}?"),
                None => "there is no such setting; `help serve` lists them".to_owned(),
            })
        })?;
        setting.apply(self, value.trim()).map_err(wrong)
    }

    /// Reads a file of `name = value` lines in TOML, over the defaults.
    ///
    /// # Errors
    /// Not TOML, no such setting, or a value that it can't have.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.read_toml(text)?;
        Ok(config)
    }

    /// Reads such a file over what is set.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn read_toml(&mut self, text: &str) -> Result<(), ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError {
            name: "the settings file".into(),
            value: String::new(),
            why: error.to_string(),
        })?;
        table.iter().try_for_each(|(name, value)| match value {
            toml::Value::String(text) => self.set(name, text),
            toml::Value::Integer(number) => self.set(name, &number.to_string()),
            toml::Value::Array(items) if items.iter().all(toml::Value::is_integer) => {
                let items: Vec<String> =
                    items.iter().filter_map(toml::Value::as_integer).map(|item| item.to_string()).collect();
                self.set(name, &items.join(","))
            }
            other => Err(ConfigError {
                name: name.clone(),
                value: format!("a {}", other.type_str()),
                why: "a setting is a number, a text or a list of numbers".into(),
            }),
        })
    }

    /// Reads variables named `PLAYFIELD_` and a setting's name in capitals, over the defaults. Other variables are left alone.
    ///
    /// # Errors
    /// No such setting, or a value that it can't have.
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.read_env(variables)?;
        Ok(config)
    }

    /// Reads such variables over what is set. `PLAYFIELD_CONFIG`, which names a settings file, is left to the command line.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn read_env(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (variable, value) in variables {
            if let Some(name) = variable
                .strip_prefix("PLAYFIELD_")
                .filter(|name| *name != "CONFIG" && !name.starts_with("LAW_"))
            {
                self.set(&name.to_lowercase(), &value)
                    .map_err(|error| ConfigError { name: variable.clone(), ..error })?;
            }
        }
        Ok(())
    }
}

/// A setting that can't be set so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    name: String,
    value: String,
    why: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, why } = self;
        if value.is_empty() { write!(f, "{name}: {why}") } else { write!(f, "{name} = {value:?}: {why}") }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_its_own_default_and_refuses_what_is_past_its_range() {
        for setting in settings() {
            let mut config = Config::default();
            config.set(setting.name, &setting.default()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(config, Config::default(), "{}", setting.name);
            if let Some((min, max)) = setting.range() {
                config.set(setting.name, &max.to_string()).unwrap();
                config.set(setting.name, &min.to_string()).unwrap();
                assert!(
                    config.set(setting.name, &(u128::from(max) + 1).to_string()).is_err(),
                    "{}",
                    setting.name
                );
                if min > 0 {
                    assert!(config.set(setting.name, &(min - 1).to_string()).is_err(), "{}", setting.name);
                }
            }
        }
    }

    #[test]
    fn a_bad_value_is_named_with_its_setting_and_the_reason() {
        let error = Config::default().set("max_message_bytes", "12x").unwrap_err().to_string();
        assert_eq!(error, "max_message_bytes = \"12x\": not a whole number; it is from 64 to 67108864");
        let error = Config::default().set("max_mesage_bytes", "12").unwrap_err().to_string();
        assert!(error.contains("did you mean max_message_bytes?"), "{error}");
        let error = Config::default().set("listen", "nowhere").unwrap_err().to_string();
        assert!(error.starts_with("listen = \"nowhere\": not an address"), "{error}");
    }

    #[test]
    fn a_file_and_the_environment_set_the_same_things() {
        let file = Config::from_toml("shards = 3\nlisten = \"127.0.0.1:9\"\npin_cores = [0, 2]\n").unwrap();
        let variables = [
            ("PLAYFIELD_SHARDS", "3"),
            ("PLAYFIELD_LISTEN", "127.0.0.1:9"),
            ("PLAYFIELD_PIN_CORES", "0,2"),
            ("HOME", "/"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Config::from_env(variables).unwrap(), file);
        assert_eq!(file.pin_cores, [0, 2]);
        assert!(Config::from_toml("shards = ").is_err());
        assert!(Config::from_toml("shards = true").unwrap_err().to_string().contains("shards"));
        let variable = ("PLAYFIELD_SHARDS".to_owned(), "many".to_owned());
        assert!(Config::from_env([variable]).unwrap_err().to_string().contains("PLAYFIELD_SHARDS"));
    }
}
