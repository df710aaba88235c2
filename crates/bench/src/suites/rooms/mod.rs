//! `bench rooms`: how many rooms one core can serve, with every client connected and every message
//! compared.
//!
//! There are three processes: the command itself; the driver with all clients, on one core; and the
//! server, which the driver starts on the other core. The same run measures the *baseline*: the
//! same number of writes of the same length, and nothing else.

mod asking;
mod baseline;
mod check;
pub(in crate::suites) mod clients;
mod colyseus;
pub(in crate::suites) mod driver;
mod find_max;
pub(in crate::suites) mod measure;
pub(in crate::suites) mod pacer;
mod profiled;
pub(in crate::suites) mod room;
pub(in crate::suites) mod run;
pub(in crate::suites) mod window;

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use playfield_cli::options::Failure;
use playfield_room::{RoomType, Settings};

use crate::harness::dialogue::{self, Dialogue};
use crate::harness::machine::{SERVER_CORE, pin};
use crate::harness::options::{Suite, names, options};
use crate::harness::process::{Role, Words, node, serve};
use crate::harness::report::{Record, Report};
use crate::harness::source::Source;
use crate::harness::{Side, bare};
use crate::workloads::colyseus::Table;
use room::{Opening, PLAYERS_MAX, ROOM_TYPE};
pub(crate) use run::{is_whole, number, run_baseline, run_colyseus, run_ours, sent_bytes};

options! {
    Options {
        rooms: u32 = 100, quick 3
            => "rooms" "N" "number of rooms; the starting point of --find-max (default 100)",
            |given| given.within(1..=10_000);
        players: u64 = 30, quick 5
            => "players" "N" "players per room (default 30)", |given| given.within(1..=PLAYERS_MAX);
        hz: u32 = 20
            => "hz" "N" "ticks and patches per second (default 20)", |given| given.within(1..=1_000);
        seconds: u32 = 4, quick 1
            => "seconds" "N" "duration, after 1 s of warm-up (default 4)",
            |given| given.within(1..=86_400);
        inputs_hz: u32 = 0
            => "inputs-hz" "N" "inputs per second and client (default 0)",
            |given| given.within(0..=1_000);
        transport: Transport = Transport::WebSocket
            => "transport" "ws|wss|tcp|tls" "WebSocket (default) or native framing; over TLS",
            |given| given.value();
        workload: () = ()
            => "workload" "colyseus" "the only workload", |given| given.one_of(&[("colyseus", ())]);
        find_max: bool = false
            => "find-max" "" "find the most rooms that pass 3 of 3 runs, with intervals up to 60 ms at p99",
            |_given| Ok(true);
        profile: bool = false
            => "profile" "" "measure what live profiles of rooms of the example `arena` cost, in turns",
            |_given| Ok(true);
        warm_up: Duration = Duration::from_secs(1), quick Duration::from_millis(200)
            => "warm-up-ms" "" "", |given| given.milliseconds(0..=3_600_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
        driver: Option<Driver> = None => "role" "" "", |given| given.value().map(Some);
        bytes: usize = 1 => "bytes" "" "", |given| given.within(1..=1_000_000);
        colyseus: PathBuf = PathBuf::new() => "colyseus" "" "", |given| given.value();
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "rooms",
    about: "how many rooms of 30 or more players one core can serve, at 20 patches per second. The
server runs on one core and all clients on another. The same run measures the baseline: the same
writes and nothing else. With TLS, it measures the same without TLS, too.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "rooms", log: "error", serve: host };

names! {
    /// The transport of the messages.
    Transport {
        WebSocket = "ws",
        SecureWebSocket = "wss",
        /// Native framing.
        Tcp = "tcp",
        /// Native framing over TLS.
        Tls = "tls",
    }
}

names! {
    /// All clients of a run, in a process of their own.
    Driver {
        Node = "driver",
        Baseline = "baseline-driver",
        /// Of a Colyseus server, whose programs are in the folder `--colyseus`.
        Colyseus = "colyseus-driver",
    }
}

/// The setup of a run: its size, extra work of its rooms, and how clients ask for them.
pub(in crate::suites) struct Setup {
    pub(in crate::suites) case: Options,
    pub(in crate::suites) opening: Opening,
    /// The number of rooms to ask for as soon as clients are connected.
    pub(in crate::suites) rooms_at_once: usize,
    /// Says whether the node refuses rooms and players when it is full.
    pub(in crate::suites) is_limited: bool,
    /// The source addresses of clients.
    pub(in crate::suites) source: Source,
}

impl Setup {
    /// The rooms of the suite, without further work.
    pub(in crate::suites) fn of(case: &Options) -> Self {
        Self {
            case: case.clone(),
            opening: Opening::of(case.players),
            rooms_at_once: case.rooms as usize,
            // How many rooms one core serves is asked: so many join at once that they are late.
            is_limited: false,
            source: Source::Network(100),
        }
    }
}

impl Options {
    /// The number of clients in all rooms.
    pub(in crate::suites) fn clients(&self) -> usize {
        self.rooms as usize * self.players as usize
    }

    /// The same without TLS, if this is with TLS.
    fn plain(&self) -> Option<Self> {
        let transport = match self.transport {
            Transport::SecureWebSocket => Transport::WebSocket,
            Transport::Tls => Transport::Tcp,
            Transport::WebSocket | Transport::Tcp => return None,
        };
        Some(Self { transport, ..self.clone() })
    }

    /// The command line of the process with all clients.
    fn arguments(&self, driver: Driver) -> Vec<String> {
        let mut arguments = vec!["bench".to_owned(), "rooms".to_owned()];
        arguments.extend([
            format!("--role={driver}"),
            format!("--rooms={}", self.rooms),
            format!("--players={}", self.players),
            format!("--hz={}", self.hz),
            format!("--seconds={}", self.seconds),
            format!("--warm-up-ms={}", self.warm_up.as_millis()),
            format!("--inputs-hz={}", self.inputs_hz),
            format!("--transport={}", self.transport),
            format!("--bytes={}", self.bytes),
        ]);
        if driver == Driver::Colyseus {
            arguments.push(format!("--colyseus={}", self.colyseus.display()));
        }
        if self.corrupt_one && driver != Driver::Baseline {
            arguments.push("--corrupt-one".into());
        }
        arguments
    }

    /// Starts the record.
    fn record(&self) -> Record {
        Record::of("rooms")
            .with("workload", "colyseus")
            .with("transport", self.transport.name())
            .with("players", self.players)
            .with("hz_nominal", self.hz)
            .with("inputs_hz", self.inputs_hz)
            .with("seconds", self.seconds)
    }
}

impl Transport {
    fn is_secure(self) -> bool {
        matches!(self, Self::SecureWebSocket | Self::Tls)
    }

    fn dialogue(self) -> Dialogue {
        Dialogue::new(match self {
            Self::WebSocket | Self::SecureWebSocket => dialogue::Transport::WebSocket,
            Self::Tcp | Self::Tls => dialogue::Transport::Tcp,
        })
    }
}

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    match options.driver {
        None if options.profile => profiled::run(options, report)?,
        None if options.find_max => find_max::find_max(options, report)?,
        None => run::one(options, report)?,
        Some(driver) => run::drive(options, driver, report)?,
    }
    Ok(())
}

/// Serves the real server with default settings, except for one core, one shard, a free port and
/// the limits of a full node, if it is not to have them; or the baseline.
fn host(words: &mut Words) -> io::Result<()> {
    let side: Side = words.next()?;
    let case = Options {
        rooms: words.next()?,
        players: words.next()?,
        hz: words.next()?,
        inputs_hz: words.next()?,
        transport: words.next()?,
        bytes: words.next()?,
        ..Options::new(false)
    };
    let is_limited: bool = words.next()?;
    if side == Side::Bare {
        pin(SERVER_CORE)?;
        let listener = bare::listener()?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || bare::report(baseline::serve(&listener, &case)));
        return serve(port, Vec::new);
    }
    let mut config = node(1, &[])?;
    config.tls.self_signed = case.transport.is_secure();
    if !is_limited {
        (config.rooms.lateness, config.rooms.busy_percent) = (Duration::ZERO, 0);
    }
    let usual = RoomType::of::<Table>(ROOM_TYPE);
    let settings = Settings { tick_hz: case.hz, sync_hz: case.hz, ..usual.settings };
    let rooms = RoomType { settings, ..usual };
    let running = playfield_server::Server::new(config).room_type(rooms).start()?;
    let node = running.handle();
    serve(running.local_addr().port(), || {
        let stats = node.stats().total();
        let (late, busy) = (stats.joins_refused_late, stats.rooms_refused_busy);
        let counts = [stats.messages_in, stats.messages_too_fast, stats.conflated, late, busy];
        let ticks = [stats.ticks, stats.ticks_skipped];
        let rooms_ns = [stats.ticks_ns, stats.syncs_ns, stats.patches_ns];
        [&counts[..], &ticks, &rooms_ns, &[stats.input_ns, stats.writes_ns]].concat()
    })
}
