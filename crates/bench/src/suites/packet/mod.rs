//! `bench packet`: the cost of writing and reading custom packets.
//!
//! The rows are the benchmarks of the Go package mpacket. Each has two forms. *same* does what
//! common benchmarks do: it only writes or reads. *verified* reads every field, compares it with
//! what was written, and reads every byte that it counts. If the two differ a lot, the first one is
//! not meaningful.

mod bodies;
mod rows;

use std::time::Duration;

use playfield_cli::options::Failure;

use crate::harness::options::{Suite, options, row_of};
use crate::harness::report::{Column, Report};
use crate::harness::rounds::{self, Form};

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &rows::names());
        form: Option<Form> = None
            => "form" "same|verified" "run only this form", |given| given.value().map(Some);
        rounds: u32 = 9, quick 1
            => "rounds" "N" "measurements per row; the fastest counts (default 9)",
            |given| given.within(1..=10_000);
        round: Duration = Duration::from_millis(10), quick Duration::from_millis(1)
            => "round-ms" "N" "duration of one measurement (default 10)",
            |given| given.milliseconds(1..=10_000);
    }
}

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
    let rows: Vec<_> = rows::all()
        .into_iter()
        .filter(|row| options.row.as_ref().is_none_or(|name| name == row.name))
        .flat_map(|row| Form::ALL.map(|form| (row, form)))
        .filter(|(_, form)| options.form.is_none_or(|only| only == *form))
        .collect();
    let measured = rounds::all(&rows, options.rounds, options.round);
    for (measured, (row, form)) in measured.into_iter().zip(&rows) {
        let record = measured.record("packet", row.name, *form);
        let record = record.measured("gb_per_s", measured.bytes_per_s() / 1e9);
        report.add(measured.end(record))?;
    }
    Ok(())
}
