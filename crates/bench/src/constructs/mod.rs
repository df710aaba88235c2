//! `bench constructs`: what one change costs, in time and in bytes, for each thing that a state can
//! be made of.

mod cases;
mod measure;

use std::io::{self, Write};

use crate::Record;
use crate::table::{Column, Report};

/// How to report.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Lines of JSON instead of a table.
    pub json: bool,
    /// How many syncs are measured of each construct.
    pub syncs: u32,
}

impl Options {
    /// A table, of as many syncs as give steady figures.
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
    ("ns a change", "ns_per_change"),
    ("bytes a change", "bytes_per_change"),
    ("verified", "verified"),
];

/// Measures every construct and reports it. Says whether all that was sent was read as what it
/// should be.
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
