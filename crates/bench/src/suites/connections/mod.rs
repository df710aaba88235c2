//! `bench connections`, `heartbeat` and `soak`: many clients that connect, say hello and then only
//! heartbeat, compared with the same exchange of bytes over bare sockets.
//!
//! The server runs in its own process on one core, the clients on another. Where the system
//! allows too few descriptors for all, each shard, and each thread of clients, has a descriptor
//! table of its own. Clients are guests in packed, and check every answer: each has a session that
//! no other has, and each heartbeat is answered with its number.

mod clients;

use std::io;
use std::time::{Duration, Instant};

use playfield_cli::options::{Failure, Usage};
use playfield_wire::server::{self as messages, ServerMessage};

use crate::harness::Side;
use crate::harness::bare::{self, Answer};
use crate::harness::dialogue::{Dialogue, Transport, upgraded};
use crate::harness::machine::{DRIVER_CORE, SERVER_CORE, pin, proc_value, raise_descriptors};
use crate::harness::options::{Suite, names, options};
use crate::harness::process::{Role, Usage as Used, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::percentile_ms;
use crate::harness::tables;
use clients::{Beat, Clients, Done};

names! {
    /// The workload that is measured.
    Which {
        /// Connecting, holding and their memory.
        Connections = "connections",
        /// The time that a heartbeat takes.
        Heartbeat = "heartbeat",
        /// The most heartbeats that are possible.
        Soak = "soak",
    }
}

options! {
    Options {
        suite: Which = Which::Connections => "suite" "" "", |given| given.value();
        count: usize = 10_000, quick 100
            => "count" "N" "number of clients (default 10000)", |given| given.within(1..=2_000_000);
        transport: Transport = Transport::Tcp
            => "transport" "tcp|ws" "native framing (default) or WebSocket", |given| given.value();
        heartbeat: Duration = Duration::from_secs(60), quick Duration::from_secs(1)
            => "heartbeat" "S" "seconds between a client's heartbeats; 0 for none (default 60, heartbeat: 10)",
            |given| given.seconds(0..=21_600);
        time: Duration = Duration::from_secs(6), quick Duration::from_millis(1_200)
            => "seconds" "S" "how long they are held (default 6, heartbeat: 10, soak: 3600 at most)",
            |given| given.seconds(0..=864_000);
        beats: u64 = 5_000_000, quick 5_000
            => "beats" "N" "heartbeats of a soak (default 5000000)",
            |given| given.within(1..=1_000_000_000_000);
        is_resumable: bool = true
            => "resumable" "on|off" "whether sessions can be resumed (default on)",
            |given| given.on_or_off();
        has_baseline: bool = true
            => "baseline" "on|off" "whether the baseline is measured (soak: off)",
            |given| given.on_or_off();
        rounds: Option<u32> = None
            => "rounds" "N" "how often baseline and node are measured, in turns (default 3, soak: 1)",
            |given| given.within(1..=1000).map(Some);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const CONNECTIONS: Suite<Options> = Suite {
    name: "connections",
    about: "many clients that connect, say hello and then only heartbeat: how fast they connect and
what each costs. The server runs on one core, the clients on another. The same run measures the
baseline: the same bytes over bare sockets.",
    defaults: Options::new,
    run,
};

pub(crate) const HEARTBEAT: Suite<Options> = Suite {
    name: "heartbeat",
    about: "the clients of connections: how long a heartbeat takes.",
    defaults: |is_quick| {
        let options = Options::new(is_quick);
        let (heartbeat_s, time) = if is_quick { (1, options.time) } else { (10, TEN) };
        let heartbeat = Duration::from_secs(heartbeat_s);
        Options { suite: Which::Heartbeat, heartbeat, time, ..options }
    },
    ..CONNECTIONS
};

pub(crate) const SOAK: Suite<Options> = Suite {
    name: "soak",
    about: "the clients of connections: as many heartbeats as possible.",
    defaults: |is_quick| {
        let time = Duration::from_secs(3_600);
        let options = Options::new(is_quick);
        Options { suite: Which::Soak, time, has_baseline: false, ..options }
    },
    ..CONNECTIONS
};

pub(crate) const ROLE: Role = Role { name: "connections", log: "error", serve: host };

const TEN: Duration = Duration::from_secs(10);

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

/// Results of one server.
struct Outcome {
    opened: Done,
    connect: Duration,
    held: Done,
    hold: Duration,
    /// Before and after connecting, and after holding.
    used: [Used; 3],
    slab: [u64; 2],
}

/// The baseline and the node, one after the other.
struct Round {
    bare: Option<Outcome>,
    node: Outcome,
}

/// By how much the memory of the node may grow in a soak.
const RSS_GROWTH_MAX: f64 = 0.01;

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    let is_soak = options.suite == Which::Soak;
    if is_soak && options.rounds.is_some() {
        return Err(Usage("--rounds: a soak is one round".into()).into());
    }
    pin(DRIVER_CORE)?;
    raise_descriptors();
    report.begin(COLUMNS)?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds.unwrap_or(if is_soak { 1 } else { 3 }) {
        let bare = options.has_baseline.then(|| measure(options, Side::Bare)).transpose()?;
        rounds.push(Round { bare, node: measure(options, Side::Node)? });
    }
    Ok(report.add(record(options, &rounds))?)
}

fn measure(options: &Options, side: Side) -> io::Result<Outcome> {
    let Options { count, transport, is_resumable, .. } = options;
    let words: [&dyn std::fmt::Display; 5] =
        [&side, count, transport, is_resumable, &options.heartbeat.as_millis()];
    let mut server = ROLE.start(&words)?;
    let empty = server.usage()?;
    let slab_before = slab();
    let began = Instant::now();
    let mut clients = Clients::start(options, server.address, side)?;
    let opened = clients.wait()?;
    let connect = began.elapsed();
    let full = server.usage()?;
    let slab = [slab_before, slab()];
    let began = Instant::now();
    let beat = match options.suite {
        Which::Soak => Beat::Next { count: options.beats },
        Which::Connections | Which::Heartbeat => Beat::Each(options.heartbeat),
    };
    let held = clients.hold(beat, options.time)?;
    let hold = began.elapsed();
    let last = server.usage()?;
    clients.end();
    for fault in [&opened.fault, &held.fault].into_iter().flatten() {
        eprintln!("{side}: {fault}");
    }
    Ok(Outcome { opened, connect, held, hold, used: [empty, full, last], slab })
}

/// Serves a node without rooms, or the baseline.
fn host(words: &mut Words) -> io::Result<()> {
    let (side, count, transport): (Side, usize, _) = (words.next()?, words.next()?, words.next()?);
    let (is_resumable, heartbeat_ms): (bool, u64) = (words.next()?, words.next()?);
    if side == Side::Bare {
        let answers = Answers(answers(Dialogue::new(transport), is_resumable));
        return serve(bare::start(&answers, count)?.port(), || vec![0; 2]);
    }
    pin(SERVER_CORE)?;
    let shards = tables::needed(count);
    let mut config = node_for(count, shards)?;
    // Clients heartbeat by themselves: the node asks only who is late.
    config.timeouts.heartbeat = Duration::from_millis(4 * heartbeat_ms.max(15_000));
    if shards > 1 {
        config.set("threads.descriptors", "per_shard").map_err(io::Error::other)?;
    }
    let running = playfield_server::Server::new(config).start()?;
    serve(running.local_addr().port(), || {
        let total = running.stats().total();
        vec![total.connections, total.sessions]
    })
}

/// The baseline: one message after the other for each read, since one exchange is under way at a time.
#[derive(Clone)]
struct Answers(Vec<Vec<u8>>);

impl Answer for Answers {
    /// The number of times it was answered.
    type Peer = usize;

    fn answer<'a>(
        &'a mut self,
        answered: &mut usize,
        input: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> (usize, &'a [u8]) {
        out.extend_from_slice(&self.0[*answered]);
        *answered = (*answered + 1).min(self.0.len() - 1);
        (input.len(), out)
    }
}

/// Answers as long as a node's.
fn answers(dialogue: Dialogue, is_resumable: bool) -> Vec<Vec<u8>> {
    let token = if is_resumable { vec![0; playfield_session::TOKEN_BYTES] } else { Vec::new() };
    let welcome = dialogue.answer_of(&ServerMessage::Welcome(messages::Welcome {
        protocol: playfield_wire::PROTOCOL,
        session: u64::MAX >> 8,
        heartbeat_ms: 30_000,
        max_message_bytes: 1 << 20,
        grace_ms: if is_resumable { 10_000 } else { 0 },
        resume: token.into(),
        ..messages::Welcome::default()
    }));
    let pong = messages::Pong { nonce: 1 << 40, time_us: 1 << 24 };
    let pong = dialogue.answer_of(&ServerMessage::Pong(pong));
    match dialogue.transport() {
        Transport::Tcp => vec![welcome, pong],
        Transport::WebSocket => vec![upgraded(), welcome, pong],
    }
}

fn record(options: &Options, rounds: &[Round]) -> Record {
    let all = options.count as u64;
    let nodes = || rounds.iter().map(|round| &round.node);
    let bares = || rounds.iter().filter_map(|round| round.bare.as_ref());
    let answered: u64 = nodes().map(|node| node.held.answered).sum();
    let is_complete = options.suite != Which::Soak || answered >= options.beats;
    // Nothing is proved by heartbeats that were asked for and did not take place.
    let has_beaten = options.heartbeat.is_zero() || nodes().all(|node| node.held.answered > 0);
    let verified = nodes().chain(bares()).all(|outcome| outcome.is_whole(all))
        && nodes().all(|node| node.has_sessions(all))
        && is_complete
        && has_beaten;
    let connected = nodes().map(|node| node.held.connected).min().unwrap_or(0);
    let mut record = Record::of(options.suite.name())
        .with("transport", options.transport.name())
        .with("resumable", options.is_resumable)
        .with("tables", tables::needed(options.count))
        .with("rounds", rounds.len())
        .with("connected", connected)
        .with("failed", all - connected)
        .median("connect_per_s", nodes().map(Outcome::connect_per_s))
        .median("rss_bytes_per_connection", nodes().map(Outcome::resident_each))
        .median("kernel_bytes_per_pair", nodes().map(Outcome::kernel_each))
        .with("heartbeats", answered)
        .median("heartbeats_per_s", nodes().map(Outcome::heartbeats_per_s))
        .with("lost", nodes().map(|node| node.held.sent - node.held.answered).sum::<u64>())
        .median("heartbeat_rtt_ms_p50", nodes().map(|node| node.rtt_ms(50.0)))
        .median("heartbeat_rtt_ms_p95", nodes().map(|node| node.rtt_ms(95.0)))
        .median("heartbeat_rtt_ms_p99", nodes().map(|node| node.rtt_ms(99.0)))
        .median("server_core", nodes().map(Outcome::server_core))
        .median("connect_server_us", nodes().map(Outcome::connect_server_us));
    if let (Which::Soak, Some(node)) = (options.suite, nodes().next()) {
        let [_, full, last] = &node.used;
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
        let ratios = rounds.iter().filter_map(|round| {
            Some(round.node.connect_per_s() / round.bare.as_ref()?.connect_per_s())
        });
        record = record
            .median("floor_connect_per_s", bares().map(Outcome::connect_per_s))
            .median("connect_ratio", ratios)
            .median("floor_connect_server_us", bares().map(Outcome::connect_server_us))
            .median("floor_rtt_ms_p50", bares().map(|bare| bare.rtt_ms(50.0)))
            .median("floor_rtt_ms_p95", bares().map(|bare| bare.rtt_ms(95.0)))
            .median("floor_rtt_ms_p99", bares().map(|bare| bare.rtt_ms(99.0)))
            .median("floor_server_core", bares().map(Outcome::server_core));
    }
    let compared: u64 = nodes().map(|node| node.opened.compared + node.held.compared).sum();
    record.with("compared", compared).with("verified", verified)
}

impl Outcome {
    /// Returns whether all clients were there, and every answer as it should be.
    fn is_whole(&self, all: u64) -> bool {
        let Self { opened, held, .. } = self;
        opened.connected == all
            && held.connected == all
            && opened.fault.is_none()
            && held.fault.is_none()
            && held.sent == held.answered
    }

    /// Returns whether the node has a session for each client, and no other.
    fn has_sessions(&self, all: u64) -> bool {
        let mut sessions = self.opened.sessions.clone();
        sessions.sort_unstable();
        sessions.dedup();
        sessions.len() as u64 == all && self.used[2].more == [all, all]
    }

    fn connect_per_s(&self) -> f64 {
        self.opened.connected as f64 / self.connect.as_secs_f64()
    }

    fn heartbeats_per_s(&self) -> f64 {
        self.held.answered as f64 / self.hold.as_secs_f64()
    }

    fn rtt_ms(&self, percent: f64) -> f64 {
        percentile_ms(&self.held.times, percent)
    }

    /// The server's share of a core while the clients were held.
    fn server_core(&self) -> f64 {
        let [_, full, last] = &self.used;
        last.cpu.saturating_sub(full.cpu).as_secs_f64() / self.hold.as_secs_f64()
    }

    fn resident_each(&self) -> f64 {
        let [empty, full, _] = &self.used;
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
        let [empty, full, _] = &self.used;
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
