//! `bench packet`: the cost of writing and reading custom packets.
//!
//! The rows are the benchmarks of the Go package mpacket. Each has two forms. *same* does what
//! common benchmarks do: it only writes or reads. *verified* reads every field, compares it with
//! what was written, and reads every byte that it counts. If the two differ a lot, the first one is
//! not meaningful.

mod bodies;
mod rows;

use playfield_cli::options::Failure;

use crate::harness::options::Suite;
use crate::harness::report::{Column, Report};
use crate::harness::rounds::{self, Body, Measured, row_options};

/// All rows, by their names.
pub(crate) fn bodies() -> Vec<(&'static str, Box<dyn Body>)> {
    let boxed = |row: rows::Row| (row.name, Box::new(row) as Box<dyn Body>);
    rows::all().into_iter().map(boxed).collect()
}

row_options!(rows::names());

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "packet",
    about: "writing and reading custom packets. Each row is measured as is common (same), and with
every field compared and every byte read (verified).",
    defaults: Options::new,
    run,
};

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

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let rows = rows::all().into_iter().map(|row| (row.name, row));
    let value = |measured: &Measured| measured.bytes_per_s() / 1e9;
    rounds::report("packet", rows, &options.plan(), "gb_per_s", value, report)
}
