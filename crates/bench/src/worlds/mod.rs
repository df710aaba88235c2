//! `bench worlds`: one sync of a world with many entities, whose players see what is near.
//!
//! Each row is measured with a view function and with a view by place, in turn, so that a slow
//! period affects both. A measurement is a new room and some syncs: what changed is found, and every
//! player's message is written. Then all messages are decoded, and each copy is compared with what
//! its player should see.

mod rows;

use std::io::{self, Write};

use self::rows::{Kind, Round, Row};
use crate::Record;
use crate::stats::Samples;
use crate::table::{Column, Report};

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this row.
    pub row: Option<String>,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// How often each row is measured. The median counts.
    pub rounds: u32,
    /// How many syncs a measurement has, after some that do not count.
    pub syncs: u32,
    /// Corrupt one message in transit, so that the check must fail.
    pub corrupt_one: bool,
}

impl Options {
    /// All rows.
    pub fn new() -> Self {
        Self { row: None, json: false, rounds: 5, syncs: 40, corrupt_one: false }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

const COLUMNS: &[Column] = &[
    ("                             row", "row"),
    ("      by", "by"),
    ("players", "players"),
    ("entities", "entities"),
    ("in sight", "changed_in_sight_per_player"),
    ("sync ms", "sync_ms"),
    ("ns/seen", "ns_per_change_in_sight"),
    ("ns/pair", "ns_per_player_and_change"),
    ("bytes", "bytes_per_sync"),
    ("allocations", "allocations_per_sync"),
    ("of function", "of_function"),
    ("verified", "verified"),
];

/// The names of the rows.
pub fn names() -> Vec<&'static str> {
    rows::all().iter().map(|row| row.name).collect()
}

/// Measures every row and reports it. Returns whether everything sent was decoded to what it should
/// be.
///
/// # Errors
/// If the report can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let report = Report::begin(COLUMNS, options.json, out)?;
    let mut verified = true;
    let rows = rows::all();
    let chosen = rows.iter().filter(|row| options.row.as_ref().is_none_or(|name| name == row.name));
    for row in chosen {
        let mut rounds: Vec<Vec<Round>> = row.kinds.iter().map(|_| Vec::new()).collect();
        for number in 0..options.rounds {
            for (kind, rounds) in row.kinds.iter().zip(&mut rounds) {
                let corrupt_one = options.corrupt_one && number == 0;
                rounds.push((kind.measure)(options.syncs.into(), corrupt_one));
            }
        }
        let mut of_function = None;
        for (kind, rounds) in row.kinds.iter().zip(&rounds) {
            let (record, ms, is_right) = record(row, kind, rounds);
            let record = match of_function {
                None => record,
                Some(function) => record.measured("of_function", ms / function),
            };
            of_function = of_function.or(Some(ms));
            verified &= is_right;
            report.add(record.with("verified", is_right), out)?;
        }
    }
    Ok(verified)
}

fn record(row: &Row, kind: &Kind, rounds: &[Round]) -> (Record, f64, bool) {
    let of = |value: fn(&Round) -> f64| Samples::new(rounds.iter().map(value).collect());
    let ms = of(|round| round.sync_ms).percentile(50.0);
    let last = &rounds[rounds.len() - 1];
    for failure in rounds.iter().filter_map(|round| round.failure.as_ref()) {
        eprintln!("not verified: {failure}");
    }
    let mut record = Record::new()
        .with("suite", "worlds")
        .with("row", row.name)
        .with("by", kind.name)
        .with("players", row.players)
        .with("entities", row.entities)
        .with("changed", row.changed)
        .measured("changed_in_sight_per_player", last.in_sight / row.players as f64)
        .measured("sync_ms", ms)
        .measured("sync_ms_fastest", of(|round| round.sync_ms).percentile(0.0));
    if last.in_sight > 0.0 {
        record = record.measured("ns_per_change_in_sight", ms * 1e6 / last.in_sight);
    }
    if row.changed > 0 {
        let pairs = row.players as f64 * f64::from(row.changed);
        record = record.measured("ns_per_player_and_change", ms * 1e6 / pairs);
    }
    record = record.measured("bytes_per_sync", last.bytes);
    if let Some(allocations) = last.allocations {
        record = record.measured("allocations_per_sync", allocations);
    }
    record = record.measured("memory_mb", last.memory_mb);
    (record, ms, rounds.iter().all(Round::verified))
}
