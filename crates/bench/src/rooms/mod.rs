//! `bench rooms`: how many rooms one core can serve, with every client connected and every message
//! compared.
//!
//! There are three processes: the command itself; the driver with all clients, on one core; and the
//! server, which the driver starts on the other core. The same run measures the *baseline*: the
//! same number of writes of the same length, and nothing else.

mod baseline;
mod case;
mod driver;
mod find_max;
mod host;
mod hosted;
mod run;
mod search;
mod table;

use std::io::{self, Write};

pub use case::Case;
pub use table::{CountInputs, Opening, PLAYERS_MAX, Steer};

/// The server's core.
const SERVER_CORE: usize = 0;

/// The driver's core.
const DRIVER_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size; with `find_max`, where the search starts.
    pub case: Case,
    /// Search for the maximum number of rooms.
    pub find_max: bool,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Corrupt one message in transit, so that the check must fail.
    pub corrupt_one: bool,
    /// The role of this process.
    pub role: Role,
    /// How many bytes the baseline sends at a time.
    pub bytes: usize,
}

/// The transport of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket.
    WebSocket,
    /// WebSocket over TLS.
    SecureWebSocket,
    /// Native framing.
    Tcp,
    /// Native framing over TLS.
    Tls,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Starts the other processes and reports.
    Command,
    /// All clients of one run.
    Driver,
    /// The server of one run.
    Server,
    /// All clients of the baseline.
    BaselineDriver,
    /// The baseline.
    BaselineServer,
}

impl Options {
    /// The standard case.
    pub fn new() -> Self {
        Self {
            case: Case::default(),
            find_max: false,
            json: false,
            corrupt_one: false,
            role: Role::Command,
            bytes: 1,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Transport {
    /// All transports by name.
    pub const NAMES: &[(&str, Self)] = &[
        ("ws", Self::WebSocket),
        ("wss", Self::SecureWebSocket),
        ("tcp", Self::Tcp),
        ("tls", Self::Tls),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, transport)| *transport == self).map_or("", |(name, _)| name)
    }

    fn is_web_socket(self) -> bool {
        matches!(self, Self::WebSocket | Self::SecureWebSocket)
    }

    /// The same without TLS.
    fn plain(self) -> Self {
        match self {
            Self::SecureWebSocket | Self::WebSocket => Self::WebSocket,
            Self::Tls | Self::Tcp => Self::Tcp,
        }
    }

    fn is_secure(self) -> bool {
        matches!(self, Self::SecureWebSocket | Self::Tls)
    }
}

impl Role {
    /// All roles that the command passes to its processes, by name.
    pub const NAMES: &[(&str, Self)] = &[
        ("driver", Self::Driver),
        ("server", Self::Server),
        ("baseline-driver", Self::BaselineDriver),
        ("baseline-server", Self::BaselineServer),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, role)| *role == self).map_or("command", |(name, _)| name)
    }
}

/// Runs the suite, or one process of it. Returns whether everything counted was verified.
///
/// # Errors
/// A process can't be run, clients can't join, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    match options.role {
        Role::Command if options.find_max => find_max::find_max(options, out),
        Role::Command => run::one(options, out),
        Role::Driver => run::drive(options, driver::Peer::Playfield, out),
        Role::BaselineDriver => {
            run::drive(options, driver::Peer::Baseline { bytes: options.bytes }, out)
        }
        Role::Server => host::host(&options.case).map(|()| true),
        Role::BaselineServer => baseline::host(&options.case, options.bytes).map(|()| true),
    }
}
