//! Single runs and their reports.

use std::io;

use serde_json::Value;

use super::driver::{self, Outcome};
use super::{Driver, Options, Side};
use crate::harness::process::{self, end_with_parent};
use crate::harness::report::{Column, Record, Report};

/// The maximum 99th percentile of intervals, in periods: 60 ms at 20 Hz.
const INTERVAL_P99_MAX: f64 = 1.2;

/// The minimum share of the nominal rate that must arrive.
const HZ_SHARE_MIN: f64 = 0.995;

/// The minimum share for the slowest client.
const SLOWEST_SHARE_MIN: f64 = 0.95;

/// The frame header's length: of a WebSocket frame with a payload of 126 bytes or more, and of
/// every native frame.
const HEADER_BYTES: usize = 4;

pub(super) const COLUMNS: &[Column] = &[
    ("peer", "peer"),
    ("rooms", "rooms"),
    ("clients", "clients"),
    ("hz", "hz"),
    ("p50 ms", "interval_ms_p50"),
    ("p99 ms", "interval_ms_p99"),
    ("server core", "server_core"),
    ("driver core", "driver_core"),
    ("s delayed", "server_delayed"),
    ("d delayed", "driver_delayed"),
    ("us/send", "us_per_send"),
    ("bytes", "bytes_per_patch"),
    ("rss MB", "rss_mb"),
    ("lost", "lost"),
    ("compared", "compared"),
    ("verified", "verified"),
    ("holds", "holds"),
];

/// The driver process: one run, one record.
pub(super) fn drive(case: &Options, side: Side, report: &mut Report<'_>) -> io::Result<()> {
    end_with_parent();
    let (record, is_verified) = match driver::run(case, side) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            eprintln!("{error}");
            let record = case
                .record()
                .with("peer", peer(side))
                .with("rooms", case.rooms)
                .with("failure", error.to_string())
                .with("verified", false)
                .with("holds", false);
            (record, false)
        }
        outcome => {
            let outcome = outcome?;
            if let Some(failure) = &outcome.failure {
                eprintln!("{failure}");
            }
            let is_verified = outcome.verified(side);
            (outcome.record(case, side, is_verified), is_verified)
        }
    };
    report.wrong(!is_verified);
    report.text(&record.line())
}

fn peer(side: Side) -> &'static str {
    if side == Side::Node { "playfield" } else { "baseline" }
}

impl Outcome {
    /// Whether everything counted was compared and equal. The baseline's bytes are only counted,
    /// and every client must receive them.
    fn verified(&self, side: Side) -> bool {
        self.failure.is_none()
            && self.messages > 0
            && (side == Side::Node || self.lost == 0)
            && (side == Side::Bare
                || (self.compared == self.messages && self.inputs_handled == self.inputs_sent))
    }

    /// Whether every client received patches at the nominal rate, evenly.
    fn holds(&self, case: &Options) -> bool {
        self.lost == 0
            && self.hz() >= HZ_SHARE_MIN * f64::from(case.hz)
            && self.hz_slowest >= SLOWEST_SHARE_MIN * f64::from(case.hz)
            && self.interval_ms_p99 * f64::from(case.hz) <= INTERVAL_P99_MAX * 1e3
    }

    fn hz(&self) -> f64 {
        self.messages as f64 / self.seconds / self.clients.max(1) as f64
    }

    fn record(&self, case: &Options, side: Side, verified: bool) -> Record {
        let sends = self.messages.max(1) as f64;
        let record = case
            .record()
            .with("peer", peer(side))
            .with("rooms", case.rooms)
            .with("clients", self.clients)
            .measured("hz", self.hz())
            .measured("hz_slowest", self.hz_slowest)
            .measured("interval_ms_p50", self.interval_ms_p50)
            .measured("interval_ms_p99", self.interval_ms_p99)
            .measured("server_core", self.server_core)
            .measured("driver_core", self.driver_core)
            .measured("server_delayed", self.server_delayed)
            .measured("driver_delayed", self.driver_delayed)
            .measured("us_per_send", self.server_core * self.seconds * 1e6 / sends)
            .measured("bytes_per_patch", self.bytes as f64 / sends)
            .measured("rss_mb", self.rss_mb)
            .with("inputs_sent", self.inputs_sent)
            .with("inputs_handled", self.inputs_handled)
            .with("lost", self.lost)
            .with("messages", self.messages)
            .with("holds", self.holds(case));
        match side {
            Side::Node => record.with("compared", self.compared).with("verified", verified),
            Side::Bare => record, // not compared
        }
    }
}

/// Runs one size, without TLS too if it is with TLS, and the baseline at the same size.
pub(super) fn one(options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    report.begin(COLUMNS)?;
    let (ours, verified) = run_ours(options)?;
    let plain = options.plain().map(|case| run_ours(&case)).transpose()?;
    let (baseline, baseline_whole) = run_baseline(options, sent_bytes(&ours))?;
    let plain_verified = plain.as_ref().is_none_or(|(_, verified)| *verified);
    let verified = verified && plain_verified && baseline_whole;
    if !report.is_json() {
        let rows = [Some(&ours), plain.as_ref().map(|(plain, _)| plain), Some(&baseline)];
        report.wrong(!verified);
        return rows.into_iter().flatten().try_for_each(|row| report.add_value(row));
    }
    let mut record = copied(options.record(), &ours, OURS).with("verified", verified);
    if let Some((plain, _)) = plain {
        let ratio = number(&plain["us_per_send"]) / number(&ours["us_per_send"]);
        record = record
            .with("plain_us_per_send", plain["us_per_send"].clone())
            .measured("ratio_to_plain", ratio);
    }
    report.add(
        record
            .with("baseline_lost", baseline["lost"].clone())
            .with("baseline_us_per_send", baseline["us_per_send"].clone())
            .with("baseline_server_core", baseline["server_core"].clone())
            .with("baseline_interval_ms_p99", baseline["interval_ms_p99"].clone())
            .measured("ratio", number(&ours["us_per_send"]) / number(&baseline["us_per_send"])),
    )
}

/// The values of a run's record that are reported.
const OURS: &[&str] = &[
    "rooms",
    "clients",
    "hz",
    "hz_slowest",
    "interval_ms_p50",
    "interval_ms_p99",
    "server_core",
    "driver_core",
    "server_delayed",
    "driver_delayed",
    "us_per_send",
    "bytes_per_patch",
    "rss_mb",
    "inputs_sent",
    "inputs_handled",
    "lost",
    "messages",
    "compared",
    "holds",
];

/// Runs ours at one size. Returns the record and whether everything counted was verified.
pub(super) fn run_ours(case: &Options) -> io::Result<(Value, bool)> {
    let finished = process::run(&case.arguments(Driver::Node))?;
    Ok((finished.record, finished.is_verified))
}

/// Runs the baseline at one size. Returns the record and whether all clients stayed connected.
pub(super) fn run_baseline(case: &Options, bytes: usize) -> io::Result<(Value, bool)> {
    let case = Options { bytes, ..case.clone() };
    let finished = process::run(&case.arguments(Driver::Baseline))?;
    Ok((finished.record, finished.is_verified))
}

/// The size of our average patch, including its frame header.
pub(super) fn sent_bytes(ours: &Value) -> usize {
    number(&ours["bytes_per_patch"]).round() as usize + HEADER_BYTES
}

pub(super) fn copied(record: Record, from: &Value, names: &[&str]) -> Record {
    names.iter().fold(record, |record, name| record.with(name, from[*name].clone()))
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
