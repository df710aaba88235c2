//! `bench connections`, `heartbeat` and `soak`: many clients that connect, say hello and then only
//! heartbeat, compared with the same exchange of bytes over bare sockets.
//!
//! The server runs in its own process on one core, the clients on another. Where the system
//! allows too few descriptors for all, each shard, and each thread of clients, has a descriptor
//! table of its own. Clients are guests in packed, and check every answer: each has a session that
//! no other has, and each heartbeat is answered with its number.

mod bare;
mod clients;
pub(crate) mod dialogue;
mod server;
pub(crate) mod tables;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::clock::pin;
use crate::limits::raise_descriptors;
use crate::machine::proc_value;
use crate::side::Side;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use clients::{Beat, Clients, Done};
use dialogue::Dialogue;
use server::{Hosted, Stats};

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const CLIENTS_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The suite.
    pub suite: Suite,
    /// The number of clients.
    pub count: usize,
    /// How they connect.
    pub transport: Transport,
    /// How often each heartbeats; zero is never.
    pub heartbeat: Duration,
    /// How long they are held.
    pub time: Duration,
    /// The number of heartbeats of a soak.
    pub beats: u64,
    /// Whether their sessions can be resumed, as those of a default client can.
    pub is_resumable: bool,
    /// Whether the baseline is measured as well.
    pub has_baseline: bool,
    /// How often the baseline and the node are measured, in turns. A soak is one round.
    pub rounds: u32,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one answer, so that the check must fail.
    pub corrupt_one: bool,
    /// Which server this process is, if any.
    pub role: Option<Side>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Connecting, holding and their memory.
    Connections,
    /// How long a heartbeat takes.
    Heartbeat,
    /// As many heartbeats as possible.
    Soak,
}

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Native framing over TCP.
    Tcp,
    /// WebSocket.
    WebSocket,
}

impl Options {
    /// The defaults of a suite.
    pub fn new(suite: Suite) -> Self {
        let (count, heartbeat_s, time_s) = match suite {
            Suite::Connections => (10_000, 60, 10),
            Suite::Heartbeat => (10_000, 10, 30),
            Suite::Soak => (10_000, 10, 3600),
        };
        Self {
            suite,
            count,
            transport: Transport::Tcp,
            heartbeat: Duration::from_secs(heartbeat_s),
            time: Duration::from_secs(time_s),
            beats: 86_400_000,
            is_resumable: true,
            has_baseline: suite != Suite::Soak,
            rounds: if suite == Suite::Soak { 1 } else { 3 },
            json: false,
            corrupt_one: false,
            role: None,
        }
    }

    fn dialogue(&self) -> Dialogue {
        Dialogue::new(self.transport)
    }
}

impl Transport {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("tcp", Self::Tcp), ("ws", Self::WebSocket)];

    pub(crate) fn name(self) -> &'static str {
        if self == Self::Tcp { "tcp" } else { "ws" }
    }
}

const COLUMNS: &[Column] = &[
    ("transport", "transport"),
    ("connected", "connected"),
    ("failed", "failed"),
    ("connect/s", "connect_per_s"),
    ("bare", "floor_connect_per_s"),
    ("ratio", "connect_ratio"),
    ("B/connection", "rss_bytes_per_connection"),
    ("kernel B/pair", "kernel_bytes_per_pair"),
    ("beats", "heartbeats"),
    ("beats/s", "heartbeats_per_s"),
    ("lost", "lost"),
    ("rtt ms p50", "heartbeat_rtt_ms_p50"),
    ("p95", "heartbeat_rtt_ms_p95"),
    ("p99", "heartbeat_rtt_ms_p99"),
    ("bare p99", "floor_rtt_ms_p99"),
    ("server core", "server_core"),
    ("verified", "verified"),
];

/// What came of one server.
struct Outcome {
    opened: Done,
    connect: Duration,
    held: Done,
    hold: Duration,
    /// Before and after connecting, and after holding.
    stats: [Stats; 3],
    slab: [u64; 2],
}

/// The baseline and the node, one after the other.
struct Round {
    bare: Option<Outcome>,
    node: Outcome,
}

/// By how much the memory of the node may grow in a soak.
const RSS_GROWTH_MAX: f64 = 0.01;

/// Runs a suite. Returns whether every answer was as it should be.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if let Some(side) = options.role {
        return server::host(options, side).map(|()| true);
    }
    let machine = Machine::describe();
    pin(CLIENTS_CORE)?;
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let bare = options.has_baseline.then(|| measure(options, Side::Bare)).transpose()?;
        rounds.push(Round { bare, node: measure(options, Side::Node)? });
    }
    let (record, verified) = record(options, &rounds);
    report.add(record, out)?;
    Ok(verified)
}

fn measure(options: &Options, side: Side) -> io::Result<Outcome> {
    let mut hosted = Hosted::start(options, side)?;
    let empty = hosted.stats()?;
    let slab_before = slab();
    let began = Instant::now();
    let mut clients = Clients::start(options, hosted.address, side)?;
    let opened = clients.wait()?;
    let connect = began.elapsed();
    let full = hosted.stats()?;
    let slab = [slab_before, slab()];
    let began = Instant::now();
    let beat = match options.suite {
        Suite::Soak => Beat::Next { count: options.beats },
        Suite::Connections | Suite::Heartbeat => Beat::Each(options.heartbeat),
    };
    let held = clients.hold(beat, options.time)?;
    let hold = began.elapsed();
    let last = hosted.stats()?;
    clients.end();
    for fault in [&opened.fault, &held.fault].into_iter().flatten() {
        eprintln!("{}: {fault}", side.name());
    }
    Ok(Outcome { opened, connect, held, hold, stats: [empty, full, last], slab })
}

fn record(options: &Options, rounds: &[Round]) -> (Record, bool) {
    let all = options.count as u64;
    let nodes = || rounds.iter().map(|round| &round.node);
    let bares = || rounds.iter().filter_map(|round| round.bare.as_ref());
    let answered: u64 = nodes().map(|node| node.held.answered).sum();
    let is_complete = options.suite != Suite::Soak || answered >= options.beats;
    // Nothing is proved by heartbeats that were asked for and did not take place.
    let has_beaten = options.heartbeat.is_zero() || nodes().all(|node| node.held.answered > 0);
    let verified = nodes().chain(bares()).all(|outcome| outcome.is_whole(all))
        && nodes().all(|node| node.has_sessions(all))
        && is_complete
        && has_beaten;
    let suite = match options.suite {
        Suite::Connections => "connections",
        Suite::Heartbeat => "heartbeat",
        Suite::Soak => "soak",
    };
    let of_nodes = |of: fn(&Outcome) -> f64| Spread::of(nodes().map(of));
    let connect = of_nodes(Outcome::connect_per_s);
    let connected = nodes().map(|node| node.held.connected).min().unwrap_or(0);
    let mut record = Record::new()
        .with("suite", suite)
        .with("transport", options.transport.name())
        .with("resumable", options.is_resumable)
        .with("tables", tables::needed(options.count))
        .with("rounds", rounds.len())
        .with("connected", connected)
        .with("failed", all - connected)
        .measured("connect_per_s", connect.median)
        .measured("connect_per_s_min", connect.least)
        .measured("connect_per_s_max", connect.most)
        .measured("rss_bytes_per_connection", of_nodes(Outcome::resident_each).median)
        .measured("kernel_bytes_per_pair", of_nodes(Outcome::kernel_each).median)
        .with("heartbeats", answered)
        .measured("heartbeats_per_s", of_nodes(Outcome::heartbeats_per_s).median)
        .with("lost", nodes().map(|node| node.held.sent - node.held.answered).sum::<u64>())
        .measured("heartbeat_rtt_ms_p50", of_nodes(|node| node.rtt_ms(50.0)).median)
        .measured("heartbeat_rtt_ms_p95", of_nodes(|node| node.rtt_ms(95.0)).median)
        .measured("heartbeat_rtt_ms_p99", of_nodes(|node| node.rtt_ms(99.0)).median)
        .measured("server_core", of_nodes(Outcome::server_core).median)
        .measured("connect_server_us", of_nodes(Outcome::connect_server_us).median);
    if let (Suite::Soak, Some(node)) = (options.suite, nodes().next()) {
        let [_, full, last] = node.stats;
        let growth = last.resident as f64 / full.resident.max(1) as f64 - 1.0;
        record = record
            .with("heartbeats_asked", options.beats)
            .with("complete", is_complete)
            .with("rss_start", full.resident)
            .with("rss_end", last.resident)
            .with("rss_growth", (growth * 1e6).round() / 1e6)
            .with("rss_flat", growth <= RSS_GROWTH_MAX);
    }
    if options.has_baseline {
        let of_bares = |of: fn(&Outcome) -> f64| Spread::of(bares().map(of)).median;
        let ratios = rounds.iter().filter_map(|round| {
            Some(round.node.connect_per_s() / round.bare.as_ref()?.connect_per_s())
        });
        let ratios = Spread::of(ratios);
        record = record
            .measured("floor_connect_per_s", of_bares(Outcome::connect_per_s))
            .measured("connect_ratio", ratios.median)
            .measured("connect_ratio_min", ratios.least)
            .measured("connect_ratio_max", ratios.most)
            .measured("floor_connect_server_us", of_bares(Outcome::connect_server_us))
            .measured("floor_rtt_ms_p50", of_bares(|bare| bare.rtt_ms(50.0)))
            .measured("floor_rtt_ms_p95", of_bares(|bare| bare.rtt_ms(95.0)))
            .measured("floor_rtt_ms_p99", of_bares(|bare| bare.rtt_ms(99.0)))
            .measured("floor_server_core", of_bares(Outcome::server_core));
    }
    let compared: u64 = nodes().map(|node| node.opened.compared + node.held.compared).sum();
    (record.with("compared", compared).with("verified", verified), verified)
}

/// A figure of some rounds; NaN if none has it.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.filter(|figure| !figure.is_nan()).collect();
        figures.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let (median, most) = (figures.len() / 2, figures.len().saturating_sub(1));
        Self { least: at(0), median: at(median), most: at(most) }
    }
}

impl Outcome {
    /// Whether all clients were there, and every answer as it should be.
    fn is_whole(&self, all: u64) -> bool {
        let Self { opened, held, .. } = self;
        opened.connected == all
            && held.connected == all
            && opened.fault.is_none()
            && held.fault.is_none()
            && held.sent == held.answered
    }

    /// Whether the node has a session for each client, and no other.
    fn has_sessions(&self, all: u64) -> bool {
        let mut sessions = self.opened.sessions.clone();
        sessions.sort_unstable();
        sessions.dedup();
        let last = self.stats[2];
        sessions.len() as u64 == all && last.sessions == all && last.connections == all
    }

    fn connect_per_s(&self) -> f64 {
        self.opened.connected as f64 / self.connect.as_secs_f64()
    }

    fn heartbeats_per_s(&self) -> f64 {
        self.held.answered as f64 / self.hold.as_secs_f64()
    }

    fn rtt_ms(&self, percent: f64) -> f64 {
        self.held.times.percentile_ms(percent)
    }

    /// The server's share of a core while the clients were held.
    fn server_core(&self) -> f64 {
        let [_, full, last] = self.stats;
        last.cpu.saturating_sub(full.cpu).as_secs_f64() / self.hold.as_secs_f64()
    }

    fn resident_each(&self) -> f64 {
        let [empty, full, _] = self.stats;
        self.each(empty.resident, full.resident)
    }

    fn kernel_each(&self) -> f64 {
        self.each(self.slab[0], self.slab[1])
    }

    fn each(&self, before: u64, after: u64) -> f64 {
        after.saturating_sub(before) as f64 / self.opened.connected.max(1) as f64
    }

    /// The server's CPU time for each connection that was opened.
    fn connect_server_us(&self) -> f64 {
        let [empty, full, _] = self.stats;
        let cpu = full.cpu.saturating_sub(empty.cpu).as_secs_f64() * 1e6;
        cpu / self.opened.connected.max(1) as f64
    }
}

/// The memory of the kernel's objects, in bytes; 0 where that is not known.
fn slab() -> u64 {
    let value = proc_value("/proc/meminfo", "Slab");
    let kilobytes = value.and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
