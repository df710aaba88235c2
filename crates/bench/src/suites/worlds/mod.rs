//! `bench worlds`: one sync of a world with many entities, whose players see what is near.
//!
//! Each row is measured with a view function and with a view by place, in turn, so that a slow
//! period affects both. A measurement is a new room and some syncs: what changed is found, and
//! every player's message is written. Then all messages are decoded, and each copy is compared with
//! what its player should see.

mod rows;

use std::io;

use playfield_cli::options::Failure;

use self::rows::{Kind, Round, Row};
use crate::harness::options::{Suite, options, row_of};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::Samples;

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &rows::all().iter().map(|row| row.name).collect::<Vec<_>>());
        rounds: u32 = 3, quick 1
            => "rounds" "N" "measurements per row; the median counts (default 3)",
            |given| given.within(1..=1_000);
        syncs: u32 = 20, quick 2
            => "syncs" "N" "syncs per measurement, in crowds a quarter (default 20)", |given| given.within(1..=10_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "worlds",
    about: "one sync of a world with many entities and players who see what is near: by a view
function, and by place, in turn. All in one process.",
    defaults: Options::new,
    run,
};

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

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let rows = rows::all();
    let chosen = rows.iter().filter(|row| options.row.as_ref().is_none_or(|name| name == row.name));
    for row in chosen {
        measure(row, options, report)?;
    }
    Ok(())
}

fn measure(row: &Row, options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    let syncs = u64::from(options.syncs).div_ceil(row.syncs_share);
    let mut rounds: Vec<Vec<Round>> = row.kinds.iter().map(|_| Vec::new()).collect();
    for number in 0..options.rounds {
        for (kind, rounds) in row.kinds.iter().zip(&mut rounds) {
            let corrupt_one = options.corrupt_one && number == 0;
            rounds.push((kind.measure)(syncs, corrupt_one));
        }
    }
    let mut of_function = None;
    for (kind, rounds) in row.kinds.iter().zip(&rounds) {
        let (mut record, ms) = record(row, kind, rounds, (kind.in_sight)(syncs));
        if let Some(function) = of_function {
            record = record.measured("of_function", ms / function);
        }
        of_function = of_function.or(Some(ms));
        report.add(record.with("verified", rounds.iter().all(Round::verified)))?;
    }
    Ok(())
}

fn record(row: &Row, kind: &Kind, rounds: &[Round], in_sight: f64) -> (Record, f64) {
    let of = |value: fn(&Round) -> f64| Samples::new(rounds.iter().map(value).collect());
    let ms = of(|round| round.sync_ms).percentile(50.0);
    let last = &rounds[rounds.len() - 1];
    for failure in rounds.iter().filter_map(|round| round.failure.as_ref()) {
        eprintln!("not verified: {failure}");
    }
    let mut record = Record::of("worlds")
        .with("row", row.name)
        .with("by", kind.name)
        .with("players", row.players)
        .with("entities", row.entities)
        .with("changed", row.changed)
        .measured("changed_in_sight_per_player", in_sight / row.players as f64)
        .median("sync_ms", rounds.iter().map(|round| round.sync_ms))
        .measured("sync_ms_fastest", of(|round| round.sync_ms).percentile(0.0));
    if in_sight > 0.0 {
        record = record.measured("ns_per_change_in_sight", ms * 1e6 / in_sight);
    }
    if row.changed > 0 {
        let pairs = row.players as f64 * f64::from(row.changed);
        record = record.measured("ns_per_player_and_change", ms * 1e6 / pairs);
    }
    record = record.measured("bytes_per_sync", last.bytes);
    if let Some(allocations) = last.allocations {
        record =
            record.measured("allocations_per_sync", allocations).measured("room_mb", last.room_mb);
    }
    (record, ms)
}
