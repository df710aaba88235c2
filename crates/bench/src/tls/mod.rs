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
pub(crate) mod end;
mod server;

use std::io::{self, Write};
use std::time::Instant;

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::server::{self as messages, ServerMessage};

use crate::clock::pin;
use crate::limits::raise_descriptors;
use crate::native::{self, FORMAT, Verdict, framed};
use crate::table::{Column, Report};
use crate::visits::{Progress, Visits};
use crate::{Machine, Record, child};
use end::Settings;
use server::Hosted;

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const DRIVER_CORE: usize = 1;

/// What clients ask for, of the node and of the baseline.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const REQUEST_END: &[u8] = b"\r\n\r\n";
const PAGE: &str = "the page of a TLS server";
/// The baseline's answer.
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 24\r\nConnection: close\r\n\r\nthe page of a TLS server";

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Measure only this.
    pub row: Option<String>,
    /// The number of connections that are held.
    pub connections: usize,
    /// The number of handshakes of one measurement.
    pub handshakes: usize,
    /// How often handshakes are measured.
    pub rounds: usize,
    /// The number of rooms.
    pub rooms: u32,
    /// How long rooms are measured, in seconds.
    pub seconds: u32,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Corrupt one byte that came, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
}

impl Options {
    /// The standard case.
    pub fn new() -> Self {
        Self {
            row: None,
            connections: 10_000,
            handshakes: 2000,
            rounds: 5,
            rooms: 60,
            seconds: 10,
            json: false,
            corrupt_one: false,
            is_server: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The names of all rows.
pub fn names() -> [&'static str; 3] {
    ["handshakes", "held", "rooms"]
}

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

/// Runs the suite. Returns whether every answer was as it should be.
///
/// # Errors
/// The server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host().map(|()| true);
    }
    let machine = Machine::describe();
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let is_wanted = |row| options.row.as_deref().is_none_or(|wanted| wanted == row);
    let mut verified = true;
    // Before this process is pinned: its children choose their cores.
    if is_wanted("rooms") {
        verified &= report_one(&report, rooms(options), "rooms", out)?;
    }
    pin(DRIVER_CORE)?;
    if is_wanted("handshakes") {
        verified &= report_one(&report, handshakes(options), "handshakes", out)?;
    }
    if is_wanted("held") {
        verified &= report_one(&report, held(options), "held", out)?;
    }
    Ok(verified)
}

fn report_one(
    report: &Report,
    measured: io::Result<(Record, bool)>,
    row: &str,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let (record, verified) = match measured {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            eprintln!("{row}: {error}");
            (Record::new().with("suite", "tls").with("row", row), false)
        }
        measured => measured?,
    };
    report.add(record.with("verified", verified), out)?;
    Ok(verified)
}

fn record(row: &str, count: usize, unit: &str) -> Record {
    Record::new().with("suite", "tls").with("row", row).with("count", count).with("unit", unit)
}

/// Full handshakes per second of processor time, at the node and at the baseline.
fn handshakes(options: &Options) -> io::Result<(Record, bool)> {
    let settings = Settings::new()?;
    let mut hosted = Hosted::start()?;
    let mut corrupt_one = options.corrupt_one;
    // Microseconds of the server, for each, and the time that passed.
    let mut us = [Vec::new(), Vec::new()];
    let mut per_second: f64 = 0.0;
    for round in 0..=options.rounds {
        for (target, us) in [hosted.node, hosted.bare].into_iter().zip(&mut us) {
            let mut visits = Visits::new(target, Some(settings.clone()))?;
            let before = hosted.stats()?;
            let began = Instant::now();
            visits.run(
                options.handshakes,
                |_| REQUEST.into(),
                |_, input| {
                    if std::mem::take(&mut corrupt_one) {
                        input[0] ^= 1;
                    }
                    page(input)
                },
            )?;
            let seconds = began.elapsed().as_secs_f64();
            let cpu = hosted.stats()?.cpu - before.cpu;
            // The first round warms up.
            if round > 0 {
                us.push(cpu.as_secs_f64() * 1e6 / options.handshakes as f64);
                if target == hosted.node {
                    per_second = per_second.max(options.handshakes as f64 / seconds);
                }
            }
        }
    }
    let [node, bare] = us.map(|mut us| {
        us.sort_by(f64::total_cmp);
        us[us.len() / 2]
    });
    let record = record("handshakes", options.handshakes * options.rounds, "us of the server")
        .measured("tls", node)
        .measured("baseline", bare)
        .measured("ratio", bare / node)
        .measured("per_second", per_second)
        .measured("per_cpu_second", 1e6 / node);
    Ok((record, true))
}

/// Whether the whole page has come, and nothing else.
fn page(input: &[u8]) -> io::Result<Progress> {
    let start = b"HTTP/1.1 200 OK\r\n";
    if !input.starts_with(&start[..start.len().min(input.len())]) {
        return Err(native::wrong("not the page", input));
    }
    let is_whole = input.ends_with(PAGE.as_bytes());
    Ok(if is_whole { Progress::Leaves } else { Progress::Waits })
}

/// Resident memory for each silent player, without TLS and with it.
fn held(options: &Options) -> io::Result<(Record, bool)> {
    let mut corrupt_one = options.corrupt_one;
    let mut bytes = [0.0; 2];
    let mut per_second = 0.0;
    let count = options.connections;
    for (settings, bytes) in [None, Some(Settings::new()?)].into_iter().zip(&mut bytes) {
        let is_tls = settings.is_some();
        let mut hosted = Hosted::start()?;
        let mut visits = Visits::new(hosted.node, settings)?;
        // What the first of all costs, once.
        visits.run(100.min(count), |_| hello(), |_, input| welcomed(input))?;
        let before = hosted.stats()?;
        let began = Instant::now();
        visits.run(count, |_| hello(), |_, input| welcomed(input))?;
        if is_tls {
            per_second = count as f64 / began.elapsed().as_secs_f64();
        }
        let after = hosted.stats()?;
        *bytes = after.resident.saturating_sub(before.resident) as f64 / count as f64;
        visits.ask_all(
            |number| framed(&ClientMessage::Ping(client::Ping { nonce: number as u64 })),
            |number, input| {
                // After the length and the kind comes the nonce.
                if corrupt_one && let Some(nonce) = input.get_mut(5) {
                    *nonce ^= 1;
                    corrupt_one = false;
                }
                pong(input, number as u64)
            },
        )?;
    }
    let [plain, tls] = bytes;
    let record = record("held", count, "bytes a connection")
        .measured("tls", tls)
        .measured("baseline", plain)
        .measured("ratio", tls / plain)
        .measured("per_second", per_second);
    Ok((record, true))
}

fn hello() -> Vec<u8> {
    native::opening(&Hello::new(FORMAT))
}

fn welcomed(input: &mut Vec<u8>) -> io::Result<Progress> {
    heard(input, |message| matches!(message, ServerMessage::Welcome(_)))
}

fn pong(input: &mut Vec<u8>, expected: u64) -> io::Result<Progress> {
    heard(
        input,
        |message| matches!(message, ServerMessage::Pong(messages::Pong { nonce, .. }) if *nonce == expected),
    )
}

/// Waits for one message. Others are wrong, but for pings.
fn heard(
    input: &mut Vec<u8>,
    is_wanted: impl Fn(&ServerMessage<'_>) -> bool,
) -> io::Result<Progress> {
    let judge = |message: &ServerMessage<'_>| {
        if is_wanted(message) { Verdict::Wanted } else { Verdict::Wrong }
    };
    let is_done = native::heard(input, judge)?;
    Ok(if is_done { Progress::Stays } else { Progress::Waits })
}

/// The processor time of one patch, without TLS and with it.
fn rooms(options: &Options) -> io::Result<(Record, bool)> {
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
        let report = child::run(&arguments)?;
        verified &= report.verified && report.record["lost"] == 0;
        *us = report.record["us_per_send"].as_f64().unwrap_or(f64::NAN);
        clients = report.record["clients"].as_u64().unwrap_or(0) as usize;
    }
    let [plain, tls] = us;
    let record = record("rooms", clients, "us a patch")
        .measured("tls", tls)
        .measured("baseline", plain)
        .measured("ratio", plain / tls);
    Ok((record, verified))
}
