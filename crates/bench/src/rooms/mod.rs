//! `bench rooms`: how many rooms one core carries, with every client connected and every message
//! compared.
//!
//! Three processes: the command that was given; the driver with all clients, on one core; and the
//! server, which the driver starts, on the other. In the same run the *baseline* is measured: the same
//! number of writes of the same length, and nothing else.

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

/// Where the server runs.
const SERVER_CORE: usize = 0;

/// Where the clients run.
const DRIVER_CORE: usize = 1;

/// What to measure, and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size; with `find_max`, where the search begins.
    pub case: Case,
    /// Look for the largest number of rooms that holds.
    pub find_max: bool,
    /// Lines of JSON instead of a table.
    pub json: bool,
    /// Damages one message on its way, so that the check must fail.
    pub corrupt_one: bool,
    /// Which of the processes this is.
    pub role: Role,
    /// How many bytes the baseline sends at a time.
    pub bytes: usize,
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket.
    WebSocket,
    /// Native framing.
    Tcp,
}

/// The part that a process plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It starts the others, and reports.
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
    /// All of them, by the names they are chosen by.
    pub const NAMES: &[(&str, Self)] = &[("ws", Self::WebSocket), ("tcp", Self::Tcp)];

    fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::Tcp => "tcp",
        }
    }
}

impl Role {
    /// All that the command gives itself, by name.
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

/// Runs the suite, or one process of it. Says whether all that was counted was verified.
///
/// # Errors
/// A process can't be run, clients can't get in, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    match options.role {
        Role::Command if options.find_max => find_max::find_max(options, out),
        Role::Command => run::one(options, out),
        Role::Driver => run::drive(options, driver::Peer::Playfield, out),
        Role::BaselineDriver => {
            run::drive(options, driver::Peer::Baseline { bytes: options.bytes }, out)
        }
        Role::Server => host::host(options.case.hz).map(|()| true),
        Role::BaselineServer => baseline::host(&options.case, options.bytes).map(|()| true),
    }
}
