//! The table of settings.

use std::ops::RangeInclusive;

use super::Config;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name: `--name` as a flag (with `-` or `_`), `PLAYFIELD_NAME` in the environment, `name =` in a file.
    pub name: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Number { min: u64, max: u64, get: fn(&Config) -> u64, put: fn(&mut Config, u64) },
    Address,
    Cores,
}

macro_rules! number {
    ($field:ident: $of:ty, $range:expr, $help:literal) => {{
        const RANGE: RangeInclusive<u64> = $range;
        Setting {
            name: stringify!($field),
            help: $help,
            kind: Kind::Number {
                min: *RANGE.start(),
                max: *RANGE.end(),
                get: |config| config.$field as u64,
                put: |config, value| config.$field = value as $of,
            },
        }
    }};
}

static SETTINGS: [Setting; 20] = [
    Setting {
        name: "listen",
        help: "address and port that clients connect to; port 0 = any free one",
        kind: Kind::Address,
    },
    number!(shards: usize, 0..=1_024, "threads that hold connections and run rooms; 0 = one for each core"),
    Setting {
        name: "pin_cores",
        help: "cores that shards are pinned to, in turn, as 0,2; empty = none",
        kind: Kind::Cores,
    },
    number!(max_message_bytes: usize, 64..=64 << 20, "the longest message from a client"),
    number!(http_head_bytes_max: usize, 512..=1 << 20, "the longest HTTP request head"),
    number!(hello_timeout_ms: u64, 10..=600_000, "a client says hello within this time"),
    number!(heartbeat_ms: u64, 20..=3_600_000, "a client is heard at least this often; after twice that it is closed"),
    number!(outbox_bytes_max: usize, 1_024..=1 << 30, "what may wait for a slow client; an event past it closes the connection"),
    number!(outbox_high_bytes: usize, 1_024..=1 << 30, "past this much waiting, a connection is not read from"),
    number!(connections_max: usize, 1..=10_000_000, "connections of the whole node"),
    number!(rooms_max: usize, 1..=10_000_000, "rooms of the whole node"),
    number!(rooms_per_session_max: usize, 1..=1_024, "rooms that one session may be in"),
    number!(name_bytes_max: usize, 1..=1_024, "the longest display name"),
    number!(list_max: usize, 1..=10_000, "rooms in one answer to list"),
    number!(mailbox_max: usize, 1..=1 << 24, "mail from other shards that may wait for one"),
    number!(catch_up_ticks_max: u64, 1..=1_000, "ticks that a late room catches up with; the rest is skipped"),
    number!(compute_threads: usize, 0..=1_024, "threads for computation aside; 0 = one less than cores, at least one"),
    number!(compute_queue_max: usize, 1..=1 << 24, "computations that may wait"),
    number!(shutdown_timeout_ms: u64, 0..=600_000, "how long clients have to take their goodbyes"),
    number!(watchdog_ms: u64, 10..=600_000, "a turn of a shard that takes longer is reported"),
];

/// All settings.
pub fn settings() -> &'static [Setting] {
    &SETTINGS
}

impl Setting {
    /// The default, as it would be written.
    pub fn default(&self) -> String {
        let config = Config::default();
        match self.kind {
            Kind::Number { get, .. } => get(&config).to_string(),
            Kind::Address => config.listen.to_string(),
            Kind::Cores => String::new(),
        }
    }

    /// The least and the greatest value, for numbers.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self.kind {
            Kind::Number { min, max, .. } => Some((min, max)),
            Kind::Address | Kind::Cores => None,
        }
    }

    pub(super) fn apply(&self, config: &mut Config, value: &str) -> Result<(), String> {
        match self.kind {
            Kind::Number { min, max, put, .. } => {
                let number: u64 =
                    value.parse().map_err(|_| format!("not a whole number; it is from {min} to {max}"))?;
                if !(min..=max).contains(&number) {
                    return Err(format!("out of range; it is from {min} to {max}"));
                }
                put(config, number);
            }
            Kind::Address => {
                config.listen =
                    value.parse().map_err(|_| "not an address with a port, as 127.0.0.1:7350".to_owned())?;
            }
            Kind::Cores => {
                let cores = value.split(',').map(str::trim).filter(|core| !core.is_empty());
                let cores: Result<Vec<usize>, _> = cores.map(str::parse).collect();
                config.pin_cores = cores.map_err(|_| "not a list of core numbers, as 0,2".to_owned())?;
            }
        }
        Ok(())
    }
}

/// The setting that was most likely meant: one that differs in at most two letters.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let distances = SETTINGS.iter().map(|setting| (distance(setting.name, name), setting.name));
    distances.min().filter(|(distance, _)| *distance <= 2).map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}
