//! `bench packet`: what it costs to write and to read packets of one's own.
//!
//! The rows are those by which the Go package mpacket is known. Each comes in two forms. *same* does what a common benchmark does:
//! it writes or reads, and looks at nothing. *verified* reads every field, compares it with what was written, and touches every byte
//! of what it counts. Where both differ much, the first says little.

mod bodies;
mod rows;

use std::io::{self, Write};

use crate::rounds::{self, Form, Options};
use crate::table::{Column, Table};
use crate::{Machine, Record};

pub use rows::names;

const COLUMNS: &[Column] = &[
    ("                row", "row"),
    ("form", "form"),
    ("ns an op", "ns_per_op"),
    ("median", "ns_per_op_median"),
    ("bytes an op", "bytes_per_op"),
    ("GB/s", "gb_per_s"),
    ("allocations", "allocations_per_op"),
    ("verified", "verified"),
];

/// Measures every row and reports it. Says whether all that was written was read as what it should be.
///
/// # Errors
/// If the report can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let table = if options.json { None } else { Some(Table::begin(COLUMNS, out)?) };
    let machine = Machine::describe();
    let rows: Vec<_> = rows::all()
        .into_iter()
        .filter(|row| options.row.as_ref().is_none_or(|name| name == row.name))
        .flat_map(|row| Form::ALL.map(|form| (row, form)))
        .filter(|(_, form)| options.form.is_none_or(|only| only == *form))
        .collect();
    let mut verified = true;
    for (measured, (row, form)) in rounds::all(&rows, options).into_iter().zip(&rows) {
        verified &= measured.verified;
        let mut record = Record::new()
            .with("suite", "packet")
            .with("row", row.name)
            .with("form", form.name())
            .measured("ns_per_op", measured.ns_per_op)
            .measured("ns_per_op_median", measured.ns_per_op_median)
            .with("bytes_per_op", measured.bytes_per_op)
            .measured("bytes_per_s", measured.bytes_per_s())
            .measured("gb_per_s", measured.bytes_per_s() / 1e9);
        if let Some(allocations) = measured.allocations_per_op {
            record = record.measured("allocations_per_op", allocations);
        }
        let record = record.with("verified", measured.verified);
        match &table {
            Some(table) => table.row(&serde_json::from_str(&record.line())?, out)?,
            None => writeln!(out, "{}", machine.add_to(record).line())?,
        }
    }
    Ok(verified)
}
