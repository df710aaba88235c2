//! `bench store`: what it costs that rooms outlive the process.

mod lateness;
mod node;
mod rooms;
mod saves;
mod states;

use std::io::{self, Write};
use std::time::Duration;

use self::lateness::Meanwhile;
use crate::rounds::{self, Form};
use crate::table::{Column, Report};

/// What to measure, and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which rows to measure, and how often those that are measured in rounds.
    pub rows: rounds::Options,
    /// How many keyed rooms are opened.
    pub rooms: u64,
    /// How long ticks are measured, for each row.
    pub window: Duration,
    /// Corrupt what is compared, so that the check must fail.
    pub corrupt_one: bool,
}

impl Options {
    /// All rows.
    pub fn new() -> Self {
        Self {
            rows: rounds::Options::new(),
            rooms: 10_000,
            window: Duration::from_secs(5),
            corrupt_one: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The names of all rows.
pub fn names() -> Vec<String> {
    let late = Meanwhile::ALL.map(|row| row.name().to_owned());
    saves::names().chain([rooms::NAME.to_owned()]).chain(late).collect()
}

const COLUMNS: &[Column] = &[
    ("              row", "row"),
    ("µs/op", "us_per_op"),
    ("median", "us_per_op_median"),
    ("bytes/op", "bytes_per_op"),
    ("MB/s", "mb_per_s"),
    ("verified", "verified"),
];

const ROOM_COLUMNS: &[Column] = &[
    ("row", "row"),
    ("rooms", "rooms"),
    ("µs/room", "us_per_op"),
    ("open", "open_us"),
    ("close", "close_us"),
    ("open again", "open_again_us"),
    ("close again", "close_again_us"),
    ("verified", "verified"),
];

const LATE_COLUMNS: &[Column] = &[
    ("                             row", "row"),
    ("saves", "saves"),
    ("loads", "loads"),
    ("late µs, p50", "late_us_p50"),
    ("p99", "late_us_p99"),
    ("max", "late_us_max"),
    ("verified", "verified"),
];

/// Measures saving and loading, and reports it. Returns whether everything was as it was saved.
///
/// # Errors
/// If the report can't be written, or a node can't be started.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let is_wanted = |name: &str| options.rows.row.as_ref().is_none_or(|row| row == name);
    let mut verified = true;
    let rows: Vec<_> = saves::all(options.corrupt_one)
        .into_iter()
        .filter(|row| is_wanted(&row.name))
        .map(|row| (row, Form::Same))
        .collect();
    if !rows.is_empty() {
        let report = Report::begin(COLUMNS, options.rows.json, out)?;
        for (measured, (row, form)) in rounds::all(&rows, &options.rows).into_iter().zip(&rows) {
            verified &= measured.verified;
            let record = measured.record("store", &row.name, *form);
            let record = record
                .measured("us_per_op", measured.ns_per_op / 1e3)
                .measured("us_per_op_median", measured.ns_per_op_median / 1e3)
                .measured("mb_per_s", measured.bytes_per_s() / 1e6);
            report.add(measured.end(record), out)?;
        }
    }
    drop(rows);
    if is_wanted(rooms::NAME) {
        let report = Report::begin(ROOM_COLUMNS, options.rows.json, out)?;
        let (record, right) = rooms::measure(options).map_err(io::Error::other)?;
        verified &= right;
        report.add(record, out)?;
    }
    let rows: Vec<_> = Meanwhile::ALL.into_iter().filter(|row| is_wanted(row.name())).collect();
    if !rows.is_empty() {
        let report = Report::begin(LATE_COLUMNS, options.rows.json, out)?;
        for row in rows {
            let (record, right) = lateness::measure(row, options).map_err(io::Error::other)?;
            verified &= right;
            report.add(record, out)?;
        }
    }
    Ok(verified)
}
