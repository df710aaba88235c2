//! `bench connections`, `heartbeat` and `soak`: many clients that connect, say hello and then only
//! heartbeat, compared with the same exchange of bytes over bare sockets.
//!
//! The server runs in a process of its own on one core, the clients on another. Where the system
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
            Suite::Soak => (10_000, 10, 60),
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
    let bare = options.has_baseline.then(|| measure(options, Side::Bare)).transpose()?;
    let node = measure(options, Side::Node)?;
    let (record, verified) = record(options, bare.as_ref(), &node);
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

fn record(options: &Options, bare: Option<&Outcome>, node: &Outcome) -> (Record, bool) {
    let rate = |outcome: &Outcome| outcome.opened.connected as f64 / outcome.connect.as_secs_f64();
    let mut sessions = node.opened.sessions.clone();
    sessions.sort_unstable();
    sessions.dedup();
    let all = options.count as u64;
    let [empty, full, last] = node.stats;
    let lost = node.held.sent - node.held.answered;
    let is_whole = |outcome: &Outcome| {
        let Outcome { opened, held, .. } = outcome;
        opened.connected == all
            && held.connected == all
            && opened.fault.is_none()
            && held.fault.is_none()
            && held.sent == held.answered
    };
    let verified = bare.is_none_or(is_whole)
        && is_whole(node)
        && sessions.len() as u64 == all
        && last.sessions == all
        && last.connections == all;
    let times = &node.held.times;
    let cpu = last.cpu.saturating_sub(full.cpu).as_secs_f64();
    let per = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 / node.opened.connected.max(1) as f64
    };
    let suite = match options.suite {
        Suite::Connections => "connections",
        Suite::Heartbeat => "heartbeat",
        Suite::Soak => "soak",
    };
    let mut record = Record::new()
        .with("suite", suite)
        .with("transport", options.transport.name())
        .with("resumable", options.is_resumable)
        .with("tables", tables::needed(options.count))
        .with("connected", node.held.connected)
        .with("failed", all - node.held.connected)
        .measured("connect_per_s", rate(node))
        .measured("rss_bytes_per_connection", per(empty.resident, full.resident))
        .measured("kernel_bytes_per_pair", per(node.slab[0], node.slab[1]))
        .with("heartbeats", node.held.answered)
        .measured("heartbeats_per_s", node.held.answered as f64 / node.hold.as_secs_f64())
        .with("lost", lost)
        .measured("heartbeat_rtt_ms_p50", times.percentile_ms(50.0))
        .measured("heartbeat_rtt_ms_p95", times.percentile_ms(95.0))
        .measured("heartbeat_rtt_ms_p99", times.percentile_ms(99.0))
        .measured("server_core", cpu / node.hold.as_secs_f64())
        .measured("connect_server_us", per_connection_us(node))
        .with("rss_start", full.resident)
        .with("rss_end", last.resident);
    if let Some(bare) = bare {
        let cpu = bare.stats[2].cpu.saturating_sub(bare.stats[1].cpu).as_secs_f64();
        let times = &bare.held.times;
        record = record
            .measured("floor_connect_per_s", rate(bare))
            .measured("connect_ratio", rate(node) / rate(bare))
            .measured("floor_connect_server_us", per_connection_us(bare))
            .measured("floor_rtt_ms_p50", times.percentile_ms(50.0))
            .measured("floor_rtt_ms_p95", times.percentile_ms(95.0))
            .measured("floor_rtt_ms_p99", times.percentile_ms(99.0))
            .measured("floor_server_core", cpu / bare.hold.as_secs_f64());
    }
    let compared = node.opened.compared + node.held.compared;
    (record.with("compared", compared).with("verified", verified), verified)
}

/// The server's CPU time for each connection that was opened.
fn per_connection_us(outcome: &Outcome) -> f64 {
    let [empty, full, _] = outcome.stats;
    let cpu = full.cpu.saturating_sub(empty.cpu).as_secs_f64() * 1e6;
    cpu / outcome.opened.connected.max(1) as f64
}

/// The memory of the kernel's objects, in bytes; 0 where that is not known.
fn slab() -> u64 {
    let value = proc_value("/proc/meminfo", "Slab");
    let kilobytes = value.and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
