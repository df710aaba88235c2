//! The table of settings.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use log::LevelFilter;

use super::{Descriptors, Network, Origin, Secret};

/// One setting, for help and for messages.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as in a file. In the environment it is in capitals, after `PLAYFIELD_`. A unit
    /// comes last.
    pub name: &'static str,
    /// A description for people.
    pub help: &'static str,
    /// Whether its value is shown nowhere, not even if it is wrong.
    pub(super) is_secret: bool,
    default: &'static str,
    range: fn() -> String,
    read: fn(&mut Config, &str) -> Result<(), String>,
    write: fn(&Config) -> String,
}

impl Setting {
    /// The default value, as it would be written.
    #[must_use]
    pub fn default(&self) -> String {
        self.default.into()
    }

    /// The values that it accepts, as text for people.
    #[must_use]
    pub fn range(&self) -> String {
        (self.range)()
    }

    /// Whether it is true or false, so that its flag alone can mean true.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        matches!(self.default, "true" | "false")
    }

    /// Reads a value, or says why it can't.
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
    /// Whether it is shown nowhere.
    const IS_SECRET: bool = false;
    /// The limits beyond those of its type.
    type Range;
    /// The range for people.
    fn describe(range: &Self::Range) -> String;
    /// Reads it, or says why it can't.
    fn parse(text: &str, range: &Self::Range) -> Result<Self, String>;
    /// Writes it in the form that `parse` reads.
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

/// The range of settings that only their type limits.
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

/// An address, or none.
impl Value for Option<SocketAddr> {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { SocketAddr::parse(text, range).map(Some) }
    }

    fn text(&self) -> String {
        self.map_or_else(String::new, |address| address.to_string())
    }
}

impl Value for Secret {
    const IS_SECRET: bool = true;
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        Self::read(text)
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

impl Value for PathBuf {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        Ok(text.into())
    }

    fn text(&self) -> String {
        self.display().to_string()
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

impl Value for Descriptors {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        Self::read(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// An item of a list.
trait Item: ToString + Sized {
    fn read(text: &str) -> Result<Self, String>;
}

impl<T: Item> Value for Vec<T> {
    type Range = Any;

    fn describe(range: &Self::Range) -> String {
        range.0.into()
    }

    fn parse(text: &str, _: &Self::Range) -> Result<Self, String> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::read).collect()
    }

    fn text(&self) -> String {
        self.iter().map(T::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Item for Origin {
    fn read(text: &str) -> Result<Self, String> {
        Self::read(text)
    }
}

impl Item for Network {
    fn read(text: &str) -> Result<Self, String> {
        Self::read(text)
    }
}

impl Item for usize {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is not a core's number"))
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
            is_secret: <$type as Value>::IS_SECRET,
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

/// The maximum of all durations, in milliseconds: a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The description of the values that a list of networks takes.
const NETWORKS: Any = Any("addresses or networks separated by commas, such as 10.0.0.0/8,::1");

settings! {
    /// The address and port to listen on; port 0 picks a free one.
    listen: SocketAddr = "127.0.0.1:7350", Any("an address and a port, such as 0.0.0.0:7350 or [::]:7350");
    /// The address and port of the console; empty for none, port 0 picks a free one.
    console: Option<SocketAddr> = "", Any("an address and a port, such as 127.0.0.1:7351, or nothing");
    /// The token that the console asks for, at least 16 characters. It may be empty where the
    /// console listens on the loopback interface.
    console_token: Secret = "", Any("at least 16 characters without spaces, or nothing");
    /// Log level on standard error: off, error, warn, info, debug or trace. A `log` backend that
    /// the program has installed takes precedence.
    log: LevelFilter = "info", Any("off, error, warn, info, debug or trace");
    /// Number of shards (event-loop threads); 0 uses one per core.
    shards: usize = "0", 0..=1024;
    /// Cores to pin the shards to, in turn; empty leaves it to the system. Linux only.
    pin_cores: Vec<usize> = "", Any("core numbers separated by commas, such as 0,2,4");
    /// Which table of open files the shards use: shared is that of the process, per_shard gives each
    /// shard its own, so that the system's limit holds for a shard (Linux only; see operations.md).
    descriptors: Descriptors = "shared", Any("shared or per_shard");
    /// File of the certificate chain for TLS, in PEM, the node's certificate first. With it the
    /// node accepts TLS on its port, beside unencrypted connections; empty means no TLS.
    tls_cert: PathBuf = "", Any("the path of a file");
    /// File of the certificate's private key, in PEM.
    tls_key: PathBuf = "", Any("the path of a file");
    /// How often the files of the certificate are checked for changes, in milliseconds. New
    /// connections use the new certificate.
    tls_reload_ms: u64 = "5000", 10..=DAY_MS;
    /// Use TLS with a certificate that is made at the start, for development. Clients don't trust
    /// it on their own.
    tls_self_signed: bool = "false", Any("true or false");
    /// Refuse connections without TLS, except those from this machine (loopback addresses).
    tls_only: bool = "false", Any("true or false");
    /// Maximum size of a message from a client, in bytes.
    max_message_bytes: usize = "1048576", 64..=16_777_216;
    /// Maximum size of an HTTP request head, in bytes.
    http_head_bytes_max: usize = "8192", 256..=65_536;
    /// Maximum size of the body of an HTTP request, in bytes.
    http_body_bytes_max: usize = "1048576", 0..=1_073_741_824;
    /// Time that a client has to send an HTTP request to its end, or to read some of its answer, in
    /// milliseconds.
    http_request_timeout_ms: u64 = "10000", 10..=DAY_MS;
    /// Time that an HTTP handler has to answer, in milliseconds.
    http_answer_timeout_ms: u64 = "30000", 10..=DAY_MS;
    /// Time that an HTTP connection may be idle between requests, in milliseconds.
    http_idle_timeout_ms: u64 = "60000", 10..=DAY_MS;
    /// Maximum HTTP requests of the node that wait for a handler or a file at once.
    http_requests_max: usize = "4096", 1..=1_000_000;
    /// Maximum HTTP requests from one address that wait for a handler or a file at once.
    http_requests_per_address_max: usize = "1024", 1..=1_000_000;
    /// Folder whose files are served under /, in place of the program's pages with the same paths, so
    /// that a page can be changed without a build; empty is none.
    pages: PathBuf = "", Any("the path of a folder");
    /// Origins of web pages that may connect over WebSocket; empty allows all. Clients that send no
    /// origin, which are not browsers, are always allowed.
    allowed_origins: Vec<Origin> = "", Any("origins separated by commas, such as https://play.example.com,http://localhost:8080");
    /// Compress WebSocket messages (RFC 7692) for clients that offer it. JSON and MessagePack
    /// compress well; patches in packed do not.
    websocket_deflate: bool = "false", Any("true or false");
    /// Minimum size of a message that is compressed, in bytes.
    websocket_deflate_bytes_min: usize = "256", 64..=16_777_216;
    /// Time that a client has to send its hello, from when it connected, in milliseconds.
    hello_timeout_ms: u64 = "10000", 10..=DAY_MS;
    /// Maximum size of a hello, in bytes; at most `max_message_bytes`, even if set higher.
    hello_bytes_max: usize = "16384", 64..=16_777_216;
    /// Time that a client has to send a message to its end, in milliseconds.
    message_timeout_ms: u64 = "30000", 10..=DAY_MS;
    /// Maximum clients whose authentication waits at once, for a database or a web service; more
    /// are refused.
    authentications_max: usize = "10000", 1..=1_000_000;
    /// A client that is silent for half of this time is sent a ping, and one that is silent for
    /// twice this time is closed. In milliseconds.
    heartbeat_ms: u64 = "30000", 20..=DAY_MS;
    /// Time for which the session of a client that lost its connection is kept, in milliseconds; 0
    /// keeps none. Rooms keep the player's seat by their own `grace_ms`, and the session as long.
    session_grace_ms: u64 = "10000", 0..=DAY_MS;
    /// Maximum returns to one session per minute; also the burst. Beyond it the client is refused,
    /// and its session waits for it.
    resumes_per_minute_max: u64 = "120", 1..=10_000_000;
    /// Maximum bytes per session of events, replies and the like that the client has not confirmed.
    /// Beyond it the oldest are forgotten: a client whose connection is lost then misses them.
    resume_bytes_max: usize = "262144", 0..=1_073_741_824;
    /// Maximum sessions that wait for their clients to come back; more end with their connections.
    sessions_away_max: usize = "100000", 0..=10_000_000;
    /// Maximum sessions from one address that wait for their clients to come back.
    sessions_away_per_address_max: usize = "1000", 0..=10_000_000;
    /// Maximum unsent bytes per connection. An event that would exceed it closes the connection, so
    /// it must be larger than a room's largest snapshot.
    outbox_bytes_max: usize = "1048576", 1024..=1_073_741_824;
    /// While more than this many bytes are unsent, nothing is read from the connection.
    outbox_high_bytes: usize = "65536", 1..=1_073_741_824;
    /// Maximum open connections; more are closed when they arrive.
    connections_max: usize = "100000", 1..=10_000_000;
    /// Maximum open connections from one address; more are closed when they arrive.
    connections_per_address_max: usize = "1000", 1..=10_000_000;
    /// Maximum connections that have not said hello, nor sent an HTTP request, at once; more are
    /// closed when they arrive.
    handshakes_max: usize = "20000", 1..=10_000_000;
    /// Maximum connections from one address that have not said hello, nor sent an HTTP request, at
    /// once; more are closed when they arrive.
    handshakes_per_address_max: usize = "200", 1..=10_000_000;
    /// Maximum hellos from one address per minute; also the burst. Those that resume a session count
    /// for `resumes_per_address_per_minute_max` instead.
    sessions_per_address_per_minute_max: u64 = "1000", 1..=10_000_000;
    /// Maximum hellos from one address per minute with a resume token of this node; also the burst.
    resumes_per_address_per_minute_max: u64 = "20000", 1..=10_000_000;
    /// Maximum joins from one address per minute; also the burst.
    joins_per_address_per_minute_max: u64 = "5000", 1..=10_000_000;
    /// Maximum rooms created from one address per minute; also the burst.
    rooms_created_per_address_per_minute_max: u64 = "300", 1..=10_000_000;
    /// Maximum joins from one address per minute by a key that no room has; also the burst.
    keys_missed_per_address_per_minute_max: u64 = "300", 1..=10_000_000;
    /// Maximum channels that exist because a client at one address subscribed to them or published
    /// in them first.
    channels_per_address_max: usize = "10000", 1..=10_000_000;
    /// Maximum bytes of publications that the channels keep which clients at one address have
    /// created. Past it, the largest of them forgets its oldest.
    channel_history_bytes_per_address_max: usize = "67108864", 0..=1_099_511_627_776;
    /// Maximum channels per minute that the sessions of one address start to use; also the burst.
    channels_opened_per_address_per_minute_max: u64 = "10000", 1..=10_000_000;
    /// Bits of an IPv6 address that count: those that begin with the same bits are one address.
    ipv6_prefix_bits: usize = "64", 1..=128;
    /// Addresses and networks that are exempt from the limits by address.
    trusted_addresses: Vec<Network> = "127.0.0.0/8,::1", NETWORKS;
    /// Addresses and networks of proxies, which name the addresses of their clients by
    /// `X-Forwarded-For` or the PROXY protocol. The proxies themselves are exempt from the limits
    /// by address.
    trusted_proxies: Vec<Network> = "", NETWORKS;
    /// Maximum addresses whose rates are remembered after they have disconnected. With fewer, each
    /// is remembered for a minute.
    addresses_max: usize = "100000", 1..=10_000_000;
    /// Maximum bytes of memory that clients make the node hold: unfinished messages, what they have
    /// not read, and bodies of HTTP requests. Past it, connections of the address that holds the
    /// most are closed. 0 is 1 GiB, or a quarter of the memory that the process may use if that is
    /// less.
    peer_bytes_max: usize = "0", 0..=1_099_511_627_776;
    /// The same for one address. Past it, its connection that holds the most is closed.
    peer_bytes_per_address_max: usize = "67108864", 65_536..=1_099_511_627_776;
    /// Maximum messages per second from a connection; 0 = no maximum. What comes faster is refused.
    messages_per_second_max: u64 = "2000", 0..=1_000_000;
    /// Maximum messages from a connection at once.
    messages_burst_max: u64 = "4000", 1..=10_000_000;
    /// Maximum bytes of messages per second from a connection; 0 = no maximum. What comes faster is
    /// refused.
    bytes_per_second_max: u64 = "4194304", 0..=1_073_741_824;
    /// Maximum bytes of messages from a connection at once; at least `max_message_bytes`, even if
    /// set lower.
    bytes_burst_max: u64 = "8388608", 1..=1_073_741_824;
    /// Multiple of `messages_per_second_max` or `bytes_per_second_max` past which a connection is
    /// closed.
    rate_multiple_max: u64 = "4", 1..=1000;
    /// Maximum number of rooms.
    rooms_max: usize = "100000", 1..=10_000_000;
    /// Lateness of a shard's rooms, in milliseconds, that 98 of 100 ticks and syncs stay within.
    /// Beyond it a full shard gets no new rooms, and beyond four times of it its rooms get no new
    /// players; 0 does not limit it.
    lateness_max_ms: u64 = "5", 0..=250;
    /// Share of a shard's time, in percent, with which it gets no new rooms: for which it was busy
    /// in the last second, and what rooms will take that it got since. 0 does not limit it.
    busy_max_percent: u64 = "80", 0..=100;
    /// Maximum number of rooms that one session may be in.
    rooms_per_session_max: usize = "16", 1..=1024;
    /// Maximum rooms that one session may create per minute; also the burst.
    rooms_created_per_minute_max: u64 = "60", 1..=1_000_000;
    /// Maximum joins per session and minute by a key that no room has; also the burst. It bounds
    /// how fast codes can be guessed.
    keys_missed_per_minute_max: u64 = "60", 1..=1_000_000;
    /// Maximum unanswered requests per player and room.
    requests_unanswered_max: usize = "256", 1..=65_536;
    /// Maximum size of a display name, in bytes.
    name_bytes_max: usize = "64", 1..=1024;
    /// Maximum number of rooms in the answer to one `list`.
    list_max: usize = "100", 1..=10_000;
    /// Maximum `list` requests per session and second; also the burst.
    lists_per_second_max: u64 = "10", 1..=1_000_000;
    /// Maximum `schema` requests per session and second; also the burst.
    schemas_per_second_max: u64 = "10", 1..=1_000_000;
    /// Maximum snapshots per player, room and second, whether they answer a join or a `resync`;
    /// also the burst. Requests beyond that are delayed, and answered with one snapshot. Leaving a
    /// room and joining it again does not reset the limit.
    resyncs_per_second_max: u64 = "5", 1..=1_000_000;
    /// Maximum number of channels.
    channels_max: usize = "100000", 1..=10_000_000;
    /// Time for which a channel that nobody subscribes to, and that keeps no publications, goes on,
    /// in milliseconds: subscribers that come back within it learn whether they missed something.
    channel_linger_ms: u64 = "30000", 0..=DAY_MS;
    /// Maximum size of the name of a channel, in bytes.
    channel_name_bytes_max: usize = "128", 1..=4096;
    /// Maximum bytes of publications that all channels keep. Past it, the largest channel forgets
    /// its oldest, of the address whose channels keep the most.
    channel_history_bytes_max: usize = "268435456", 0..=1_099_511_627_776;
    /// Maximum size of the payload of a publication, in bytes.
    publication_bytes_max: usize = "65536", 1..=16_777_216;
    /// Maximum publications per session and second; also the burst.
    publishes_per_second_max: u64 = "100", 1..=1_000_000;
    /// Maximum channels per minute that a session starts to use; also the burst. It bounds how many channels a session can have created.
    channels_opened_per_minute_max: u64 = "600", 1..=1_000_000;
    /// Maximum channels that one session subscribes to.
    subscriptions_per_session_max: usize = "128", 1..=65_536;
    /// Maximum `subscribe` requests per session and second; also the burst.
    subscribes_per_second_max: u64 = "256", 1..=1_000_000;
    /// Maximum `members` and `history` requests per session and second; also the burst.
    channel_reads_per_second_max: u64 = "50", 1..=1_000_000;
    /// Maximum members in the answer to one `members`.
    members_listed_max: usize = "1000", 1..=100_000;
    /// Maximum publications in the answer to one `history`.
    history_listed_max: usize = "1000", 1..=100_000;
    /// Maximum bytes of publications in the answer to one `history`; one is sent in any case.
    history_listed_bytes_max: usize = "131072", 1..=16_777_216;
    /// Maximum number of devices.
    devices_max: usize = "1000000", 1..=10_000_000;
    /// Maximum tags of a device.
    device_tags_max: usize = "16", 0..=1024;
    /// Maximum size of a device's metadata, in bytes.
    device_metadata_bytes_max: usize = "4096", 0..=1_048_576;
    /// Maximum size of the id of a device, and of a tag, in bytes.
    device_id_bytes_max: usize = "128", 1..=4096;
    /// Maximum times per minute that one device takes over the id of another; also the burst.
    device_take_overs_per_minute_max: u64 = "60", 1..=10_000_000;
    /// Maximum size of a command to a device, in bytes.
    command_bytes_max: usize = "65536", 1..=16_777_216;
    /// Maximum requests to a device that it has not answered.
    commands_unanswered_max: usize = "64", 1..=65_536;
    /// Maximum queued messages per shard, from other shards.
    mailbox_max: usize = "16384", 1..=1_000_000;
    /// Maximum unanswered requests to rooms from outside: from HTTP handlers, services and the
    /// program.
    asks_max: usize = "65536", 1..=10_000_000;
    /// Time that a room has to answer a request from outside, in milliseconds.
    ask_timeout_ms: u64 = "10000", 10..=DAY_MS;
    /// Number of syncs between two digests that clients check their copies against; 0 turns them
    /// off.
    check_every_syncs: u64 = "100", 0..=1_000_000;
    /// Maximum overdue ticks that a room runs at once; ticks beyond that are skipped.
    catch_up_ticks_max: u64 = "5", 1..=1000;
    /// Number of threads for the rooms' computations; 0 uses one less than there are cores, at
    /// least one.
    compute_threads: usize = "0", 0..=1024;
    /// Maximum queued computations.
    compute_queue_max: usize = "1024", 1..=1_000_000;
    /// Maximum background tasks of all rooms at once; more are refused.
    tasks_max: usize = "65536", 1..=10_000_000;
    /// Time that a closing connection has to read what was sent, in milliseconds.
    close_timeout_ms: u64 = "2000", 1..=DAY_MS;
    /// Maximum duration of a shutdown, in milliseconds: for the rooms to end, and for clients to
    /// read what was sent.
    shutdown_timeout_ms: u64 = "8000", 0..=DAY_MS;
    /// A shard that spends longer than this on one turn is reported. In milliseconds.
    watchdog_ms: u64 = "1000", 10..=DAY_MS;
}
