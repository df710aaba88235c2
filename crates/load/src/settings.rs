//! The parts of a load.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use playfield_client::session::Url;
use serde_json::Value;

use crate::bot::MakeBot;
use crate::name::Name;
use crate::profiler::Profiler;

/// The most connections of one load.
pub const CONNECTIONS_MAX: usize = 10_000_000;

/// Everything about a load.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node.
    pub url: Url,
    /// The number of connections.
    pub connections: usize,
    /// The number of processes that share them; 0 for as few as the limit on file descriptors
    /// allows.
    pub processes: usize,
    /// Over which time connections are opened; zero for as fast as the node answers.
    pub ramp: Duration,
    /// The duration of the load once all are connected. Without it, until all scripts have ended.
    pub duration: Option<Duration>,
    /// The time to wait for a connection, and at the end for answers.
    pub timeout: Duration,
    /// The players' display name. A [`Name`](crate::Name) gives each connection the name with its
    /// number.
    pub name: String,
    /// The token for the node's authenticator. If it is a [`Name`](crate::Name), each connection's
    /// is the one with its number; otherwise all have the same.
    pub token: Vec<u8>,
    /// Says whether the node keeps a session whose connection is lost.
    pub resumable: bool,
    /// Over WebSocket, offers compression.
    pub deflate: bool,
    /// A file with the root certificates to trust; otherwise those of the system.
    pub root: Option<PathBuf>,
    /// Addresses to connect from. Without any, several of loopback if there are many connections.
    pub sources: Vec<IpAddr>,
    /// The number of connections that keep copies of their rooms' states, to compare their digests.
    pub copies: usize,
    /// Counts, by field, what the connections that keep copies are sent. All must be in one room.
    pub profiler: Option<Profiler>,
    /// The interval of each connection's pings, whose answers are timed.
    pub ping: Option<Duration>,
    /// The factor by which the scripts run faster, for a node whose clock does.
    pub speed: u32,
    /// Polls sockets without waiting once the load has begun, which takes a core. A node on the
    /// same machine then spends no time on waking this program up.
    pub spin: bool,
    /// The time after the begin of the load for which the lateness of updates and the intervals
    /// between them are left out.
    pub warm_up: Duration,
    /// The interval at which the progress is reported, at most ten times a second.
    pub progress_every: Duration,
    /// Of all random values.
    pub seed: u64,
    /// The scripts of connections.
    pub scripts: Vec<Script>,
    /// The arguments of this program that start one of several processes.
    pub worker_arguments: Vec<OsString>,
    /// This is one of several processes.
    pub worker: Option<Worker>,
}

/// One of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its number, from 0.
    pub number: usize,
    /// The number of workers.
    pub of: usize,
    /// A number that distinguishes the load from others.
    pub run: u64,
}

/// The behavior of some of the connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The relative number of connections that run it.
    pub weight: u32,
    /// The token of these connections, as [`Settings::token`], which it replaces.
    pub token: Option<String>,
    /// Its action.
    pub steps: Vec<Step>,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its origin, for errors: a file and a line, or an option.
    pub place: String,
    /// Its action.
    pub action: Action,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Enters a room.
    Join {
        /// The room's type.
        room_type: String,
        /// The room to enter.
        enter: Enter,
        /// The options for creating it.
        options: Option<Value>,
    },
    /// Leaves the room of this type, or the one that was joined last.
    Leave {
        /// The room's type.
        room_type: Option<String>,
    },
    /// Waits for a time between these two.
    Wait {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// Waits until all connections are at this step, or have failed.
    WaitForAll,
    /// Sends a message to the room of this type, or to the one that was joined last.
    Message {
        /// The room's type.
        room_type: Option<String>,
        /// The message's name; any message of the room without one.
        name: Option<String>,
        /// The message. What it leaves out is generated.
        value: Option<Value>,
        /// Says whether a reply is expected.
        kind: MessageKind,
    },
    /// Subscribes to a channel, unless it does already.
    Subscribe {
        /// The channel.
        channel: Name,
        /// Says whether to hear of others who subscribe.
        presence: bool,
    },
    /// Ends the subscription to this channel, or the last one.
    Unsubscribe {
        /// The channel.
        channel: Option<Name>,
    },
    /// Publishes to a channel.
    Publish {
        /// The channel.
        channel: Name,
        /// The payload, without what the load adds to it.
        content: Content,
        /// Says whether a confirmation is expected.
        kind: MessageKind,
    },
    /// Registers as a device.
    Register {
        /// The device's id.
        device: Name,
        /// Its metadata.
        metadata: Vec<(String, Name)>,
        /// Its tags.
        tags: Vec<Name>,
        /// The answer to commands.
        answer: Answer,
    },
    /// Reports to the fleet, as a device.
    Report {
        /// The payload.
        content: Content,
        /// Says whether a reply is expected.
        kind: MessageKind,
    },
    /// Sends a ping, and does not wait for the answer.
    Ping,
    /// Does steps several times.
    Repeat {
        /// The number of times; without it, until the load ends.
        times: Option<u64>,
        /// The time from one begin to the next, however long the steps take.
        every: Option<Duration>,
        /// The steps.
        steps: Vec<Step>,
    },
    /// Lets a bot act in the room that was joined last, until the load ends.
    Bot {
        /// Makes it.
        make: MakeBot,
    },
    /// Stays until the load ends.
    Hold,
}

/// The room to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enter {
    /// Any that is not full, or a new one.
    Any,
    /// A new one.
    Create,
    /// The one with this id.
    Id(String),
    /// The one with this key, or a new one.
    Key(String),
    /// One for every N connections, with a key that begins with this text.
    Shared {
        /// The begin of the key.
        key: String,
        /// The number of connections that share a room.
        connections: usize,
    },
}

/// A payload without a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A JSON value. Parts of it may be generated.
    Json(Value),
    /// So many bytes.
    Bytes(usize),
}

/// The answer of a device to commands that want an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Answer {
    /// With the payload of the command.
    #[default]
    Echo,
    /// Not at all.
    Never,
    /// With this value. Parts of it may be generated.
    Value(Value),
}

/// Says whether a reply to a message is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// No.
    Send,
    /// Yes, and the next step waits for it.
    Request,
    /// Yes, and the next step does not wait for it.
    RequestAhead,
}

impl Settings {
    /// One connection without a room for ten seconds.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            connections: 1,
            processes: 0,
            ramp: Duration::ZERO,
            duration: Some(Duration::from_secs(10)),
            timeout: Duration::from_secs(10),
            name: String::new(),
            token: Vec::new(),
            resumable: true,
            deflate: false,
            root: None,
            sources: Vec::new(),
            copies: 1000,
            profiler: None,
            ping: None,
            speed: 1,
            spin: false,
            warm_up: Duration::ZERO,
            progress_every: Duration::from_secs(1),
            seed: 1,
            scripts: Vec::new(),
            worker_arguments: Vec::new(),
            worker: None,
        }
    }

    /// The numbers of this process's connections.
    pub(crate) fn numbers(&self) -> std::ops::Range<usize> {
        let (index, of) = self.worker.map_or((0, 1), |worker| (worker.number, worker.of));
        self.connections * index / of..self.connections * (index + 1) / of
    }
}

/// Why a load can't run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The settings or the script are wrong.
    Usage(String),
    /// The node can't be reached, or something of this machine failed.
    Work(String),
}

impl LoadError {
    pub(crate) fn unreachable(authority: &str, error: &io::Error) -> Self {
        Self::Work(format!("{authority} can't be reached: {error}; check that the node runs there"))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Work(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Work(error.to_string())
    }
}
