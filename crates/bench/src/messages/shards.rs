//! `bench requests`: 10,000 requests at once, to nodes with one shard and with several.
//!
//! Each client sends one request, and every answer is compared. The time from the first request to
//! the last answer counts, which includes the clients' own work. The node and the clients share all
//! cores: more shards than there are cores to spare can't answer sooner.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::server::Hosted;
use super::{Case, Options};
use crate::limits::raise_descriptors;
use crate::side::Side;
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};

/// The numbers of shards that are measured.
const SHARDS: [usize; 4] = [1, 2, 4, 8];

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct ShardsOptions {
    /// The number of requests, each of a client of its own.
    pub requests: usize,
    /// How often they are sent.
    pub rounds: u32,
    /// Only with this many shards.
    pub shards: Option<usize>,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one answer, so that the check must fail.
    pub corrupt_one: bool,
}

impl Default for ShardsOptions {
    fn default() -> Self {
        Self { requests: 10_000, rounds: 20, shards: None, json: false, corrupt_one: false }
    }
}

const COLUMNS: &[Column] = &[
    ("shards", "shards"),
    ("requests", "requests"),
    ("rounds", "rounds"),
    ("requests/s", "requests_per_s"),
    ("ms", "round_ms_p50"),
    ("ms, p99", "round_ms_p99"),
    ("us/request", "server_us_per_request"),
    ("compared", "compared"),
    ("verified", "verified"),
];

/// Measures each number of shards. Returns whether every answer was as it should be.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run_by_shards(options: &ShardsOptions, out: &mut dyn Write) -> io::Result<bool> {
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, Machine::describe(), out)?;
    let mut all_verified = true;
    for shards in options.shards.map_or(SHARDS.to_vec(), |shards| vec![shards]) {
        let (record, verified) = measure(options, shards)?;
        all_verified &= verified;
        report.add(record, out)?;
    }
    Ok(all_verified)
}

fn measure(options: &ShardsOptions, shards: usize) -> io::Result<(Record, bool)> {
    let case = Case { bytes: 100, window: 1 };
    let messages = Options {
        count: options.requests,
        corrupt_one: options.corrupt_one,
        shards: Some(shards),
        ..Options::default()
    };
    let mut hosted = Hosted::start(&messages, case, Side::Node)?;
    let mut clients = Clients::new(&messages, case, hosted.address, Side::Node)?;
    clients.connect()?;
    // What is used again is there afterwards.
    clients.begin()?;
    clients.end()?;
    let (before, answered) = (hosted.cpu()?, clients.answered());
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let began = Instant::now();
        clients.begin()?;
        clients.end()?;
        rounds.push(began.elapsed());
    }
    let cpu = hosted.cpu()?.saturating_sub(before);
    if let Some(fault) = &clients.fault {
        eprintln!("{shards} shards: {fault}");
    }
    let compared = clients.answered() - answered;
    let expected = options.requests as u64 * u64::from(options.rounds);
    let verified = clients.fault.is_none() && compared == expected;
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let times = Samples::new(rounds.iter().map(ms).collect());
    let record = Record::new()
        .with("suite", "requests")
        .with("shards", shards)
        .with("requests", options.requests)
        .with("rounds", options.rounds)
        .measured("requests_per_s", options.requests as f64 / times.percentile(50.0) * 1e3)
        .measured("round_ms_p50", times.percentile(50.0))
        .measured("round_ms_p99", times.percentile(99.0))
        .measured("server_us_per_request", cpu.as_secs_f64() * 1e6 / expected as f64)
        .with("compared", compared)
        .with("verified", verified);
    Ok((record, verified))
}
