//! `bench store`: what it costs that rooms outlive the process.

mod saves;
mod states;

use std::io::{self, Write};

use crate::rounds::{self, Form, Options};
use crate::table::{Column, Report};

const COLUMNS: &[Column] = &[
    ("              row", "row"),
    ("form", "form"),
    ("µs/op", "us_per_op"),
    ("median", "us_per_op_median"),
    ("bytes/op", "bytes_per_op"),
    ("MB/s", "mb_per_s"),
    ("verified", "verified"),
];

/// Measures saving and loading, and reports it. Returns whether everything was as it was saved.
///
/// # Errors
/// If the report can't be written.
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
    Ok(verified)
}
