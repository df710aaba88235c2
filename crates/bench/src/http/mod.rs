//! `bench http`: HTTP requests that ask a room, each checked, while the room ticks at 60 Hz.
//!
//! The server runs in a process of its own on one core, the clients on another. Each connection has
//! one request under way. In turns, the same clients measure three things on the same core: requests
//! to a *room*, which a handler asks; to a *page*, which the shard answers itself; and the *bare*
//! baseline, which reads and writes as many bytes and does nothing else.

mod bare;
mod load;
mod server;

use std::io::{self, Write};
use std::time::Duration;

use crate::clock::pin;
use crate::table::{Column, Report};
use crate::{Machine, Record};

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const DRIVER_CORE: usize = 1;

/// How often the room ticks per second.
const TICK_HZ: u32 = 60;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of connections.
    pub connections: usize,
    /// How often each of the three is measured.
    pub rounds: usize,
    /// The duration of one measurement.
    pub round: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Corrupt one reply, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
}

impl Options {
    /// The standard case.
    pub fn new() -> Self {
        Self {
            connections: 32,
            rounds: 5,
            round: Duration::from_secs(1),
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

const COLUMNS: &[Column] = &[
    ("target", "target"),
    ("connections", "connections"),
    ("K/s best", "thousand_per_second_best"),
    ("K/s median", "thousand_per_second_median"),
    ("server us", "server_us_per_request"),
    ("of bare", "server_us_of_bare"),
    ("delayed", "server_delayed"),
    ("tick late p50", "tick_late_us_p50"),
    ("tick late p99", "tick_late_us_p99"),
    ("requests", "requests"),
    ("verified", "verified"),
];

/// What requests are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Room,
    Page,
    Bare,
}

impl Target {
    const ALL: [Self; 3] = [Self::Room, Self::Page, Self::Bare];

    fn name(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Page => "page",
            Self::Bare => "bare",
        }
    }
}

/// The measurements of one target.
#[derive(Default)]
struct Measured {
    per_second: Vec<f64>,
    requests: u64,
    cpu: Duration,
    delayed: Duration,
    seconds: f64,
    lateness_us: Vec<u64>,
}

impl Measured {
    fn us_per_request(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.requests.max(1) as f64
    }
}

/// Runs the suite. Returns whether every reply was as it should be.
///
/// # Errors
/// The server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host().map(|()| true);
    }
    let machine = Machine::describe();
    let mut hosted = server::Hosted::start()?;
    pin(DRIVER_CORE)?;
    let mut load = load::Load::connect(&hosted, options)?;
    let mut all: [Measured; 3] = Default::default();
    let mut failure = None;
    for round in 0..=options.rounds {
        for (target, measured) in Target::ALL.into_iter().zip(&mut all) {
            let before = hosted.stats()?;
            let run = match load.run(target, options.round) {
                Ok(run) => run,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    failure = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            let mut after = hosted.stats()?;
            // The first round warms up.
            if round > 0 {
                measured.per_second.push(run.requests as f64 / run.seconds);
                measured.requests += run.requests;
                measured.seconds += run.seconds;
                measured.cpu += after.cpu - before.cpu;
                measured.delayed += after.delayed.saturating_sub(before.delayed);
                measured.lateness_us.append(&mut after.lateness_us);
            }
        }
    }
    let sum = load.check_sum().err().map(|error| error.to_string());
    let failure = failure.or(sum);
    if let Some(failure) = &failure {
        eprintln!("{failure}");
    }
    let verified = failure.is_none();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let bare = all[Target::ALL.len() - 1].us_per_request();
    for (target, measured) in Target::ALL.into_iter().zip(&mut all) {
        report.add(record(options, target, measured, bare).with("verified", verified), out)?;
    }
    Ok(verified)
}

fn record(options: &Options, target: Target, measured: &mut Measured, bare: f64) -> Record {
    measured.per_second.sort_by(f64::total_cmp);
    measured.lateness_us.sort_unstable();
    let rates = &measured.per_second;
    let late = |share: f64| {
        let place = (measured.lateness_us.len() as f64 * share) as usize;
        measured.lateness_us.get(place).copied().unwrap_or_default()
    };
    Record::new()
        .with("suite", "http")
        .with("target", target.name())
        .with("connections", options.connections)
        .measured("thousand_per_second_best", rates.last().map_or(0.0, |rate| rate / 1e3))
        .measured(
            "thousand_per_second_median",
            rates.get(rates.len() / 2).map_or(0.0, |rate| rate / 1e3),
        )
        .measured("server_us_per_request", measured.us_per_request())
        .measured("server_us_of_bare", measured.us_per_request() / bare)
        .measured("server_delayed", measured.delayed.as_secs_f64() / measured.seconds.max(1e-9))
        .with("tick_late_us_p50", late(0.5))
        .with("tick_late_us_p99", late(0.99))
        .with("requests", measured.requests)
}
