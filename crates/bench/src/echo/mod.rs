//! `bench echo`: as many messages as possible that a server sends back, or as many as arrive at a
//! rate, compared with a bare server that sends back frames of the same size.
//!
//! The server runs in its own process on one core, the clients on another. Both servers have the
//! same clients, in turns. The clients compare every byte, or only count bytes, which takes less time.
//! What counts is the server's processor time for a message: clients that compare may be slower than
//! a server.

mod arrivals;
mod clients;
mod cpp_clients;
mod floor;
mod relay;
mod room;
mod rust_clients;
mod server;
mod traffic;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::{pin, process_cpu};
use crate::histogram::Histogram;
use crate::limits::raise_descriptors;
use crate::side::Side;
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use clients::Clients;
use server::Hosted;
use traffic::Traffic;

pub use crate::connections::Transport;

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const CLIENTS_CORE: usize = 1;
/// The length before each frame.
pub const PREFIX_BYTES: usize = 4;
/// How long clients send before they are measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// The largest window: the numbers of its requests all take two bytes.
pub const WINDOW_MAX: usize = 1_000;
/// The largest payload.
pub const PAYLOAD_MAX: usize = 60_000;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the messages go through.
    pub class: Class,
    /// The size of a frame in class A, with the length before it.
    pub frame_bytes: usize,
    /// The size of the data of a message in class B.
    pub payload: usize,
    /// The number of clients.
    pub connections: usize,
    /// How many messages of each are under way.
    pub window: usize,
    /// What rooms answer with.
    pub mode: Mode,
    /// Who is in a room.
    pub rooms: Rooms,
    /// How clients connect.
    pub transport: Transport,
    /// What clients do with replies.
    pub driver: Driver,
    /// What the clients are.
    pub client: Client,
    /// The echo driver of the C++ client.
    pub client_program: PathBuf,
    /// How many messages per second arrive at all clients together; without, each has as many under
    /// way as the window has.
    pub rate: Option<u64>,
    /// How often each server is measured, in turns.
    pub rounds: u32,
    /// How long each time.
    pub time: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one reply, so that the check must fail.
    pub corrupt_one: bool,
    /// Which server this process is, if any.
    pub role: Option<Side>,
}

/// What messages go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A service with its own framing.
    A,
    /// A session, a room, its handler and its typed messages.
    B,
    /// Rooms that send to rooms of another shard. There are no clients and no sockets, and the
    /// shards have all cores; connections are pairs of rooms.
    Room,
}

/// What rooms answer with, and how clients wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sends are answered with events.
    Send,
    /// Requests are answered with replies, which are awaited.
    Request,
    /// Requests are answered with replies, which callbacks get. To the comparing driver it is the
    /// same.
    Callback,
}

/// What clients do with replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Compare every byte.
    Comparing,
    /// Count bytes: class A only.
    Counting,
}

/// Which clients drive the server. All but the lean ones measure themselves as much as the server, so
/// they run without a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Sockets, and as little around them as there can be.
    Lean,
    /// The Rust client: class B only.
    Rust,
    /// The echo driver of the C++ client: class B only.
    Cpp,
}

/// Who is in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rooms {
    /// One client.
    Own,
    /// A hundred clients.
    Shared,
}

impl Class {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("A", Self::A), ("B", Self::B), ("room", Self::Room)];

    fn name(self) -> &'static str {
        name(Self::NAMES, self)
    }
}

impl Mode {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("send", Self::Send), ("request", Self::Request), ("callback", Self::Callback)];

    fn name(self) -> &'static str {
        name(Self::NAMES, self)
    }
}

impl Driver {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("comparing", Self::Comparing), ("counting", Self::Counting)];

    fn name(self) -> &'static str {
        name(Self::NAMES, self)
    }
}

impl Client {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("lean", Self::Lean), ("rust", Self::Rust), ("cpp", Self::Cpp)];

    fn name(self) -> &'static str {
        name(Self::NAMES, self)
    }
}

impl Rooms {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("own", Self::Own), ("shared", Self::Shared)];

    fn name(self) -> &'static str {
        name(Self::NAMES, self)
    }
}

/// The first name of a value.
fn name<T: PartialEq>(names: &'static [(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, named)| *named == value).map_or("", |(name, _)| *name)
}

impl Default for Options {
    fn default() -> Self {
        Self {
            class: Class::A,
            frame_bytes: 8,
            payload: 8,
            connections: 1_000,
            window: 200,
            mode: Mode::Send,
            rooms: Rooms::Own,
            transport: Transport::Tcp,
            driver: Driver::Comparing,
            client: Client::Lean,
            client_program: "target/cpp/release/examples/echo_driver".into(),
            rate: None,
            rounds: 3,
            time: Duration::from_secs(3),
            json: false,
            corrupt_one: false,
            role: None,
        }
    }
}

const COLUMNS: &[Column] = &[
    ("class", "class"),
    ("transport", "transport"),
    ("mode", "mode"),
    ("client", "client"),
    ("bytes", "bytes"),
    ("connections", "connections"),
    ("window", "window"),
    ("messages/s", "messages_per_s"),
    ("floor", "floor_messages_per_s"),
    ("ns/message", "server_ns_per_message"),
    ("floor", "floor_ns_per_message"),
    ("ratio", "floor_ratio"),
    ("rtt us p50", "rtt_us_p50"),
    ("p99", "rtt_us_p99"),
    ("late p99", "driver_late_us_p99"),
    ("server core", "server_core"),
    ("driver", "driver_core"),
    ("verified", "verified"),
];

/// What came of one server in one round.
struct Outcome {
    messages: u64,
    /// In all, and those compared outside of the measured time.
    compared: u64,
    time: Duration,
    cpu: Duration,
    driver_cpu: Duration,
    resident: u64,
    times: Histogram,
    /// How much later than they should have been messages were sent, in an open loop.
    late: Histogram,
    fault: Option<String>,
}

impl Outcome {
    fn rate(&self) -> f64 {
        self.messages as f64 / self.time.as_secs_f64()
    }

    fn each_ns(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.messages.max(1) as f64
    }
}

/// Measures the case. Returns whether every reply was as it should be.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if let Some(side) = options.role {
        return server::host(options, side).map(|()| true);
    }
    let machine = Machine::describe();
    let is_relay = options.class == Class::Room;
    if !is_relay {
        pin(CLIENTS_CORE)?;
    }
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let (mut floors, mut nodes) = (Vec::new(), Vec::new());
    if options.client == Client::Cpp {
        let (record, verified) = cpp_clients::measure(options, case(options))?;
        report.add(record, out)?;
        return Ok(verified);
    }
    for _ in 0..options.rounds {
        if is_relay {
            nodes.push(relay::measure(options)?);
            continue;
        }
        if options.client == Client::Rust {
            nodes.push(rust_clients::measure(options)?);
            continue;
        }
        floors.push(measure(options, Side::Bare)?);
        nodes.push(measure(options, Side::Node)?);
    }
    let verified = floors.iter().chain(&nodes).all(|outcome| outcome.fault.is_none());
    report.add(record(options, &floors, &nodes, verified), out)?;
    Ok(verified)
}

fn measure(options: &Options, side: Side) -> io::Result<Outcome> {
    let mut hosted = Hosted::start(options, side)?;
    let traffic = Traffic::new(options);
    // Of the same size.
    let (options, traffic) = match side {
        Side::Node => (options.clone(), traffic),
        Side::Bare if options.class == Class::A => (options.clone(), traffic),
        Side::Bare => {
            let frame_bytes = traffic.sent.frame_bytes.max(PREFIX_BYTES);
            let bare = Options { class: Class::A, transport: Transport::Tcp, ..options.clone() };
            let traffic = Traffic::bare(&bare, frame_bytes);
            (bare, traffic)
        }
    };
    let mut clients = Clients::new(&options, traffic, hosted.address, side)?;
    clients.connect(options.connections)?;
    clients.begin()?;
    clients.run(WARM_UP)?;
    // Every client is at its second window, and buffers have their sizes. In an open loop that could
    // take minutes.
    let warm = match options.rate {
        Some(rate) => rate.min(2 * options.connections as u64),
        None => 2 * (options.connections * options.window) as u64,
    };
    clients.until_answered(warm)?;
    let (before, _) = hosted.usage()?;
    let driver_before = process_cpu();
    (clients.tally.times, clients.tally.late) = (Histogram::new(), Histogram::new());
    let (answered, began) = (clients.tally.answered, std::time::Instant::now());
    clients.run(options.time)?;
    let time = began.elapsed();
    let messages = clients.tally.answered - answered;
    let (times, late) = (clients.tally.times.clone(), clients.tally.late.clone());
    let (after, resident) = hosted.usage()?;
    let driver_cpu = process_cpu().saturating_sub(driver_before);
    clients.end()?;
    let fault = clients.tally.fault.take();
    if let Some(fault) = &fault {
        eprintln!("{side:?}: {fault}");
    }
    let cpu = after.saturating_sub(before);
    let compared = clients.tally.answered;
    Ok(Outcome { messages, compared, time, cpu, driver_cpu, resident, times, late, fault })
}

/// The medians of all rounds; times are those of all rounds together.
fn record(options: &Options, floors: &[Outcome], nodes: &[Outcome], verified: bool) -> Record {
    let median = |of: &[Outcome], value: &dyn Fn(&Outcome) -> f64| {
        Samples::new(of.iter().map(value).collect()).percentile(50.0)
    };
    let ratios = floors.iter().zip(nodes).map(|(floor, node)| floor.each_ns() / node.each_ns());
    let ratios = Samples::new(ratios.collect());
    let all = |of: &[Outcome], times: fn(&Outcome) -> &Histogram| {
        let mut all = Histogram::new();
        of.iter().for_each(|outcome| all.add(times(outcome)));
        all
    };
    let [ours, bare] = [nodes, floors].map(|of| all(of, |outcome| &outcome.times));
    let [late, floor_late] = [nodes, floors].map(|of| all(of, |outcome| &outcome.late));
    let us = |times: &Histogram, percent| times.percentile_ms(percent) * 1e3;
    let share = |of: &Outcome, cpu: Duration| cpu.as_secs_f64() / of.time.as_secs_f64();
    let mut record = case(options)
        .with("rounds", options.rounds)
        .measured("messages_per_s", median(nodes, &Outcome::rate))
        .measured("server_ns_per_message", median(nodes, &Outcome::each_ns))
        .measured("server_core", median(nodes, &|of| share(of, of.cpu)))
        .measured("rss_mb", median(nodes, &|of| of.resident as f64 / 1e6));
    if options.class != Class::Room {
        record = record
            .measured("rtt_us_p50", us(&ours, 50.0))
            .measured("rtt_us_p99", us(&ours, 99.0))
            .measured("rtt_us_p999", us(&ours, 99.9))
            .measured("driver_core", median(nodes, &|of| share(of, of.driver_cpu)));
    }
    if !floors.is_empty() {
        record = record
            .measured("floor_messages_per_s", median(floors, &Outcome::rate))
            .measured("floor_ns_per_message", median(floors, &Outcome::each_ns))
            .measured("floor_ratio", ratios.percentile(50.0))
            .measured("floor_ratio_min", ratios.percentile(0.0))
            .measured("floor_ratio_max", ratios.percentile(100.0))
            .measured("floor_rtt_us_p50", us(&bare, 50.0))
            .measured("floor_rtt_us_p99", us(&bare, 99.0))
            .measured("floor_rtt_us_p999", us(&bare, 99.9))
            .measured("floor_driver_core", median(floors, &|of| share(of, of.driver_cpu)));
    }
    if options.rate.is_some() {
        record = record
            .measured("driver_late_us_p50", us(&late, 50.0))
            .measured("driver_late_us_p99", us(&late, 99.0))
            .measured("floor_driver_late_us_p99", us(&floor_late, 99.0));
    }
    // What is only counted is not verified.
    let compares = options.driver == Driver::Comparing;
    record
        .with("messages", nodes.iter().map(|of| of.messages).sum::<u64>())
        .with(
            "compared",
            compares.then(|| nodes.iter().chain(floors).map(|of| of.compared).sum::<u64>()),
        )
        .with("verified", compares.then_some(verified))
}

/// What is measured.
fn case(options: &Options) -> Record {
    let bytes = if options.class == Class::A { options.frame_bytes } else { options.payload };
    let mut record = Record::new().with("suite", "echo").with("class", options.class.name());
    if options.class == Class::B {
        record = record.with("mode", options.mode.name()).with("rooms", options.rooms.name());
    }
    record = record
        .with("bytes", bytes)
        .with("connections", options.connections)
        .with("window", options.window);
    if options.class == Class::Room {
        return record;
    }
    record
        .with("transport", options.transport.name())
        .with("client", options.client.name())
        .with("driver", options.driver.name())
        .with("rate", options.rate)
}
