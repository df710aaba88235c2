//! `bench channel`: one channel with many subscribers over WebSocket. How fast publications reach
//! all of them, compared with bare sends of the same frames on as many sockets; and what they get
//! after all their connections were cut.
//!
//! The server runs in a process of its own on one core, the subscribers on another. The next
//! publication is sent when the first subscriber has the last, so that the server always has work,
//! but never two publications for one write. Every publication is compared with what was published: its
//! offset and each byte.

mod audience;
mod server;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::clock::pin;
use crate::limits::raise_descriptors;
use crate::side::Side;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use audience::{Audience, Returned};
use server::Hosted;

/// The server's core, and the subscribers'.
const SERVER_CORE: usize = 0;
const SUBSCRIBERS_CORE: usize = 1;

/// How many publications the channel keeps.
const HISTORY: u64 = 32;
/// How many are published before the measurement.
const WARM_UP: usize = 2;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of subscribers.
    pub subscribers: usize,
    /// The size of a payload.
    pub bytes: usize,
    /// How long publications are measured.
    pub time: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one publication, so that the check must fail.
    pub corrupt_one: bool,
    /// Which server this process is, if any.
    pub role: Option<Side>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subscribers: 10_000,
            bytes: 100,
            time: Duration::from_secs(5),
            json: false,
            corrupt_one: false,
            role: None,
        }
    }
}

const COLUMNS: &[Column] = &[
    ("subscribers", "subscribers"),
    ("publications", "publications"),
    ("deliveries/s", "deliveries_per_s"),
    ("bare", "floor_deliveries_per_s"),
    ("ratio", "floor_ratio"),
    ("us/delivery", "server_us_per_delivery"),
    ("bare", "floor_us_per_delivery"),
    ("recovered", "recovered"),
    ("flagged", "flagged"),
    ("lost", "lost"),
    ("recovery s", "recovery_s"),
    ("compared", "compared"),
    ("verified", "verified"),
];

/// What came of one server.
struct Outcome {
    publications: u64,
    time: Duration,
    cpu: Duration,
    compared: u64,
    fault: Option<String>,
    /// After a cut with fewer publications than the channel keeps, and after one with more.
    returned: Vec<Returned>,
}

impl Outcome {
    fn deliveries(&self, options: &Options) -> f64 {
        self.publications as f64 * options.subscribers as f64
    }
}

/// Runs the suite. Returns whether everyone got what they should.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if let Some(side) = options.role {
        return server::host(options, side).map(|()| true);
    }
    let machine = Machine::describe();
    pin(SUBSCRIBERS_CORE)?;
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let bare = measure(options, Side::Bare)?;
    let node = measure(options, Side::Node)?;
    let (record, verified) = record(options, &bare, &node);
    report.add(record, out)?;
    Ok(verified)
}

fn measure(options: &Options, side: Side) -> io::Result<Outcome> {
    let mut hosted = Hosted::start(options, side)?;
    let mut audience = Audience::new(options, hosted.address, side)?;
    audience.connect()?;
    // What is used again is there afterwards.
    for _ in 0..WARM_UP {
        audience.publish()?;
        audience.wait_for_all()?;
    }
    let before = hosted.cpu()?;
    let (began, compared) = (Instant::now(), audience.compared);
    let mut publications = 0;
    while began.elapsed() < options.time && audience.fault.is_none() {
        audience.publish()?;
        publications += 1;
        audience.wait_for_first()?;
    }
    audience.wait_for_all()?;
    let time = began.elapsed();
    let cpu = hosted.cpu()?.saturating_sub(before);
    let mut returned = Vec::new();
    if side == Side::Node {
        for count in [HISTORY / 2, 2 * HISTORY] {
            returned.push(audience.come_back(count)?);
        }
    }
    let compared = audience.compared - compared;
    if let Some(fault) = &audience.fault {
        eprintln!("{side:?}: {fault}");
    }
    Ok(Outcome { publications, time, cpu, compared, fault: audience.fault, returned })
}

fn record(options: &Options, bare: &Outcome, node: &Outcome) -> (Record, bool) {
    let rate = |outcome: &Outcome| outcome.deliveries(options) / outcome.time.as_secs_f64();
    let core = |outcome: &Outcome| outcome.cpu.as_secs_f64() / outcome.time.as_secs_f64();
    let each_us =
        |outcome: &Outcome| outcome.cpu.as_secs_f64() * 1e6 / outcome.deliveries(options).max(1.0);
    let all = options.subscribers as u64;
    let sum = |of: fn(&Returned) -> u64| node.returned.iter().map(of).sum::<u64>();
    let [recovered, flagged, lost] =
        [sum(|of| of.recovered), sum(|of| of.flagged), sum(|of| of.lost)];
    let replayed = sum(|of| of.replayed);
    let expected = node.publications * all + replayed;
    let verified = bare.fault.is_none()
        && node.fault.is_none()
        && node.compared == expected
        && bare.compared == bare.publications * all
        && (recovered, flagged, lost) == (all, all, 0)
        && replayed == all * (HISTORY / 2 + HISTORY);
    let recovery: Duration = node.returned.iter().map(|of| of.time).sum();
    let record = Record::new()
        .with("suite", "channel")
        .with("subscribers", all)
        .with("bytes", options.bytes)
        .with("publications", node.publications)
        .measured("deliveries_per_s", rate(node))
        .measured("floor_deliveries_per_s", rate(bare))
        .measured("floor_ratio", rate(node) / rate(bare))
        .measured("server_us_per_delivery", each_us(node))
        .measured("floor_us_per_delivery", each_us(bare))
        .measured("server_core", core(node))
        .measured("floor_server_core", core(bare))
        .with("recovered", recovered)
        .with("flagged", flagged)
        .with("lost", lost)
        .with("replayed", replayed)
        .measured("recovery_s", recovery.as_secs_f64() / node.returned.len().max(1) as f64)
        .with("compared", node.compared + bare.compared)
        .with("verified", verified);
    (record, verified)
}
