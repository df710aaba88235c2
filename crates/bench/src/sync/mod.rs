//! `bench sync`: the time of one sync, from comparing the state to writing every player's message.

mod case;
pub(crate) mod copies;
pub(crate) mod room;
mod run;

use std::io::{self, Write};

pub use case::{CARDS_MAX, Case, ENTITIES_MAX, PLAYERS_MAX, Scenario, Which};

use crate::table::{Column, Table};
use crate::{Machine, child};

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// One case; `None` for all standard cases.
    pub case: Option<Case>,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// How often the sequence of iterations is restarted.
    pub sequences: u32,
    /// Corrupt one message in transit, so that the check must fail.
    pub corrupt_one: bool,
    /// Measure the one case in this process. The command passes this to its child processes.
    pub in_process: bool,
}

/// How often the sequence is restarted by default.
const SEQUENCES: u32 = 200;

impl Options {
    /// All standard cases.
    pub fn new() -> Self {
        Self {
            case: None,
            json: false,
            sequences: SEQUENCES,
            corrupt_one: false,
            in_process: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

const COLUMNS: &[Column] = &[
    ("workload", "workload"),
    ("scenario", "scenario"),
    ("players", "players"),
    ("hands", "hands"),
    ("entities", "entities"),
    ("order", "order"),
    ("moving", "moving"),
    ("format", "format"),
    ("tracking", "tracking"),
    ("sync us", "sync_us_mean"),
    ("p50", "sync_us_p50"),
    ("p99", "sync_us_p99"),
    ("cpu us", "cpu_us_mean"),
    ("mutate us", "mutate_us_mean"),
    ("plain us", "mutate_plain_us_mean"),
    ("bytes", "bytes_per_sync"),
    ("snapshot us", "snapshot_us"),
    ("compared", "compared"),
    ("verified", "verified"),
];

/// Runs the suite. Returns whether everything counted was verified.
///
/// # Errors
/// A case's process can't be run, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if let (Some(case), true) = (&options.case, options.in_process) {
        child::end_with_parent();
        let outcome = run::measure(case, options.sequences, options.corrupt_one);
        if let Some(failure) = &outcome.failure {
            eprintln!("not verified: {failure}");
        }
        let record = Machine::describe().add_to(outcome.report(case));
        writeln!(out, "{}", record.line())?;
        return Ok(outcome.verified());
    }
    let cases = options.case.clone().map_or_else(case::standard, |case| vec![case]);
    let table = if options.json { None } else { Some(Table::begin(COLUMNS, out)?) };
    let mut verified = true;
    for case in &cases {
        let mut arguments = case.arguments();
        arguments.push(format!("--sequences={}", options.sequences));
        if options.corrupt_one {
            arguments.push("--corrupt-one".into());
        }
        let report = child::run(&arguments)?;
        verified &= report.verified;
        match &table {
            Some(table) => table.row(&report.record, out)?,
            None => {
                writeln!(out, "{}", report.line)?;
                out.flush()?;
            }
        }
    }
    Ok(verified)
}
