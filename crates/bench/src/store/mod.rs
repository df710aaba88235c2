//! `bench store`: what it costs that rooms outlive the process.

mod lateness;
mod node;
mod rooms;
mod saves;
mod states;

use std::io::{self, Write};

use crate::rounds::{self, Form, Options};
use crate::table::{Column, Report};

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
    let report = Report::begin(COLUMNS, options.json, out)?;
    let rows: Vec<_> = saves::all().into_iter().map(|row| (row, Form::Same)).collect();
    let mut verified = true;
    for (measured, (row, form)) in rounds::all(&rows, options).into_iter().zip(&rows) {
        verified &= measured.verified;
        let record = measured.record("store", &row.name, *form);
        let record = record
            .measured("us_per_op", measured.ns_per_op / 1e3)
            .measured("us_per_op_median", measured.ns_per_op_median / 1e3)
            .measured("mb_per_s", measured.bytes_per_s() / 1e6);
        report.add(measured.end(record), out)?;
    }
    drop(rows);
    let report = Report::begin(ROOM_COLUMNS, options.json, out)?;
    let (record, right) = rooms::measure().map_err(io::Error::other)?;
    verified &= right;
    report.add(record, out)?;
    let report = Report::begin(LATE_COLUMNS, options.json, out)?;
    for (record, right) in lateness::measure().map_err(io::Error::other)? {
        verified &= right;
        report.add(record, out)?;
    }
    Ok(verified)
}
