//! The list of settings. The struct, `serve --help`, the tables of the documentation and the
//! console's page are made from it.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use log::LevelFilter;

use super::setting::{Group, Setting};
use super::tables::{DeviceLimits, Listed, NameBytes, OutboxBytes, Queues, Quota, RateLimit};
use super::value::{Any, Value};
use super::{ClientUrl, Descriptors, EngineUrl, Network, Origin, Secret};

/// The key of a setting, by the path to its group.
macro_rules! key {
    ([$($at:ident).*] $name:ident) => {
        concat!($(stringify!($at), ".",)* stringify!($name))
    };
}

/// The place of a setting, by the path to its group.
macro_rules! place {
    ($config:ident [$($at:ident).*] $name:ident) => { $config$(.$at)*.$name };
}

macro_rules! group {
    (
        $(#[doc = $doc:literal])+
        $group:ident = $key:literal $at:tt {
            $($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:literal, $range:expr;)*
        }
        $($(#[doc = $inner_doc:literal])+ $inner:ident: $inner_type:ty;)*
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $group {
            $($(#[doc = $help])+ pub $name: $type,)*
            $($(#[doc = $inner_doc])+ pub $inner: $inner_type,)*
        }

        impl Default for $group {
            fn default() -> Self {
                Self {
                    $($name: Value::parse($default, &$range).expect("a default lies in its range"),)*
                    $($inner: Default::default(),)*
                }
            }
        }

        impl $group {
            fn settings() -> Vec<Setting> {
                static GROUP: Group =
                    Group { name: $key, help: concat!($($doc),+).trim_ascii_start() };
                vec![$(Setting {
                    name: key!($at $name),
                    help: concat!($($help),+).trim_ascii_start(),
                    group: &GROUP,
                    parts: <$type as Value>::PARTS,
                    is_secret: <$type as Value>::IS_SECRET,
                    is_list: <$type as Value>::IS_LIST,
                    default: $default,
                    range: |part| match part {
                        None => <$type as Value>::describe(&$range, $default),
                        Some(part) => <$type as Value>::describe_part(&$range, part),
                    },
                    read: |config, part, text| {
                        let value: &mut $type = &mut place!(config $at $name);
                        match part {
                            None => value.update(text, &$range),
                            Some(part) => value.set_part(part, text, &$range),
                        }
                    },
                    write: |config, part| {
                        let value: &$type = &place!(config $at $name);
                        match part {
                            None => Some(value.text()),
                            Some(part) => value.part(part),
                        }
                    },
                }),*]
            }
        }
    };
}

/// What programs can change besides, by the names `tuning.…`.
pub(super) fn tuning() -> &'static [Setting] {
    static TUNING: LazyLock<Vec<Setting>> = LazyLock::new(Tuning::settings);
    &TUNING
}

/// Every setting of a node.
#[must_use]
pub fn settings() -> &'static [Setting] {
    static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
        [
            Config::settings(),
            Threads::settings(),
            Tls::settings(),
            Http::settings(),
            WebSocket::settings(),
            Timeouts::settings(),
            Rooms::settings(),
            Recordings::settings(),
            Journal::settings(),
            Cluster::settings(),
            Limits::settings(),
            AddressLimits::settings(),
            SessionLimits::settings(),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    &SETTINGS
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that something of a network may take.
const WAITS: RangeInclusive<Duration> = Duration::from_millis(10)..=DAY;
/// The number of things that there may be.
const MANY: RangeInclusive<usize> = 1..=10_000_000;
/// The size of memory that clients may use.
const MEMORY: RangeInclusive<usize> = 0..=1_099_511_627_776;
/// The size of something that clients send or get.
const BYTES: RangeInclusive<usize> = 64..=16_777_216;
/// The number and the burst of a rate.
const RATE: [RangeInclusive<u64>; 2] = [1..=10_000_000, 1..=10_000_000];

const NETWORKS: Any = Any("addresses or networks separated by commas, such as 10.0.0.0/8,::1");
const SWITCH: Any = Any("true or false");
const FILE: Any = Any("the path of a file");

group! {
    /// The settings of a node. [`settings`] lists them with their names, defaults and ranges.
    Config = "" [] {
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
        /// Folder whose files are served under /, in place of the program's pages with the same paths, so
        /// that a page can be changed without a build; empty is none.
        pages: PathBuf = "", Any("the path of a folder");
        /// Addresses and networks of proxies, which name the addresses of their clients by
        /// `X-Forwarded-For` or the PROXY protocol. The proxies themselves are exempt from the limits
        /// by address.
        trusted_proxies: Vec<Network> = "", NETWORKS;
    }
    /// Threads beside the shards, and how shards run.
    threads: Threads;
    /// TLS.
    tls: Tls;
    /// HTTP requests.
    http: Http;
    /// WebSocket connections.
    websocket: WebSocket;
    /// Times after which something ends.
    timeouts: Timeouts;
    /// Rooms of all types.
    rooms: Rooms;
    /// Recordings of rooms.
    recordings: Recordings;
    /// The journal.
    journal: Journal;
    /// The cluster.
    cluster: Cluster;
    /// The limits of the node.
    limits: Limits;
    /// Limits that programs set, and operators don't.
    tuning: Tuning;
}

group! {
    /// Threads beside the shards, and how shards run.
    Threads = "threads" [threads] {
        /// Cores to pin the shards to, in turn; empty leaves it to the system. Linux only.
        pin_cores: Vec<usize> = "", Any("core numbers separated by commas, such as 0,2,4");
        /// Which table of open files the shards use: shared is that of the process, per_shard gives each
        /// shard its own, so that the system's limit holds for a shard (Linux only).
        descriptors: Descriptors = "shared", Any("shared or per_shard");
        /// Number of threads for the rooms' computations and for reading long saves; 0 uses one less
        /// than there are cores, at least one.
        compute: usize = "0", 0..=1024;
    }
}

group! {
    /// TLS, on the port of the rooms.
    Tls = "tls" [tls] {
        /// File of the certificate chain, in PEM, the node's certificate first. With it the node
        /// accepts TLS on its port, beside unencrypted connections; empty means no TLS. A file that
        /// has changed is used for new connections.
        cert: PathBuf = "", FILE;
        /// File of the certificate's private key, in PEM, not encrypted.
        key: PathBuf = "", FILE;
        /// Use a certificate that is made at the start, for development. Clients don't trust it on
        /// their own.
        self_signed: bool = "false", SWITCH;
        /// Refuse connections without TLS, except those from this machine (loopback addresses).
        only: bool = "false", SWITCH;
    }
}

group! {
    /// HTTP requests, those that ask for a WebSocket included.
    Http = "http" [http] {
        /// Maximum size of a request head, in bytes.
        head_bytes: usize = "8192", 256..=65_536;
        /// Maximum size of the body of a request, in bytes.
        body_bytes: usize = "1048576", 0..=1_073_741_824;
        /// Time that a client has to send a request to its end, or to read some of its answer.
        request_timeout: Duration = "10s", WAITS;
        /// Time that a handler has to answer.
        answer_timeout: Duration = "30s", WAITS;
        /// Time that a connection may be idle between requests.
        idle_timeout: Duration = "1m", WAITS;
        /// Maximum requests under way at once: those that wait for a handler or a file, and those
        /// whose answer, such as a file or a stream, is not sent to its end.
        requests: Quota = "{ total = 4096, per_address = 1024 }", [1..=1_000_000, 1..=1_000_000];
    }
}

group! {
    /// WebSocket connections.
    WebSocket = "websocket" [websocket] {
        /// Origins of web pages that may connect; empty allows all. Clients that send no origin,
        /// which are not browsers, are always allowed.
        allowed_origins: Vec<Origin> = "", Any("origins separated by commas, such as https://play.example.com,http://localhost:8080");
        /// Compress messages (RFC 7692) for clients that offer it. JSON and MessagePack compress
        /// well; patches in packed do not.
        deflate: bool = "false", SWITCH;
    }
}

group! {
    /// Times after which something ends.
    Timeouts = "timeouts" [timeouts] {
        /// Time that a client has to send its hello, from when it connected, and the authenticator
        /// to decide.
        hello: Duration = "10s", WAITS;
        /// Time that a client has to send a message to its end.
        message: Duration = "30s", WAITS;
        /// A client that is silent for half of this time is sent a ping, and one that is silent for
        /// twice this time is disconnected. A room can shorten it.
        heartbeat: Duration = "30s", Duration::from_millis(20)..=DAY;
        /// Time for which the session of a client that lost its connection is kept, so that it can be
        /// resumed; 0s keeps none. Rooms keep the player's seat by their own `grace_ms`, and the
        /// session as long.
        reconnect: Duration = "10s", Duration::ZERO..=DAY;
        /// Time for which a channel that nobody subscribes to, and that keeps no publications, goes
        /// on: subscribers that come back within it learn whether they missed something.
        channel: Duration = "30s", Duration::ZERO..=DAY;
        /// Time that a room has to answer a request from outside.
        ask: Duration = "10s", WAITS;
        /// Time that a closing connection has to read what was sent.
        close: Duration = "2s", Duration::from_millis(1)..=DAY;
        /// Maximum duration of a shutdown: for the rooms to end, and for clients to read what was
        /// sent.
        shutdown: Duration = "8s", Duration::ZERO..=DAY;
        /// Time that an upgrade waits for background work of rooms before that is given up.
        freeze_wait: Duration = "1s", Duration::ZERO..=DAY;
        /// Time that the new process of an upgrade has for each step: to start, to take the rooms
        /// over, and to serve.
        upgrade: Duration = "30s", WAITS;
        /// A shard that spends longer than this on one turn is reported in the log, and so is a
        /// control thread that gives no sign of life for as long.
        watchdog: Duration = "1s", WAITS;
    }
}

group! {
    /// Recordings of rooms, in files.
    Recordings = "recordings" [recordings] {
        /// Folder of recordings; empty for none. A recording has all that players send to the room,
        /// their names and users, and the whole state: only the user of the process can read it.
        folder: PathBuf = "", Any("the path of a folder");
        /// Time of each room that is kept in memory, and written when the room fails or a handler
        /// returns an internal error; 0s keeps none.
        keep: Duration = "5m", Duration::ZERO..=DAY;
        /// Maximum bytes kept in memory of each room.
        room_bytes: usize = "1048576", 4096..=1_073_741_824;
        /// Maximum bytes of all recordings in the folder. Beyond it none is begun.
        folder_bytes: usize = "1073741824", MEMORY;
    }
}

group! {
    /// The journal of rooms with `durability = journal`.
    Journal = "journal" [journal] {
        /// Folder of the journal, which one node uses; empty is beside the file of the store, by its
        /// name and `.journal`. It has all that players send to these rooms: only the user of the
        /// process can read it.
        folder: PathBuf = "", Any("the path of a folder");
        /// Time that the disk may take for what these rooms were sent. Past it, they are not called
        /// and their players are not read from, until it is done.
        wait: Duration = "1s", WAITS;
        /// Bytes of a file of the journal, after which the next is begun and rooms are written whole,
        /// so that older files can go.
        file_bytes: usize = "67108864", 65_536..=1_073_741_824;
    }
}

group! {
    /// The cluster, whose nodes share rooms by key. It needs the feature `cluster`.
    Cluster = "cluster" [cluster] {
        /// URLs of the NATS servers that the nodes share; empty is none, for a node without a cluster.
        engine: Vec<EngineUrl> = "", Any("URLs separated by commas, such as nats://nats-1:4222,nats://nats-2:4222");
        /// Name of the cluster. NATS servers may carry several.
        name: String = "playfield", Any("1 to 32 of a to z, 0 to 9 and _");
        /// File of credentials for NATS (a JWT and its nkey); empty for none.
        credentials: PathBuf = "", FILE;
        /// Copies that NATS keeps of the nodes' records; 0 is 3 if it has three servers, else 1.
        replicas: u64 = "0", 0..=5;
        /// Name of the node in logs; empty is the name of the machine.
        node: String = "", Any("up to 64 characters");
        /// File that the process locks. After a crash, a node with the same file on the same machine
        /// takes over at once, and not after the lease. It must be on a disk of the machine.
        lock: PathBuf = "", FILE;
        /// URLs at which clients reach this very node; empty derives them from `listen`.
        addresses: Vec<ClientUrl> = "", Any("URLs separated by commas, such as wss://n3.play.example.com,tls://203.0.113.7:7350");
        /// Time without a sign of life after which others may take over the node's rooms. It renews
        /// its lease ten times as often. Elections of NATS take up to 9 s, so less than 15s pauses
        /// rooms needlessly.
        lease: Duration = "20s", SECOND * 5..=SECOND * 300;
        /// Time for which the seat of a player is kept who was sent to another node.
        redirect_wait: Duration = "30s", SECOND..=SECOND * 3600;
        /// Time for which a node that is told to stop moves its rooms to other nodes. Those that are
        /// left then end.
        drain_timeout: Duration = "1m", Duration::ZERO..=DAY;
    }
}

group! {
    /// Rooms of all types.
    Rooms = "rooms" [rooms] {
        /// Lateness of a shard's rooms that 98 of 100 ticks and syncs stay within. Beyond it a full
        /// shard gets no new rooms, and beyond four times of it its rooms get no new players; 0s
        /// does not limit it.
        lateness: Duration = "5ms", Duration::ZERO..=SECOND / 4;
        /// Share of a shard's time, in percent, with which it gets no new rooms: for which it was busy
        /// in the last second, and what rooms will take that it got since. 0 does not limit it.
        busy_percent: u64 = "80", 0..=100;
        /// Number of syncs between two digests that clients check their copies against; 0 turns them
        /// off.
        check_every_syncs: u64 = "100", 0..=1_000_000;
    }
}

group! {
    /// Limits of the node. `per_address` limits the share of one address: an IPv4 address or an IPv6
    /// network.
    Limits = "limits" [limits] {
        /// Maximum open connections; more are closed when they arrive.
        connections: Quota = "{ total = 100000, per_address = 1000 }", [MANY, MANY];
        /// Maximum connections that have sent neither a hello nor an HTTP request; more are closed
        /// when they arrive.
        handshakes: Quota = "{ total = 20000, per_address = 200 }", [MANY, MANY];
        /// Maximum sessions that wait for their clients to come back; more end with their
        /// connections.
        sessions_away: Quota = "{ total = 100000, per_address = 1000 }", [0..=10_000_000, 0..=10_000_000];
        /// Maximum bytes of memory that clients make the node hold: unfinished messages, what they have
        /// not read, and bodies of HTTP requests. Past it, connections of the address that holds the
        /// most are closed; past that of an address, its connection that holds the most. A total of 0
        /// is 1 GiB, or a quarter of the memory that the process may use if that is less.
        memory: Quota = "{ total = 0, per_address = 67108864 }", [MEMORY, 65_536..=*MEMORY.end()];
        /// Maximum number of rooms.
        rooms: usize = "100000", MANY;
        /// Maximum number of channels. An address counts for those that its clients were the first to
        /// subscribe to or to publish in, until they end.
        channels: Quota = "{ total = 100000, per_address = 10000 }", [MANY, MANY];
        /// Maximum bytes of publications that all channels keep. Past it, the largest channel forgets
        /// its oldest, of the address whose channels keep the most; past that of an address, the
        /// largest of its channels.
        history_bytes: Quota = "{ total = 268435456, per_address = 67108864 }", [MEMORY, MEMORY];
        /// Maximum number of devices.
        devices: usize = "1000000", MANY;
        /// Maximum of what one device has: tags, bytes of metadata, and commands that it has not
        /// answered.
        device: DeviceLimits = "{ tags = 16, metadata_bytes = 4096, commands = 64 }", [0..=1024, 0..=1_048_576, 1..=65_536];
        /// Maximum size of a message from a client, in bytes.
        message_bytes: usize = "1048576", BYTES;
        /// Maximum size of the payload of a publication, and of a command to a device, in bytes.
        payload_bytes: usize = "65536", 1..=16_777_216;
        /// Maximum size of a player's display name, of a channel's name, and of a device's id and
        /// tags, in bytes.
        name_bytes: NameBytes = "{ player = 64, channel = 128, device = 128 }", [1..=1024, 1..=4096, 1..=4096];
        /// Maximum number of rooms, of a channel's members, and of publications in one answer.
        listed: Listed = "{ rooms = 100, members = 1000, publications = 1000 }", [1..=10_000, 1..=100_000, 1..=100_000];
        /// Maximum messages to a shard from other shards, unanswered requests to rooms from outside,
        /// background tasks of rooms, their computations, and clients whose authentication waits.
        queues: Queues = "{ mail = 16384, asks = 65536, tasks = 65536, computations = 1024, authentications = 10000 }", [1..=1_000_000, MANY, MANY, 1..=1_000_000, 1..=1_000_000];
    }
    /// What an address may do.
    address: AddressLimits;
    /// What a session may do.
    session: SessionLimits;
}

group! {
    /// What the sessions of one address may do together.
    AddressLimits = "limits.address" [limits.address] {
        /// Maximum hellos. Those that resume a session count for `resumes` instead.
        sessions: RateLimit = "{ per_minute = 1000 }", RATE;
        /// Maximum hellos with a resume token of this node.
        resumes: RateLimit = "{ per_minute = 20000 }", RATE;
        /// Maximum joins.
        joins: RateLimit = "{ per_minute = 5000 }", RATE;
        /// Maximum rooms created.
        rooms_created: RateLimit = "{ per_minute = 300 }", RATE;
        /// Maximum joins by a key that no room has.
        keys_missed: RateLimit = "{ per_minute = 300 }", RATE;
        /// Maximum channels that sessions start to use.
        channels_opened: RateLimit = "{ per_minute = 10000 }", RATE;
        /// Bits of an IPv6 address that count: those that begin with the same bits are one address.
        ipv6_prefix_bits: usize = "64", 1..=128;
        /// Addresses and networks that are exempt from the limits by address.
        trusted: Vec<Network> = "127.0.0.0/8,::1", NETWORKS;
    }
}

group! {
    /// What one session may do.
    SessionLimits = "limits.session" [limits.session] {
        /// Maximum messages from a connection; 0 per second = no maximum. What comes faster is
        /// refused, and past four times the rate the connection is closed.
        messages: RateLimit = "{ per_second = 2000, burst = 4000 }", [0..=1_000_000, 1..=10_000_000];
        /// Maximum bytes of messages from a connection; 0 per second = no maximum. What comes
        /// faster is refused. The burst is at least `limits.message_bytes`, even if set lower.
        bytes: RateLimit = "{ per_second = 4194304, burst = 8388608 }", [0..=1_073_741_824, 1..=1_073_741_824];
        /// Maximum unsent bytes. An event that would exceed it closes the connection, so it must be
        /// larger than a room's largest snapshot. While more than `high` are unsent, nothing is read
        /// from the connection.
        outbox_bytes: OutboxBytes = "{ max = 1048576, high = 65536 }", [1024..=1_073_741_824, 1..=1_073_741_824];
        /// Maximum bytes of events, replies and the like that the client has not confirmed. Beyond it
        /// the oldest are forgotten: a client whose connection is lost then misses them.
        resume_bytes: usize = "262144", 0..=1_073_741_824;
        /// Maximum number of rooms that the session may be in.
        rooms: usize = "16", 1..=1024;
        /// Maximum rooms created.
        rooms_created: RateLimit = "{ per_minute = 60 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum joins by a key that no room has. It bounds how fast codes can be guessed.
        keys_missed: RateLimit = "{ per_minute = 60 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum unanswered requests per player and room.
        requests: usize = "256", 1..=65_536;
        /// Maximum snapshots per player and room, for a join, a `resync`, or a session that comes
        /// back. Requests beyond that are delayed, and answered with one snapshot. Leaving a room
        /// and joining it again does not reset the limit.
        snapshots: RateLimit = "{ per_second = 5 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum channels that the session subscribes to.
        subscriptions: usize = "128", 1..=65_536;
        /// Maximum channels that the session starts to use. It bounds how many channels a session can
        /// have created.
        channels_opened: RateLimit = "{ per_minute = 600 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum publications.
        publishes: RateLimit = "{ per_second = 100 }", [1..=1_000_000, 1..=1_000_000];
    }
}

group! {
    /// Limits that a program may change, by its code or by [`Config::set`]. They are no settings:
    /// their defaults fit every node, so files, variables and flags have no names for them. Tests
    /// and measurements reach a limit by them, or remove it.
    Tuning = "tuning" [tuning] {
        /// Maximum size of a hello, in bytes; at most `limits.message_bytes`, even if set higher.
        hello_bytes: usize = "16384", BYTES;
        /// Minimum size of a WebSocket message that is compressed, in bytes.
        deflate_bytes_min: usize = "256", BYTES;
        /// How often the files of the certificate are checked for changes.
        tls_reload: Duration = "5s", WAITS;
        /// Maximum overdue ticks that a room runs at once; ticks beyond that are skipped.
        catch_up_ticks: u64 = "5", 1..=1000;
        /// Multiple of a rate of messages or bytes past which a connection is closed.
        rate_multiple: u64 = "4", 1..=1000;
        /// Maximum addresses whose rates are remembered after they have disconnected. With fewer,
        /// each is remembered for a minute.
        addresses: usize = "100000", MANY;
        /// Maximum returns to one session. Beyond it the client is refused, and its session waits
        /// for it.
        resumes: RateLimit = "{ per_minute = 120 }", RATE;
        /// Maximum `list` requests of a session.
        lists: RateLimit = "{ per_second = 10 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum `schema` requests of a session.
        schemas: RateLimit = "{ per_second = 10 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum `subscribe` requests of a session.
        subscribes: RateLimit = "{ per_second = 256 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum `members` and `history` requests of a session.
        channel_reads: RateLimit = "{ per_second = 50 }", [1..=1_000_000, 1..=1_000_000];
        /// Maximum bytes of publications in the answer to one `history`; one is sent in any case.
        history_listed_bytes: usize = "131072", 1..=16_777_216;
        /// Maximum times per minute that one device takes over the id of another; also the burst.
        take_overs_per_minute: u64 = "60", 1..=10_000_000;
    }
}
