//! Runs, and what is reported of them.

use std::io::{self, Write};

use serde_json::Value;

use super::case::Case;
use super::driver::{self, Outcome, Peer};
use super::search::Search;
use super::{Options, Role};
use crate::limits::descriptors_max;
use crate::table::{Column, Table};
use crate::{Machine, Record, child};

/// The longest that one interval in a hundred may take.
const INTERVAL_MS_P99_MAX: f64 = 60.0;

/// The part of the nominal rate that must arrive.
const HZ_SHARE_MIN: f64 = 0.995;

/// A run that fails while one of its processes waited for its core for more than this share of the time says nothing: it is repeated.
const DELAYED_MAX: f64 = 0.05;

/// How many such runs are repeated, in one search. After that they count, or a busy machine would never let it end.
const DISTURBED_MAX: u32 = 10;

/// Descriptors that a process needs besides those of its clients.
const DESCRIPTORS_SPARE: u64 = 64;

/// What a WebSocket frame has before a payload of 126 bytes and more, and native framing before any.
const HEADER_BYTES: usize = 4;

const COLUMNS: &[Column] = &[
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

/// The driver's process: one run, one record.
pub(super) fn drive(options: &Options, peer: Peer, out: &mut dyn Write) -> io::Result<bool> {
    let case = &options.case;
    let outcome = driver::run(case, peer, options.corrupt_one)?;
    if let Some(failure) = &outcome.failure {
        eprintln!("{failure}");
    }
    let verified = outcome.verified(peer);
    writeln!(out, "{}", outcome.record(case, peer, verified).line())?;
    Ok(verified)
}

impl Outcome {
    /// All that was counted was compared, and equal; of the floor's bytes nothing is asked but their number.
    fn verified(&self, peer: Peer) -> bool {
        self.failure.is_none()
            && self.messages > 0
            && (self.compared == self.messages || peer != Peer::Playfield)
            && self.inputs_handled == self.inputs_sent
    }

    /// Whether everyone was sent patches at the nominal rate, evenly.
    fn holds(&self, case: &Case) -> bool {
        self.lost == 0
            && self.hz() >= HZ_SHARE_MIN * f64::from(case.hz)
            && self.interval_ms_p99 <= INTERVAL_MS_P99_MAX
    }

    fn hz(&self) -> f64 {
        self.messages as f64 / self.seconds / self.clients.max(1) as f64
    }

    fn record(&self, case: &Case, peer: Peer, verified: bool) -> Record {
        let sends = self.messages.max(1) as f64;
        case.record()
            .with("peer", if peer == Peer::Playfield { "playfield" } else { "floor" })
            .with("rooms", case.rooms)
            .with("clients", self.clients)
            .measured("hz", self.hz())
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
            .with("compared", self.compared)
            .with("verified", verified)
            .with("holds", self.holds(case))
    }
}

/// One size, and the floor at the same.
pub(super) fn one(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let machine = Machine::describe();
    let table = if options.json { None } else { Some(Table::begin(COLUMNS, out)?) };
    let (ours, verified) = run_ours(options, &options.case)?;
    if let Some(table) = &table {
        table.row(&ours, out)?;
    }
    let floor = run_floor(&options.case, floor_bytes(&ours))?;
    match &table {
        Some(table) => table.row(&floor, out)?,
        None => {
            let record = copied(options.case.record(), &ours, OURS)
                .with("floor_us_per_send", floor["us_per_send"].clone())
                .with("floor_server_core", floor["server_core"].clone())
                .with("floor_interval_ms_p99", floor["interval_ms_p99"].clone())
                .measured("ratio", number(&ours["us_per_send"]) / number(&floor["us_per_send"]));
            writeln!(out, "{}", machine.add_to(record).line())?;
        }
    }
    Ok(verified)
}

/// What of a run's record goes into the report.
const OURS: &[&str] = &[
    "rooms",
    "clients",
    "hz",
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
    "verified",
    "holds",
];

/// The largest number of rooms that holds, ours and the floor's, run by run in turn so that both meet the same disturbances.
pub(super) fn find_max(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let machine = Machine::describe();
    let table = if options.json { None } else { Some(Table::begin(COLUMNS, out)?) };
    let show = |record: &Value, out: &mut dyn Write| match &table {
        Some(table) => table.row(record, out),
        None => {
            eprintln!("{record}");
            Ok(())
        }
    };
    let most = rooms_max(options.case.players);
    let mut ours = Side::new(Search::new(options.case.rooms, most));
    let mut floor = Side::new(Search::new(options.case.rooms, most));
    let mut bytes = None;
    let mut all_verified = true;
    let mut compared = 0;
    while ours.search.next().is_some() || floor.search.next().is_some() {
        if let Some(rooms) = ours.search.next() {
            let (record, verified) = run_ours(options, &Case { rooms, ..options.case.clone() })?;
            show(&record, out)?;
            all_verified &= verified;
            compared += record["compared"].as_u64().unwrap_or(0);
            bytes.get_or_insert(floor_bytes(&record));
            ours.ran(record);
        }
        if let (Some(rooms), Some(bytes)) = (floor.search.next(), bytes) {
            let record = run_floor(&Case { rooms, ..options.case.clone() }, bytes)?;
            show(&record, out)?;
            floor.ran(record);
        }
    }
    let (max, floor_max) = (ours.search.result(), floor.search.result());
    let record = copied(options.case.record(), &ours.last, LAST)
        .with("compared", compared)
        .with("verified", all_verified)
        .with("max_rooms", max)
        .with("runs", ours.runs)
        .with("runs_disturbed", ours.disturbed)
        .with("floor_us_per_send", floor.last["us_per_send"].clone())
        .with("floor_server_core", floor.last["server_core"].clone())
        .with("floor_max_rooms", floor_max)
        .with("floor_runs", floor.runs)
        .with("floor_runs_disturbed", floor.disturbed)
        .measured("ratio", f64::from(max) / f64::from(floor_max.max(1)));
    if table.is_some() {
        writeln!(out, "at most {max} rooms; the floor {floor_max}")?;
    } else {
        writeln!(out, "{}", machine.add_to(record).line())?;
    }
    Ok(all_verified)
}

/// One of the two that are searched for in turn.
struct Side {
    search: Search,
    /// The record of the last run that counted.
    last: Value,
    runs: u32,
    disturbed: u32,
}

impl Side {
    fn new(search: Search) -> Self {
        Self { search, last: Value::Null, runs: 0, disturbed: 0 }
    }

    /// Takes the record of a run, unless it failed and something else may be to blame.
    fn ran(&mut self, record: Value) {
        self.runs += 1;
        let held = record["verified"] == true && record["holds"] == true;
        let delayed = number(&record["server_delayed"]).max(number(&record["driver_delayed"]));
        if !held && delayed > DELAYED_MAX && self.disturbed < DISTURBED_MAX {
            self.disturbed += 1;
            return;
        }
        self.search.ran(held);
        self.last = record;
    }
}

/// What is reported of the last run, which is the third at the largest size that holds.
const LAST: &[&str] = &[
    "hz",
    "interval_ms_p50",
    "interval_ms_p99",
    "server_core",
    "driver_core",
    "server_delayed",
    "driver_delayed",
    "us_per_send",
    "bytes_per_patch",
    "rss_mb",
];

fn run_ours(options: &Options, case: &Case) -> io::Result<(Value, bool)> {
    let mut arguments = case.arguments(Role::Driver);
    if options.corrupt_one {
        arguments.push("--corrupt-one".into());
    }
    let report = child::run(&arguments)?;
    Ok((report.record, report.verified))
}

fn run_floor(case: &Case, bytes: usize) -> io::Result<Value> {
    let case = Case { inputs_hz: 0, ..case.clone() };
    Ok(child::run(&case.floor_arguments(Role::FloorDriver, bytes))?.record)
}

/// As many bytes as a patch of ours has with its frame.
fn floor_bytes(ours: &Value) -> usize {
    number(&ours["bytes_per_patch"]).round() as usize + HEADER_BYTES
}

fn copied(record: Record, from: &Value, names: &[&str]) -> Record {
    names.iter().fold(record, |record, name| record.with(name, from[*name].clone()))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// As many rooms as a process has descriptors for the clients of.
fn rooms_max(players: u64) -> u32 {
    u32::try_from(descriptors_max().saturating_sub(DESCRIPTORS_SPARE) / players.max(1)).unwrap_or(u32::MAX)
}
