//! `bench constructs`: the cost of one change, in time and bytes, for every construct that a state
//! can consist of.

mod cases;
mod measure;

use std::io::{self, Write};

use crate::Record;
use crate::table::{Column, Report};

/// How to report.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// How many syncs are measured per construct.
    pub syncs: u32,
}

impl Options {
    /// A table, with enough syncs for stable figures.
    pub fn new() -> Self {
        Self { json: false, syncs: 2_000 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

const COLUMNS: &[Column] = &[
    ("                        construct", "construct"),
    ("changes", "changes"),
    ("ns/change", "ns_per_change"),
    ("bytes/change", "bytes_per_change"),
    ("verified", "verified"),
];

/// Measures every construct and reports it. Returns whether everything sent was decoded to the
/// expected values.
///
/// # Errors
/// If the report can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let report = Report::begin(COLUMNS, options.json, out)?;
    let mut verified = true;
    for case in cases::all() {
        let measured = (case.measure)(options.syncs);
        verified &= measured.verified;
        let record = Record::new()
            .with("suite", "constructs")
            .with("construct", case.name)
            .with("changes", measured.changes)
            .measured("ns_per_change", measured.ns_per_change)
            .measured("bytes_per_change", measured.bytes_per_change)
            .with("verified", measured.verified);
        report.add(record, out)?;
    }
    Ok(verified)
}
