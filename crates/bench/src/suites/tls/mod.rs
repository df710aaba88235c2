//! `bench tls`: what TLS costs in handshakes, memory and rooms.
//!
//! - *handshakes*: full handshakes, each followed by one request and its answer, alternating between
//!   a node and bare `rustls`. Measures the server's CPU time.
//! - *held*: silent players after their hello, with and without TLS. Measures the node's resident
//!   memory. At the end each player must answer a ping.
//! - *rooms*: `bench rooms` of one size, with and without TLS.
//!
//! The server runs in its own process on one core, the clients on another.

mod bare;

use std::io;
use std::time::Instant;

use playfield_cli::options::Failure;
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::server::{self as messages, ServerMessage};

use crate::harness::dialogue::{Dialogue, FORMAT, Transport, opening};
use crate::harness::fleet::{Fleet, wrong};
use crate::harness::machine::{DRIVER_CORE, pin, raise_descriptors};
use crate::harness::options::{Suite, options, row_of};
use crate::harness::process::{self, Role, Words, node, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::stats::Samples;
use crate::harness::tls::tls;
use crate::harness::visits::{self, AT_ONCE, Progress, Verdict, Visits};

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &ROWS.map(|(name, _)| name));
        connections: usize = 10_000, quick 50
            => "connections" "N" "connections that are held (default 10000)",
            |given| given.within(1..=100_000);
        handshakes: usize = 2_000, quick 30
            => "handshakes" "N" "handshakes of one measurement (default 2000)",
            |given| given.within(1..=1_000_000);
        rounds: usize = 5, quick 1
            => "rounds" "N" "measurements of handshakes, in turns (default 5)",
            |given| given.within(1..=1_000);
        rooms: u32 = 60, quick 2
            => "rooms" "N" "number of rooms (default 60)", |given| given.within(1..=10_000);
        seconds: u32 = 8, quick 1
            => "seconds" "N" "how long rooms are measured (default 8)",
            |given| given.within(1..=86_400);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "tls",
    about:
        "full handshakes, compared with bare rustls; the memory of idle connections; and rooms of 30
players with and without TLS. The server runs on one core, the clients on another.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "tls", log: "error", serve: host };

type Measure = fn(&Options) -> io::Result<Record>;

/// The rows. Rooms come first, before this process is pinned: its children choose their cores.
const ROWS: [(&str, Measure); 3] = [("rooms", rooms), ("handshakes", handshakes), ("held", held)];

/// Requests of clients, to the node and to the baseline.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const REQUEST_END: &[u8] = b"\r\n\r\n";
const PAGE: &str = "the page of a TLS server";
/// The baseline's answer.
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 24\r\nConnection: close\r\n\r\nthe page of a TLS server";

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("count", "count"),
    ("unit", "unit"),
    ("node", "tls"),
    ("baseline", "baseline"),
    ("ratio", "ratio"),
    ("per s", "per_second"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    raise_descriptors();
    report.begin(COLUMNS)?;
    for (row, measure) in ROWS {
        if options.row.as_deref().is_some_and(|wanted| wanted != row) {
            continue;
        }
        if row != "rooms" {
            pin(DRIVER_CORE)?;
        }
        report.add(match measure(options) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                eprintln!("{row}: {error}");
                Record::of("tls").with("row", row).with("verified", false)
            }
            measured => measured?,
        })?;
    }
    Ok(())
}

fn record(row: &str, count: usize, unit: &str) -> Record {
    Record::of("tls").with("row", row).with("count", count).with("unit", unit)
}

/// Full handshakes per second of processor time, at the node and at the baseline.
fn handshakes(options: &Options) -> io::Result<Record> {
    let mut server = ROLE.start(&[])?;
    let mut corrupt_one = options.corrupt_one;
    // Microseconds of the server, for each, and the time that passed.
    let mut us = [Vec::new(), Vec::new()];
    let mut per_second: f64 = 0.0;
    for round in 0..=options.rounds {
        for (target, us) in us.iter_mut().enumerate() {
            let heard = |_: usize, input: &mut [u8]| {
                input[0] ^= u8::from(std::mem::take(&mut corrupt_one));
                page(input)
            };
            let visits = Visits::new(|_| REQUEST.into(), heard);
            let address = server.address(target)?;
            let before = server.cpu()?;
            let began = Instant::now();
            let mut fleet = Fleet::new(visits, address, Source::Any, Some(tls()?))?;
            fleet.connect(0..options.handshakes, AT_ONCE);
            fleet.check()?;
            let seconds = began.elapsed().as_secs_f64();
            let cpu = server.cpu()? - before;
            // The first round warms up.
            if round > 0 {
                us.push(cpu.as_secs_f64() * 1e6 / options.handshakes as f64);
                if target == 0 {
                    per_second = per_second.max(options.handshakes as f64 / seconds);
                }
            }
        }
    }
    let [node, bare] = us.each_ref().map(|us| Samples::new(us.clone()).percentile(50.0));
    let [nodes, bares] = us;
    Ok(record("handshakes", options.handshakes * options.rounds, "us of the server")
        .median("tls", nodes)
        .median("baseline", bares)
        .measured("ratio", bare / node)
        .measured("per_second", per_second)
        .measured("per_cpu_second", 1e6 / node)
        .with("verified", true))
}

/// Returns whether the whole page has come, and nothing else.
fn page(input: &[u8]) -> io::Result<(usize, Progress)> {
    let start = b"HTTP/1.1 200 OK\r\n";
    if !input.starts_with(&start[..start.len().min(input.len())]) {
        return Err(wrong(&format!("not the page: {:?}", String::from_utf8_lossy(input))));
    }
    let is_whole = input.ends_with(PAGE.as_bytes());
    Ok((0, if is_whole { Progress::Leaves } else { Progress::Waits }))
}

/// Resident memory for each silent player, without TLS and with it.
fn held(options: &Options) -> io::Result<Record> {
    let count = options.connections;
    let mut corrupt_one = options.corrupt_one;
    let mut bytes = [0.0; 2];
    let mut per_second = 0.0;
    for (is_tls, bytes) in [false, true].into_iter().zip(&mut bytes) {
        let mut server = ROLE.start(&[])?;
        let welcomed = |_: usize, input: &mut [u8]| {
            heard(input, |message| matches!(message, ServerMessage::Welcome(_)))
        };
        let visits = Visits::new(|_| opening(&Hello::new(FORMAT)), welcomed);
        let tls = is_tls.then(tls).transpose()?;
        let mut fleet = Fleet::new(visits, server.address, Source::Any, tls)?;
        // What the first of all costs, once.
        let first = 100.min(count);
        fleet.connect(0..first, AT_ONCE);
        let before = server.usage()?.resident;
        let began = Instant::now();
        fleet.connect(first..first + count, AT_ONCE);
        if is_tls {
            per_second = count as f64 / began.elapsed().as_secs_f64();
        }
        let after = server.usage()?.resident;
        *bytes = after.saturating_sub(before) as f64 / count as f64;
        fleet.script = Visits::new(ping, |number, input| {
            // After the length and the kind comes the nonce.
            if let Some(nonce) = input.get_mut(5) {
                *nonce ^= u8::from(std::mem::take(&mut corrupt_one));
            }
            heard(input, |message| {
                matches!(message, ServerMessage::Pong(messages::Pong { nonce, .. })
                    if *nonce == number as u64)
            })
        });
        fleet.ask_all(first + count)?;
        fleet.check()?;
    }
    let [plain, tls] = bytes;
    Ok(record("held", count, "bytes a connection")
        .measured("tls", tls)
        .measured("baseline", plain)
        .measured("ratio", tls / plain)
        .measured("per_second", per_second)
        .with("verified", true))
}

fn ping(number: usize) -> Vec<u8> {
    let ping = client::Ping { nonce: number as u64 };
    Dialogue::new(Transport::Tcp).framed(&ClientMessage::Ping(ping))
}

/// Waits for one message. Others are wrong, but for pings.
fn heard(
    input: &[u8],
    is_wanted: impl Fn(&ServerMessage<'_>) -> bool,
) -> io::Result<(usize, Progress)> {
    visits::messages(input, Progress::Stays, |message| {
        if is_wanted(message) { Verdict::Wanted } else { Verdict::Wrong }
    })
}

/// The processor time of one patch, without TLS and with it.
fn rooms(options: &Options) -> io::Result<Record> {
    let (mut us, mut verified, mut clients) = ([0.0; 2], true, 0);
    for (transport, us) in ["ws", "wss"].into_iter().zip(&mut us) {
        let mut arguments: Vec<String> =
            ["bench", "rooms", "--role=driver"].map(String::from).into();
        arguments.push(format!("--rooms={}", options.rooms));
        arguments.push(format!("--seconds={}", options.seconds));
        arguments.push(format!("--transport={transport}"));
        if options.corrupt_one {
            arguments.push("--corrupt-one".into());
        }
        let report = process::run(&arguments)?;
        verified &= report.is_verified && report.record["lost"] == 0;
        *us = report.record["us_per_send"].as_f64().unwrap_or(f64::NAN);
        clients = report.record["clients"].as_u64().unwrap_or(0) as usize;
    }
    let [plain, tls] = us;
    Ok(record("rooms", clients, "us a patch")
        .measured("tls", tls)
        .measured("baseline", plain)
        .measured("ratio", plain / tls)
        .with("verified", verified))
}

/// Serves a node on one core with one shard, and the baseline beside it.
fn host(_: &mut Words) -> io::Result<()> {
    let mut config = node(1, &[])?;
    config.tls.self_signed = true;
    let running = playfield_server::Server::new(config).page("/", "text/plain", PAGE).start()?;
    let bare = bare::start()?;
    serve(format!("{} {}", running.local_addr().port(), bare.port()), Vec::new)
}
