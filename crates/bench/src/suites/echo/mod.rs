//! `bench echo`: as many messages as possible that a server sends back, or as many as arrive at a
//! rate, compared with a bare server that sends back frames of the same size.
//!
//! The server runs in its own process on one core, the clients on another. Both servers have the
//! same clients, in turns. The clients compare every byte, or only count bytes, which takes less
//! time. What counts is the server's processor time for a message: clients that compare may be
//! slower than a server.

mod arrivals;
mod bare_client;
mod clients;
mod cpp_clients;
mod relay;
mod rust_clients;
mod server;
mod traffic;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use playfield_cli::options::{Failure, Usage};
use playfield_load::Timings;

use crate::harness::Side;
use crate::harness::dialogue::Transport;
use crate::harness::machine::{DRIVER_CORE, pin, process_cpu, raise_descriptors};
use crate::harness::options::{Suite, names, options};
use crate::harness::process::Server;
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::percentile_ms;
use clients::Clients;
use traffic::Traffic;

pub(crate) use server::ROLE;

/// The length before each frame.
const PREFIX_BYTES: usize = 4;
/// The time for which clients send before they are measured.
const WARM_UP: Duration = Duration::from_millis(300);
/// The largest window: the numbers of its requests all take two bytes.
const WINDOW_MAX: usize = 1_000;
/// The largest payload.
const PAYLOAD_MAX: usize = 60_000;

names! {
    /// The way of messages.
    Class {
        /// A service with its own framing.
        A = "A",
        /// A session, a room, its handler and its typed messages.
        B = "B",
        /// Rooms that send to rooms of another shard. There are no clients and no sockets, and the
        /// shards have all cores; connections are pairs of rooms.
        Room = "room",
    }
}

names! {
    /// The answers of rooms, and how clients wait for them.
    Mode {
        /// Sends are answered with events.
        Send = "send",
        /// Requests are answered with replies, which are awaited.
        Request = "request",
        /// Requests are answered with replies, which callbacks get. To the comparing driver it is
        /// the same.
        Callback = "callback",
    }
}

names! {
    /// Use of replies by clients.
    Driver {
        /// Compare every byte.
        Comparing = "comparing",
        /// Count bytes: class A only.
        Counting = "counting",
    }
}

names! {
    /// The clients that drive the server. All but the lean ones measure themselves as much as the
    /// server, so they run without a baseline.
    Client {
        /// Sockets, and as little around them as there can be.
        Lean = "lean",
        /// The Rust client: class B only.
        Rust = "rust",
        /// The echo driver of the C++ client: class B only.
        Cpp = "cpp",
    }
}

names! {
    /// Players of a room.
    Rooms {
        /// One client.
        Own = "own",
        /// A hundred clients.
        Shared = "shared",
    }
}

options! {
    Options {
        class: Class = Class::A
            => "class" "A|B|room" "a service (default), rooms, or rooms that send to rooms of another shard",
            |given| given.value();
        frame_bytes: usize = 8
            => "frame-bytes" "N" "class A: size of a frame with its length of 4 bytes, the payload by ws (default 8)",
            |given| given.within(PREFIX_BYTES + 1..=PAYLOAD_MAX);
        payload: usize = 8
            => "payload" "N" "class B, room: size of a message's data (default 8)",
            |given| given.within(1..=PAYLOAD_MAX);
        connections: usize = 1_000, quick 20
            => "connections" "N" "number of clients, or of pairs of rooms (default 1000)",
            |given| given.within(1..=19_000);
        window: usize = 200, quick 20
            => "window" "N" "messages of a client that are under way (default 200)",
            |given| given.within(1..=WINDOW_MAX);
        mode: Mode = Mode::Send
            => "mode" "send|request|callback" "class B: events (default), or replies to requests",
            |given| given.value();
        rooms: Rooms = Rooms::Own
            => "rooms" "own|shared" "a client (default) or 100 in each room", |given| given.value();
        transport: Transport = Transport::Tcp
            => "transport" "tcp|ws" "native framing (default) or WebSocket", |given| given.value();
        driver: Driver = Driver::Comparing
            => "driver" "comparing|counting" "class A: compare every byte (default), or count bytes, which takes less time",
            |given| given.value();
        client: Client = Client::Lean
            => "client" "lean|rust|cpp" "class B: sockets with little around them (default), or clients of an SDK",
            |given| given.value();
        client_program: PathBuf = "target/cpp/release/examples/echo_driver".into()
            => "client-program" "PATH" "the C++ client's echo driver (default target/cpp/release/examples/echo_driver)",
            |given| given.value();
        rate: Option<u64> = None
            => "rate" "N" "messages that arrive per second, whatever is answered; without a window",
            |given| given.within(1..=100_000_000).map(Some);
        rounds: u32 = 3, quick 1
            => "rounds" "N" "measurements, in turns; the median counts (default 3)",
            |given| given.within(1..=1_000);
        time: Duration = Duration::from_secs(3), quick Duration::from_millis(300)
            => "seconds" "S" "duration of one measurement (default 3)",
            |given| given.within(0.1..=86_400.0).map(Duration::from_secs_f64);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "echo",
    about: "as many messages as possible that a server sends back, or as many as arrive at a rate:
through a service with framing of its own (class A), through a session, a room and its typed messages
(B), or from room to room across two shards (room), without clients. For A and B, the same run
measures the baseline: a bare server that sends frames of the same size back. The server runs on one
core, the clients, which compare every byte, on another.",
    defaults: Options::new,
    run,
};

impl Options {
    /// The URL of a server.
    fn url(&self, server: &Server) -> String {
        let scheme = if self.transport == Transport::Tcp { "tcp" } else { "ws" };
        format!("{scheme}://{}", server.address)
    }
}

/// Refuses options that exclude each other.
fn check(options: &Options) -> Result<(), Usage> {
    let counts = options.driver == Driver::Counting;
    let is_sdk = options.client != Client::Lean;
    let text = if counts && options.class != Class::A {
        "--driver counting: only replies of class A can be counted without decoding them"
    } else if counts && options.corrupt_one {
        "--corrupt-one: --driver counting would not notice it"
    } else if is_sdk && (options.class != Class::B || options.rate.is_some()) {
        "--client rust and cpp: only in class B, and without --rate"
    } else {
        return Ok(());
    };
    Err(Usage(text.into()))
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
    ("of bare", "rate_of_bare"),
    ("cpu", "cpu_of_bare"),
    ("rtt us p50", "rtt_us_p50"),
    ("p99", "rtt_us_p99"),
    ("late p99", "driver_late_us_p99"),
    ("server core", "server_core"),
    ("driver", "driver_core"),
    ("verified", "verified"),
];

/// Results of one server in one round.
pub(crate) struct Outcome {
    messages: u64,
    /// In all, and those compared outside of the measured time.
    compared: u64,
    time: Duration,
    cpu: Duration,
    driver_cpu: Duration,
    resident: u64,
    times: Timings,
    /// The delays of messages that were sent later than they should have been, in an open loop.
    late: Timings,
    /// The first fault, if there was one.
    pub(crate) fault: Option<String>,
}

impl Outcome {
    /// Messages that were answered, per second.
    pub(crate) fn rate(&self) -> f64 {
        self.messages as f64 / self.time.as_secs_f64()
    }

    /// The server's processor time for a message.
    pub(crate) fn each_ns(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.messages.max(1) as f64
    }
}

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    check(options)?;
    let is_relay = options.class == Class::Room;
    if !is_relay {
        pin(DRIVER_CORE)?;
    }
    raise_descriptors();
    report.begin(COLUMNS)?;
    if options.client == Client::Cpp {
        return match cpp_clients::measure(options, case(options)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                report.unmeasured(error.to_string());
                Ok(())
            }
            record => Ok(report.add(record?)?),
        };
    }
    let (mut floors, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        if is_relay {
            nodes.push(relay::measure(options)?);
        } else if options.client == Client::Rust {
            nodes.push(rust_clients::measure(options)?);
        } else {
            floors.push(measure(options, Side::Bare)?);
            nodes.push(measure(options, Side::Node)?);
        }
    }
    Ok(report.add(record(options, &floors, &nodes))?)
}

/// Measures the node or the baseline.
pub(crate) fn measure(options: &Options, side: Side) -> io::Result<Outcome> {
    measure_on(options, side, server::start(options, side)?)
}

/// Measures a server that does what this side does.
pub(crate) fn measure_on(options: &Options, side: Side, mut server: Server) -> io::Result<Outcome> {
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
    let mut fleet = Clients::fleet(&options, traffic, server.address, side)?;
    fleet.script.begin(&mut fleet.links)?;
    fleet.run(WARM_UP);
    // Every client is at its second window, and buffers have their sizes. In an open loop that
    // could take minutes.
    let warm = match options.rate {
        Some(rate) => rate.min(2 * options.connections as u64),
        None => 2 * (options.connections * options.window) as u64,
    };
    fleet.until(|clients, _| clients.answered >= warm);
    let before = server.cpu()?;
    let driver_before = process_cpu();
    (fleet.script.times, fleet.script.late) = (Timings::default(), Timings::default());
    let (answered, began) = (fleet.script.answered, Instant::now());
    fleet.run(options.time);
    let time = began.elapsed();
    let messages = fleet.script.answered - answered;
    let (times, late) = (fleet.script.times.clone(), fleet.script.late.clone());
    let after = server.usage()?;
    let driver_cpu = process_cpu().saturating_sub(driver_before);
    let expected = fleet.script.end();
    fleet.until(|clients, _| clients.answered == expected);
    let fault = fleet.fault.take();
    if let Some(fault) = &fault {
        eprintln!("{side:?}: {fault}");
    }
    let (cpu, resident) = (after.cpu.saturating_sub(before), after.resident);
    let compared = fleet.script.answered;
    Ok(Outcome { messages, compared, time, cpu, driver_cpu, resident, times, late, fault })
}

/// The medians of all rounds; times are those of all rounds together.
fn record(options: &Options, floors: &[Outcome], nodes: &[Outcome]) -> Record {
    let verified = floors.iter().chain(nodes).all(|outcome| outcome.fault.is_none());
    let ratios = floors.iter().zip(nodes).map(|(floor, node)| floor.each_ns() / node.each_ns());
    let all = |of: &[Outcome], times: fn(&Outcome) -> &Timings| {
        let mut all = Timings::default();
        of.iter().for_each(|outcome| all.add(times(outcome)));
        all
    };
    let [ours, bare] = [nodes, floors].map(|of| all(of, |outcome| &outcome.times));
    let [late, floor_late] = [nodes, floors].map(|of| all(of, |outcome| &outcome.late));
    let us = |times: &Timings, percent| percentile_ms(times, percent) * 1e3;
    let share = |of: &Outcome, cpu: Duration| cpu.as_secs_f64() / of.time.as_secs_f64();
    let mut record = case(options)
        .with("rounds", options.rounds)
        .median("messages_per_s", nodes.iter().map(Outcome::rate))
        .median("server_ns_per_message", nodes.iter().map(Outcome::each_ns))
        .median("server_core", nodes.iter().map(|of| share(of, of.cpu)))
        .median("rss_mb", nodes.iter().map(|of| of.resident as f64 / 1e6));
    if options.class != Class::Room {
        record = record
            .measured("rtt_us_p50", us(&ours, 50.0))
            .measured("rtt_us_p99", us(&ours, 99.0))
            .measured("rtt_us_p999", us(&ours, 99.9))
            .median("driver_core", nodes.iter().map(|of| share(of, of.driver_cpu)));
    }
    if !floors.is_empty() {
        record = record
            .median("floor_messages_per_s", floors.iter().map(Outcome::rate))
            .median("floor_ns_per_message", floors.iter().map(Outcome::each_ns))
            .median("floor_ratio", ratios)
            .measured("floor_rtt_us_p50", us(&bare, 50.0))
            .measured("floor_rtt_us_p99", us(&bare, 99.0))
            .measured("floor_rtt_us_p999", us(&bare, 99.9))
            .median("floor_driver_core", floors.iter().map(|of| share(of, of.driver_cpu)));
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

/// The workload that is measured.
fn case(options: &Options) -> Record {
    let bytes = if options.class == Class::A { options.frame_bytes } else { options.payload };
    let mut record = Record::of("echo").with("class", options.class.name());
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
