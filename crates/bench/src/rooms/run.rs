//! Single runs and their reports.

use std::io::{self, Write};

use serde_json::Value;

use super::case::Case;
use super::driver::{self, Outcome, Peer};
use super::{Options, Role};
use crate::table::{Column, Table};
use crate::{Machine, Record, child};

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
pub(super) fn drive(options: &Options, peer: Peer, out: &mut dyn Write) -> io::Result<bool> {
    child::end_with_parent();
    let case = &options.case;
    let outcome = match driver::run(case, peer, options.corrupt_one) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            eprintln!("{error}");
            let record = case.record().with("peer", peer.name()).with("rooms", case.rooms);
            let record = record
                .with("failure", error.to_string())
                .with("verified", false)
                .with("holds", false);
            writeln!(out, "{}", record.line())?;
            return Ok(false);
        }
        outcome => outcome?,
    };
    if let Some(failure) = &outcome.failure {
        eprintln!("{failure}");
    }
    let verified = outcome.verified(peer);
    writeln!(out, "{}", outcome.record(case, peer, verified).line())?;
    Ok(verified)
}

impl Outcome {
    /// Whether everything counted was compared and equal. The baseline's bytes are only counted,
    /// and every client must receive them.
    fn verified(&self, peer: Peer) -> bool {
        self.failure.is_none()
            && self.messages > 0
            && (peer == Peer::Playfield || self.lost == 0)
            && (peer != Peer::Playfield
                || (self.compared == self.messages && self.inputs_handled == self.inputs_sent))
    }

    /// Whether every client received patches at the nominal rate, evenly.
    fn holds(&self, case: &Case) -> bool {
        self.lost == 0
            && self.hz() >= HZ_SHARE_MIN * f64::from(case.hz)
            && self.hz_slowest >= SLOWEST_SHARE_MIN * f64::from(case.hz)
            && self.interval_ms_p99 * f64::from(case.hz) <= INTERVAL_P99_MAX * 1e3
    }

    fn hz(&self) -> f64 {
        self.messages as f64 / self.seconds / self.clients.max(1) as f64
    }

    fn record(&self, case: &Case, peer: Peer, verified: bool) -> Record {
        let sends = self.messages.max(1) as f64;
        let record = case
            .record()
            .with("peer", peer.name())
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
        match peer {
            Peer::Playfield => record.with("compared", self.compared).with("verified", verified),
            Peer::Baseline { .. } => record, // not compared
        }
    }
}

/// Runs one size, without TLS too if it is with TLS, and the baseline at the same size.
pub(super) fn one(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let machine = Machine::describe();
    let table = if options.json { None } else { Some(Table::begin(COLUMNS, out)?) };
    let (ours, verified) = run_ours(options, &options.case)?;
    if let Some(table) = &table {
        table.row(&ours, out)?;
    }
    let plain = options.case.plain().map(|case| run_ours(options, &case)).transpose()?;
    if let (Some(table), Some((plain, _))) = (&table, &plain) {
        table.row(plain, out)?;
    }
    let (baseline, baseline_whole) = run_baseline(&options.case, sent_bytes(&ours))?;
    let plain_verified = plain.as_ref().is_none_or(|(_, verified)| *verified);
    let verified = verified && plain_verified && baseline_whole;
    match &table {
        Some(table) => table.row(&baseline, out)?,
        None => {
            let mut record = copied(options.case.record(), &ours, OURS).with("verified", verified);
            if let Some((plain, _)) = plain {
                let ratio = number(&plain["us_per_send"]) / number(&ours["us_per_send"]);
                record = record
                    .with("plain_us_per_send", plain["us_per_send"].clone())
                    .measured("ratio_to_plain", ratio);
            }
            let record = record
                .with("baseline_lost", baseline["lost"].clone())
                .with("baseline_us_per_send", baseline["us_per_send"].clone())
                .with("baseline_server_core", baseline["server_core"].clone())
                .with("baseline_interval_ms_p99", baseline["interval_ms_p99"].clone())
                .measured("ratio", number(&ours["us_per_send"]) / number(&baseline["us_per_send"]));
            writeln!(out, "{}", machine.add_to(record).line())?;
        }
    }
    Ok(verified)
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
pub(super) fn run_ours(options: &Options, case: &Case) -> io::Result<(Value, bool)> {
    let mut arguments = case.arguments(Role::Driver);
    if options.corrupt_one {
        arguments.push("--corrupt-one".into());
    }
    let report = child::run(&arguments)?;
    Ok((report.record, report.verified))
}

/// Runs the baseline at one size. Returns the record and whether all clients stayed connected.
pub(super) fn run_baseline(case: &Case, bytes: usize) -> io::Result<(Value, bool)> {
    let report = child::run(&case.baseline_arguments(Role::BaselineDriver, bytes))?;
    Ok((report.record, report.verified))
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
