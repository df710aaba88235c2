//! Single runs and their reports.

use std::io;

use serde_json::Value;

use super::measure::Outcome;
use super::window::Failure;
use super::{Driver, Options, Side, colyseus, driver};
use crate::harness::process::{self, end_with_parent};
use crate::harness::report::{Column, Record, Report};

/// The maximum 99th percentile of intervals, in periods: 60 ms at 20 Hz.
pub(in crate::suites) const INTERVAL_P99_MAX: f64 = 1.2;

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

/// The driver process: one run, one record. The run's `failure` is null if everything that counts
/// is verified.
pub(super) fn drive(case: &Options, driver: Driver, report: &mut Report<'_>) -> io::Result<()> {
    end_with_parent();
    let run = match driver {
        Driver::Node => driver::run(case, Side::Node),
        Driver::Baseline => driver::run(case, Side::Bare),
        Driver::Colyseus => colyseus::run(case, &case.colyseus),
    };
    let (record, failure) = match run {
        Ok(outcome) => (outcome.record(case, driver), outcome.failure(driver)),
        Err(failure) => (record(case, driver).with("holds", false), Some(failure)),
    };
    if let Some(failure) = &failure {
        eprintln!("{} rooms: {failure}", case.rooms);
    }
    report.wrong(failure.is_some());
    let record = match driver {
        Driver::Baseline => record, // not compared
        Driver::Node | Driver::Colyseus => record.with("verified", failure.is_none()),
    };
    let record = record
        .with("overloaded", matches!(failure, Some(Failure::Overload(_))))
        .with("failure", failure.map(|failure| failure.to_string()));
    report.text(&record.line())
}

fn record(case: &Options, driver: Driver) -> Record {
    let peer = match driver {
        Driver::Node => "playfield",
        Driver::Baseline => "baseline",
        Driver::Colyseus => "colyseus",
    };
    case.record().with("peer", peer).with("rooms", case.rooms)
}

impl Outcome {
    /// A reason why not everything that counts was compared and equal. The baseline's bytes are only
    /// counted, and every client must receive them.
    fn failure(&self, driver: Driver) -> Option<Failure> {
        let fault = |text: String| Some(Failure::Fault(text));
        let Self { messages, compared, inputs_sent, inputs_handled, .. } = self;
        match driver {
            _ if self.failure.is_some() => self.failure.clone(),
            _ if *messages == 0 => Some(Failure::Overload("nothing arrived".into())),
            Driver::Baseline => None,
            _ if compared != messages => {
                fault(format!("{compared} of {messages} messages were compared"))
            }
            _ if inputs_handled != inputs_sent => {
                fault(format!("{inputs_handled} of {inputs_sent} inputs were handled"))
            }
            _ => None,
        }
    }

    /// A reason why not every client received patches at the nominal rate, evenly.
    fn shortcoming(&self, case: &Options) -> Option<String> {
        let (nominal, p99) = (f64::from(case.hz), self.interval_ms_p99);
        match self {
            _ if self.lost > 0 => Some(format!("{} of {} clients lost", self.lost, self.clients)),
            _ if self.hz() < HZ_SHARE_MIN * nominal => Some(format!("{:.2} Hz", self.hz())),
            _ if self.hz_slowest < SLOWEST_SHARE_MIN * nominal => {
                Some(format!("{:.2} Hz for one client", self.hz_slowest))
            }
            _ if p99 * nominal > INTERVAL_P99_MAX * 1e3 => {
                Some(format!("intervals of {p99:.1} ms, p99"))
            }
            _ => None,
        }
    }

    fn hz(&self) -> f64 {
        self.messages as f64 / self.seconds / self.clients.max(1) as f64
    }

    fn record(&self, case: &Options, driver: Driver) -> Record {
        let sends = self.messages.max(1) as f64;
        let shortcoming = self.shortcoming(case);
        let record = record(case, driver)
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
            .with("holds", shortcoming.is_none())
            .with("shortcoming", shortcoming);
        match driver {
            Driver::Node | Driver::Colyseus => record.with("compared", self.compared),
            Driver::Baseline => record,
        }
    }
}

/// Runs one size, without TLS too if it is with TLS, and the baseline at the same size.
pub(super) fn one(options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    report.begin(COLUMNS)?;
    let ours = run_ours(options)?;
    let plain = options.plain().map(|case| run_ours(&case)).transpose()?;
    let baseline = run_baseline(options, sent_bytes(&ours))?;
    let verified =
        [Some(&ours), plain.as_ref(), Some(&baseline)].into_iter().flatten().all(is_whole);
    let mut record = copied(options.record(), &ours, OURS).with("verified", verified);
    if let Some(plain) = &plain {
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
    if report.is_json() {
        return report.add(record);
    }
    report.wrong(!verified);
    report.keep(&record);
    let rows = [Some(&ours), plain.as_ref(), Some(&baseline)];
    rows.into_iter().flatten().try_for_each(|row| report.add_value(row))
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

/// Runs ours at one size.
pub(crate) fn run_ours(case: &Options) -> io::Result<Value> {
    Ok(process::run(&case.arguments(Driver::Node))?.record)
}

/// Runs the Colyseus server whose programs are in `case.colyseus` at one size.
pub(crate) fn run_colyseus(case: &Options) -> io::Result<Value> {
    Ok(process::run(&case.arguments(Driver::Colyseus))?.record)
}

/// Runs the baseline at one size.
pub(crate) fn run_baseline(case: &Options, bytes: usize) -> io::Result<Value> {
    let case = Options { bytes, ..case.clone() };
    Ok(process::run(&case.arguments(Driver::Baseline))?.record)
}

/// Returns whether everything that counts in a run is verified.
pub(crate) fn is_whole(run: &Value) -> bool {
    run["failure"].is_null()
}

/// The size of our average patch, including its frame header.
pub(crate) fn sent_bytes(ours: &Value) -> usize {
    number(&ours["bytes_per_patch"]).round() as usize + HEADER_BYTES
}

pub(super) fn copied(record: Record, from: &Value, names: &[&str]) -> Record {
    names.iter().fold(record, |record, name| record.with(name, from[*name].clone()))
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
