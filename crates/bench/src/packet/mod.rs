//! `bench packet`: the cost of writing and reading custom packets.
//!
//! The rows are the benchmarks of the Go package mpacket. Each has two forms. *same* does what
//! common benchmarks do: it only writes or reads. *verified* reads every field, compares it with
//! what was written, and reads every byte that it counts. If the two differ a lot, the first one is
//! not meaningful.

mod bodies;
mod rows;

use std::io::{self, Write};

use crate::rounds::{self, Form, Options};
use crate::table::{Column, Report};

pub use rows::names;

const COLUMNS: &[Column] = &[
    ("                row", "row"),
    ("form", "form"),
    ("ns/op", "ns_per_op"),
    ("median", "ns_per_op_median"),
    ("bytes/op", "bytes_per_op"),
    ("GB/s", "gb_per_s"),
    ("allocations", "allocations_per_op"),
    ("verified", "verified"),
];

/// Measures every row and reports it. Returns whether everything that was written was read back
/// correctly.
///
/// # Errors
/// If the report can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let report = Report::begin(COLUMNS, options.json, out)?;
    let rows: Vec<_> = rows::all()
        .into_iter()
        .filter(|row| options.row.as_ref().is_none_or(|name| name == row.name))
        .flat_map(|row| Form::ALL.map(|form| (row, form)))
        .filter(|(_, form)| options.form.is_none_or(|only| only == *form))
        .collect();
    let mut verified = true;
    for (measured, (row, form)) in rounds::all(&rows, options).into_iter().zip(&rows) {
        verified &= measured.verified;
        let record = measured.record("packet", row.name, *form);
        let record = record.measured("gb_per_s", measured.bytes_per_s() / 1e9);
        report.add(measured.end(record), out)?;
    }
    Ok(verified)
}
