//! `bench store`: what it costs that rooms outlive the process.

mod lateness;
mod node;
mod rooms;
mod saves;
mod states;

use std::io;
use std::time::Duration;

use playfield_cli::options::Failure;

use self::lateness::Meanwhile;
use crate::harness::options::{Suite, options, row_of};
use crate::harness::report::{Column, Report};
use crate::harness::rounds::{self, Form};

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &names());
        rounds: u32 = 9, quick 1
            => "rounds" "N" "measurements per row; the fastest counts (default 9)",
            |given| given.within(1..=10_000);
        round: Duration = Duration::from_millis(10), quick Duration::from_millis(1)
            => "round-ms" "N" "duration of one measurement (default 10)",
            |given| given.milliseconds(1..=10_000);
        rooms: u64 = 10_000, quick 40
            => "rooms" "N" "number of keyed rooms (default 10000)", |given| given.within(1..=1_000_000);
        window: Duration = Duration::from_secs(5), quick Duration::from_millis(1)
            => "window-ms" "N" "how long ticks are measured (default 5000)",
            |given| given.milliseconds(1..=3_600_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "store",
    about:
        "saving and loading a state of 1 MB, compared with copying the same bytes; keyed rooms that
are opened, changed, closed and opened again on the embedded store; and how late another room of the
shard ticks while a room of 1 MB is saved and loaded.",
    defaults: Options::new,
    run,
};

/// The names of all rows.
fn names() -> Vec<String> {
    let late = Meanwhile::NAMES.iter().map(|(name, _)| (*name).to_owned());
    saves::names().chain([rooms::NAME.to_owned()]).chain(late).collect()
}

const COLUMNS: &[Column] = &[
    ("              row", "row"),
    ("µs/op", "us_per_op"),
    ("median", "us_per_op_median"),
    ("bytes/op", "bytes_per_op"),
    ("MB/s", "mb_per_s"),
    ("verified", "verified"),
];

const ROOM_COLUMNS: &[Column] = &[
    ("row", "row"),
    ("rooms", "rooms"),
    ("µs/room", "us_per_op"),
    ("open", "open_us"),
    ("close", "close_us"),
    ("open again", "open_again_us"),
    ("close again", "close_again_us"),
    ("verified", "verified"),
];

const LATE_COLUMNS: &[Column] = &[
    ("                             row", "row"),
    ("saves", "saves"),
    ("loads", "loads"),
    ("late µs, p50", "late_us_p50"),
    ("p99", "late_us_p99"),
    ("max", "late_us_max"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    let is_wanted = |name: &str| options.row.as_ref().is_none_or(|row| row == name);
    let rows: Vec<_> = saves::all(options.corrupt_one)
        .into_iter()
        .filter(|row| is_wanted(&row.name))
        .map(|row| (row, Form::Same))
        .collect();
    if !rows.is_empty() {
        report.begin(COLUMNS)?;
        let measured = rounds::all(&rows, options.rounds, options.round);
        for (measured, (row, form)) in measured.into_iter().zip(&rows) {
            let record = measured
                .record("store", &row.name, *form)
                .measured("us_per_op", measured.ns_per_op / 1e3)
                .measured("us_per_op_median", measured.ns_per_op_median / 1e3)
                .measured("mb_per_s", measured.bytes_per_s() / 1e6);
            report.add(measured.end(record))?;
        }
    }
    drop(rows);
    if is_wanted(rooms::NAME) {
        report.begin(ROOM_COLUMNS)?;
        report.add(rooms::measure(options).map_err(io::Error::other)?)?;
    }
    let rows: Vec<_> = Meanwhile::NAMES.iter().filter(|(name, _)| is_wanted(name)).collect();
    if !rows.is_empty() {
        report.begin(LATE_COLUMNS)?;
    }
    for (_, row) in rows {
        report.add(lateness::measure(*row, options).map_err(io::Error::other)?)?;
    }
    Ok(())
}
