//! `bench packet`: what it costs to write and to read packets of one's own.
//!
//! The rows are those by which the Go package mpacket is known. Each comes in two forms. *same* does what a common benchmark does:
//! it writes or reads, and looks at nothing. *verified* reads every field, compares it with what was written, and touches every byte
//! of what it counts. Where both differ much, the first says little.

mod bodies;
mod measure;
mod rows;

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::OnceLock;

use crate::table::{Column, Table};
use crate::{Machine, Record};

pub use rows::names;

/// What to measure, and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// One row alone.
    pub row: Option<String>,
    /// One form alone.
    pub form: Option<Form>,
    /// Lines of JSON instead of a table.
    pub json: bool,
    /// How often each row is measured, in turn with all others; the fastest counts.
    pub rounds: u32,
    /// How long one measurement takes, in milliseconds.
    pub round_ms: u64,
}

impl Options {
    /// All rows, in both forms.
    pub fn new() -> Self {
        Self { row: None, form: None, json: false, rounds: 9, round_ms: 10 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// How much of the work a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Writes or reads, and no more.
    Same,
    /// Compares every field and touches every byte.
    Verified,
}

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Same, Self::Verified];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Verified => "verified",
        }
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| format!("there is no form {name:?}: same or verified"))
    }
}

static ALLOCATIONS: OnceLock<fn() -> u64> = OnceLock::new();

/// Tells how to learn how often this process has allocated so far: only the programme knows its allocator. Unless this was told,
/// `allocations_per_op` is left out.
pub fn count_allocations_by(counter: fn() -> u64) {
    // Told twice, the first holds: there is one allocator.
    let _ = ALLOCATIONS.set(counter);
}

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
    for (measured, (row, form)) in measure::all(&rows, options).into_iter().zip(&rows) {
        verified &= measured.verified;
        let mut record = Record::new()
            .with("suite", "packet")
            .with("row", row.name)
            .with("form", form.name())
            .measured("ns_per_op", measured.ns_per_op)
            .measured("ns_per_op_median", measured.ns_per_op_median)
            .with("bytes_per_op", measured.bytes_per_op)
            .measured("bytes_per_s", measured.bytes_per_op as f64 / measured.ns_per_op * 1e9)
            .measured("gb_per_s", measured.bytes_per_op as f64 / measured.ns_per_op);
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
