//! `bench overload`: twice of what fits, of rooms, joins, messages and bytes. What a node does
//! then: whether it serves all rooms alike, keeps its sessions and its memory, and is as before
//! soon after.
//!
//! Rooms, clients and checks are those of `bench rooms`: the server runs on one core, all clients
//! on another.

mod bytes;
mod fit;
mod joins;
mod messages;
mod rates;
mod recovery;
mod rooms;
mod watch;

use std::time::Duration;

use playfield_cli::options::Failure;

use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, names, options, row_of};
use crate::harness::report::{Column, Record, Report};
use crate::suites::rooms::room::{Opening, PLAYERS_MAX};
use crate::suites::rooms::{Options as Case, Setup, window};

/// The work of each tick besides, in microseconds. Without it, checking what rooms send takes the
/// clients' core as long as sending takes the node's.
const TICK_US: u64 = 300;

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row: rooms, joins, messages or bytes",
            |given| row_of(given, &Row::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        rooms: Option<u32> = None, quick Some(3)
            => "rooms" "N" "number of rooms that fit (default: searched for)",
            |given| given.within(1..=5_000).map(Some);
        players: u64 = 30, quick 3
            => "players" "N" "players of a room in the rows rooms and joins (default 30)",
            |given| given.within(1..=PLAYERS_MAX);
        time: Duration = Duration::from_secs(6), quick Duration::from_millis(500)
            => "seconds" "S" "how long each overload is measured (default 6)",
            |given| given.seconds(1..=86_400);
        warm_up: Duration = Duration::from_secs(1), quick Duration::from_millis(200)
            => "warm-up-ms" "" "", |given| given.milliseconds(1..=3_600_000);
        fill: Duration = Duration::from_secs(5), quick Duration::from_millis(200)
            => "fill-ms" "" "", |given| given.milliseconds(1..=3_600_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "overload",
    about: "what a node does with twice the rooms, joins, messages and bytes that fit. The server
runs on one core, all clients on another. A row is verified if all that counts was compared; lost
sessions, the slowest room, the node's memory and the time until all is normal again are figures.",
    defaults: Options::new,
    run,
};

names! {
    /// The resource that there is too little of.
    Row {
        Rooms = "rooms",
        Joins = "joins",
        Messages = "messages",
        Bytes = "bytes",
    }
}

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("rooms", "rooms"),
    ("fit", "rooms_fit"),
    ("admitted", "rooms_admitted"),
    ("refused", "rooms_refused"),
    ("messages/s", "messages_per_s_due"),
    ("handled/s", "messages_per_s_handled"),
    ("conflated", "conflated"),
    ("hz", "hz_mean"),
    ("min", "hz_min"),
    ("max", "hz_max"),
    ("slowest", "slowest_share"),
    ("p99 ms", "interval_ms_p99"),
    ("wait ms", "wait_ms_p99"),
    ("rss MB", "rss_mb_start"),
    ("middle", "rss_mb_middle"),
    ("end", "rss_mb_end"),
    ("recovery s", "recovery_s"),
    ("lost", "lost"),
    ("server core", "server_core"),
    ("driver core", "driver_core"),
    ("compared", "compared"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    pin(DRIVER_CORE)?;
    report.begin(COLUMNS)?;
    let mut fit = options.rooms;
    for (name, row) in Row::NAMES {
        if options.row.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        let measured = match row {
            Row::Rooms => rooms_fit(options, &mut fit).and_then(|fit| rooms::measure(options, fit)),
            Row::Joins => rooms_fit(options, &mut fit).and_then(|fit| joins::measure(options, fit)),
            Row::Messages => messages::measure(options),
            Row::Bytes => bytes::measure(options),
        };
        match measured {
            Ok(record) => report.add(record)?,
            Err(failure) => {
                eprintln!("{name}: {failure}");
                report.wrong(true);
            }
        }
    }
    Ok(())
}

/// The number of rooms that fit, which is searched for once.
fn rooms_fit(options: &Options, known: &mut Option<u32>) -> Result<u32, window::Failure> {
    match *known {
        Some(fit) => Ok(fit),
        None => Ok(*known.insert(fit::rooms_that_fit(options)?)),
    }
}

impl Options {
    /// The rooms of `bench rooms`.
    fn case(&self) -> Case {
        Case {
            players: self.players,
            warm_up: self.warm_up,
            corrupt_one: self.corrupt_one,
            ..Case::new(false)
        }
    }
}

/// A run of this case with more work in each tick, so that the node is full before the clients are.
fn setup(case: &Case) -> Setup {
    let opening = Opening { tick_us: TICK_US, ..Opening::of(case.players) };
    Setup { opening, ..Setup::of(case) }
}

impl Row {
    /// Starts the record.
    fn record(self, case: &Case) -> Record {
        Record::of("overload")
            .with("row", self.name())
            .with("rooms", case.rooms)
            .with("players", case.players)
            .with("clients", case.clients())
            .with("hz_nominal", case.hz)
    }
}
