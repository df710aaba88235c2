//! The table of settings.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use log::LevelFilter;

use super::Origin;

/// One setting, for help and for messages.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as in a file; in the environment it is in capitals, after `PLAYFIELD_`. The unit
    /// stands last.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    default: &'static str,
    range: fn() -> String,
    read: fn(&mut Config, &str) -> Result<(), String>,
    write: fn(&Config) -> String,
}

impl Setting {
    /// Its value unless set, as it would be written.
    #[must_use]
    pub fn default(&self) -> String {
        self.default.into()
    }

    /// The values that it takes, for people.
    #[must_use]
    pub fn range(&self) -> String {
        (self.range)()
    }

    /// It is true or false, so that its flag alone can mean true.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        matches!(self.default, "true" | "false")
    }

    /// Reads a value; otherwise says why not.
    pub(super) fn read(&self, config: &mut Config, value: &str) -> Result<(), String> {
        (self.read)(config, value)
    }

    /// Its value, as it would be written.
    pub(super) fn write(&self, config: &Config) -> String {
        (self.write)(config)
    }
}

/// A value of a setting.
trait Value: Sized {
    /// What limits it beyond its type.
    type Range;
    /// The range for people.
    fn describe(range: &Self::Range) -> String;
    /// Reads it; otherwise says why not.
    fn parse(text: &str, range: &Self::Range) -> Result<Self, String>;
    /// Writes it so that it can be read again.
    fn text(&self) -> String;
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Value for $number {
            type Range = RangeInclusive<$number>;

            fn describe(range: &Self::Range) -> String {
                format!("{range:?}")
            }

            fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
                if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err("not a whole number".into());
                }
                // All digits, so what does not parse is too large.
                match text.parse() {
                    Ok(value) if range.contains(&value) => Ok(value),
                    Ok(value) if value < *range.start() => Err("too small".into()),
                    _ => Err("too large".into()),
                }
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

number!(usize, u64);

/// For settings whose type says it all.
struct Any(&'static str);

impl Value for SocketAddr {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        text.parse().map_err(|_| "not an address and a port".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        text.parse().map_err(|_| "neither true nor false".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for LevelFilter {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        text.parse().map_err(|_| "not a log level".into())
    }

    fn text(&self) -> String {
        self.as_str().to_ascii_lowercase()
    }
}

impl Value for Vec<Origin> {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        items(text).map(Origin::read).collect()
    }

    fn text(&self) -> String {
        self.iter().map(Origin::to_string).collect::<Vec<_>>().join(",")
    }
}

/// The items of a list.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

impl Value for Vec<usize> {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        items(text)
            .map(|part| part.parse().map_err(|_| format!("{part:?} is no core's number")))
            .collect()
    }

    fn text(&self) -> String {
        self.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:literal, $range:expr;)*) => {
        /// The settings of a node. Each has a name, a default and a range; [`settings`] lists them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            $($(#[doc = $help])+ pub $name: $type,)*
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $($name: Value::parse($default, &$range).expect("a default lies in its range"),)*
                }
            }
        }

        static SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            help: concat!($($help),+).trim_ascii_start(),
            default: $default,
            range: || <$type as Value>::describe(&$range),
            read: |config, text| {
                config.$name = Value::parse(text.trim(), &$range)?;
                Ok(())
            },
            write: |config| config.$name.text(),
        }),*];
    };
}

/// Every setting of a node.
#[must_use]
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

/// The longest that a node may be told to wait, in milliseconds: a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

settings! {
    /// The address and port to listen on; port 0 picks a free one.
    listen: SocketAddr = "127.0.0.1:7350", Any("an address and a port, such as 0.0.0.0:7350 or [::]:7350");
    /// The level of the log that is written to standard error: off, error, warn, info, debug or
    /// trace. A `log` backend that the program has installed takes its place.
    log: LevelFilter = "info", Any("off, error, warn, info, debug or trace");
    /// How many shards (threads that serve) to run; 0 makes it the number of cores.
    shards: usize = "0", 0..=1024;
    /// The cores to keep the shards on, in turn; empty leaves it to the system. Only on Linux.
    pin_cores: Vec<usize> = "", Any("core numbers with commas between, such as 0,2,4");
    /// The longest message from a client, in bytes.
    max_message_bytes: usize = "1048576", 64..=16_777_216;
    /// The longest head of an HTTP request, in bytes.
    http_head_bytes_max: usize = "8192", 256..=65_536;
    /// The web pages whose browsers may connect over WebSocket, as their origins; empty lets in
    /// all. Clients that are no browsers name none, and are let in.
    allowed_origins: Vec<Origin> = "", Any("origins with commas between, such as https://play.example.com,http://localhost:8080");
    /// Whether messages over WebSocket are compressed (RFC 7692) for clients that offer it. What
    /// compresses is JSON and MessagePack; patches in packed hold little that repeats.
    websocket_deflate: bool = "false", Any("true or false");
    /// Shorter messages, in bytes, are sent as they are, also to clients that take compressed ones.
    websocket_deflate_bytes_min: usize = "256", 64..=16_777_216;
    /// A client has to say hello within this time, in milliseconds.
    hello_timeout_ms: u64 = "10000", 10..=DAY_MS;
    /// A client that is silent for half of this is asked for a sign of life; one silent for twice
    /// this is closed. In milliseconds.
    heartbeat_ms: u64 = "30000", 20..=DAY_MS;
    /// The most bytes that may wait for a client to read them. An event beyond that closes its
    /// connection, so it has to be more than a room's largest snapshot.
    outbox_bytes_max: usize = "1048576", 1024..=1_073_741_824;
    /// Nothing more is read from a client for whom more bytes than this wait, until it has read
    /// them.
    outbox_high_bytes: usize = "65536", 1..=1_073_741_824;
    /// The most connections at once; more are closed when they come.
    connections_max: usize = "100000", 1..=10_000_000;
    /// The most rooms at once.
    rooms_max: usize = "100000", 1..=10_000_000;
    /// The most rooms that one session may be in.
    rooms_per_session_max: usize = "16", 1..=1024;
    /// The most rooms that one session may make in a minute. So many at once, too.
    rooms_created_per_minute_max: u64 = "60", 1..=1_000_000;
    /// The most requests of one player in one room that may be unanswered at once.
    requests_unanswered_max: usize = "256", 1..=65_536;
    /// The longest display name, in bytes.
    name_bytes_max: usize = "64", 1..=1024;
    /// The most rooms in one answer to `list`.
    list_max: usize = "100", 1..=10_000;
    /// The most `list` requests of one session in a second. So many at once, too.
    lists_per_second_max: u64 = "10", 1..=1_000_000;
    /// The most `schema` requests of one session in a second. So many at once, too.
    schemas_per_second_max: u64 = "10", 1..=1_000_000;
    /// The most snapshots that one player in one room is sent in a second because it joined or
    /// asked (`resync`). So many at once, too; asked more often, it gets one for all as soon as it
    /// may. Who leaves rooms and joins again has no more, and gets in as soon as it may.
    resyncs_per_second_max: u64 = "5", 1..=1_000_000;
    /// The most messages from other shards that may wait for a shard.
    mailbox_max: usize = "16384", 1..=1_000_000;
    /// Each how many syncs of a room its clients are sent a digest to hold their copies against; 0
    /// is never.
    check_every_syncs: u64 = "100", 0..=1_000_000;
    /// How many missed ticks a room makes up for; what it missed beyond that is skipped.
    catch_up_ticks_max: u64 = "5", 1..=1000;
    /// How many threads run the rooms' computations; 0 makes it the number of cores less one, but
    /// one at least.
    compute_threads: usize = "0", 0..=1024;
    /// The most computations that may wait for a thread.
    compute_queue_max: usize = "1024", 1..=1_000_000;
    /// The most tasks that rooms may have in the background at once; more are lost at once.
    tasks_max: usize = "65536", 1..=10_000_000;
    /// How long a connection that is being closed may take to read what it is still owed, in
    /// milliseconds.
    close_timeout_ms: u64 = "2000", 1..=DAY_MS;
    /// How long a shutdown may take, in milliseconds.
    shutdown_timeout_ms: u64 = "3000", 0..=DAY_MS;
    /// A shard that is busy with one turn for longer than this is reported, in milliseconds.
    watchdog_ms: u64 = "1000", 10..=DAY_MS;
}
