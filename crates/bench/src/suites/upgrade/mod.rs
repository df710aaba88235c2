//! `bench upgrade`: a node is replaced by new processes of it while players play.
//!
//! The node runs with two shards, the players in another process with the session of the Rust
//! client. Each room ticks at 20 Hz, changes with each tick, and sends an event each second. Each
//! player sends two steps and a request each second. Then one process after the other takes over.
//!
//! A player's pause is the longest time between two patches, from the order to upgrade until patches
//! come again; without an upgrade it is a tick. Events must follow each other, each request and each
//! step must be executed once, which the room counts and says in its replies, and no player may
//! need a snapshot.
//!
//! The rows *freeze* and *thaw* are of one room of 8 KiB with 4 players, on one core.

mod clients;
mod frozen;
mod server;

use std::cell::Cell;
use std::io;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use playfield_cli::options::Failure;

use crate::harness::fleet::Fleet;
use crate::harness::machine::raise_descriptors;
use crate::harness::options::{Suite, options, row_of};
use crate::harness::report::{Column, Record, Report};
use crate::harness::rounds::{self, Form};
use crate::harness::stats::Samples;
use clients::{Players, settle};
use server::{Processes, Upgraded};

pub(crate) use server::ROLE;

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &ROWS);
        upgrades: usize = 100, quick 2
            => "upgrades" "N" "number of upgrades (default 100)", |given| given.within(1..=10_000);
        rooms: usize = 100, quick 2
            => "rooms" "N" "number of rooms (default 100)", |given| given.within(1..=1_000);
        players: usize = 30, quick 3
            => "players" "N" "players in each room (default 30)", |given| given.within(1..=1_000);
        calm: Duration = Duration::from_millis(700), quick Duration::from_millis(800)
            => "calm-ms" "N" "time between two upgrades (default 700)",
            |given| given.milliseconds(10..=3_600_000);
        rounds: u32 = 9, quick 1
            => "rounds" "N" "measurements of freezing and thawing; the fastest counts (default 9)",
            |given| given.within(1..=10_000);
        round: Duration = Duration::from_millis(50), quick Duration::from_millis(1)
            => "round-ms" "N" "duration of one of them (default 50)",
            |given| given.milliseconds(1..=10_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "upgrade",
    about:
        "a node is replaced by new processes of it while players play: how long nothing changes for
each of them, and whether anything is lost, comes twice or is done twice; and how fast rooms are
frozen and thawed.",
    defaults: Options::new,
    run,
};

const ROWS: [&str; 3] = [UPGRADES, "freeze", "thaw"];
const UPGRADES: &str = "upgrades";

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("rooms", "rooms"),
    ("players", "players"),
    ("upgrades", "upgrades"),
    ("pause p50", "pause_ms_p50"),
    ("p99", "pause_ms_p99"),
    ("max", "pause_ms_max"),
    ("stopped p50", "stopped_ms_p50"),
    ("p99", "stopped_ms_p99"),
    ("max", "stopped_ms_max"),
    ("events lost", "events_lost"),
    ("doubled", "events_doubled"),
    ("done twice", "executed_twice"),
    ("not done", "not_executed"),
    ("snapshots", "snapshots"),
    ("resumed", "resumed"),
    ("verified", "verified"),
];

const FROZEN_COLUMNS: &[Column] = &[
    ("row", "row"),
    ("rooms/s", "rooms_per_second"),
    ("µs", "us_per_op"),
    ("median", "us_per_op_median"),
    ("bytes", "bytes_per_op"),
    ("verified", "verified"),
];

/// The patches after an upgrade that end a player's pause.
const PATCHES: u64 = 4;

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    let is_wanted = |name: &str| options.row.as_ref().is_none_or(|row| row == name);
    if is_wanted(UPGRADES) {
        report.begin(COLUMNS)?;
        upgrades(options, report)?;
    }
    let rows: Vec<_> =
        frozen::rows(options.corrupt_one).into_iter().filter(|row| is_wanted(row.name())).collect();
    if !rows.is_empty() {
        report.begin(FROZEN_COLUMNS)?;
        let forms: Vec<_> = rows.iter().map(|row| (row, Form::Same)).collect();
        let measured = rounds::all(&forms, options.rounds, options.round);
        for (measured, row) in measured.into_iter().zip(&rows) {
            let record = measured
                .record("upgrade", row.name(), Form::Same)
                .measured("rooms_per_second", 1e9 / measured.ns_per_op)
                .measured("us_per_op", measured.ns_per_op / 1e3)
                .measured("us_per_op_median", measured.ns_per_op_median / 1e3);
            report.add(measured.end(record))?;
        }
    }
    Ok(())
}

fn upgrades(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    raise_descriptors();
    let players = options.rooms * options.players;
    let mut processes = Processes::start(players)?;
    let mut fleet = Players::fleet(processes.address, options.rooms, options.players)?;
    fleet.run(options.calm);
    fleet.script.corrupt = options.corrupt_one;
    let (mut pauses, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..options.upgrades {
        if fleet.fault.is_some() {
            break;
        }
        fleet.script.mark();
        let upgraded = upgrade_once(&mut fleet, &mut processes)?;
        if (upgraded.rooms, upgraded.sessions) != (options.rooms, players) {
            let Upgraded { rooms, sessions, .. } = upgraded;
            fleet.fault = Some(format!("{rooms} rooms and {sessions} sessions went on"));
        }
        fleet.run(options.calm);
        stopped.push(milliseconds(upgraded.stopped));
        pauses.extend(fleet.script.pauses().map(milliseconds));
    }
    settle(&mut fleet)?;
    let counts = fleet.script.counts;
    if let Some(fault) = &fleet.fault {
        eprintln!("{UPGRADES}: {fault}");
    }
    let upgrades = stopped.len();
    let (pauses, stopped) = (Samples::new(pauses), Samples::new(stopped));
    let record = Record::of("upgrade")
        .with("row", UPGRADES)
        .with("rooms", options.rooms)
        .with("players", options.players)
        .with("upgrades", upgrades)
        .measured("pause_ms_p50", pauses.percentile(50.0))
        .measured("pause_ms_p99", pauses.percentile(99.0))
        .measured("pause_ms_max", pauses.percentile(100.0))
        .measured("stopped_ms_p50", stopped.percentile(50.0))
        .measured("stopped_ms_p99", stopped.percentile(99.0))
        .measured("stopped_ms_max", stopped.percentile(100.0))
        .with("events", counts.events)
        .with("patches", counts.patches)
        .with("replies", counts.replies)
        .with("events_lost", counts.events_lost)
        .with("events_doubled", counts.events_doubled)
        .with("executed_twice", counts.executed_twice)
        .with("not_executed", counts.not_executed)
        .with("snapshots", counts.snapshots)
        .with("resumed", counts.resumed)
        .with(
            "verified",
            fleet.fault.is_none() && upgrades == options.upgrades && counts.wrong() == 0,
        );
    report.add(record)?;
    Ok(())
}

/// Has the node replaced, and goes on until each player has patches of the next process.
fn upgrade_once(fleet: &mut Fleet<Players>, processes: &mut Processes) -> io::Result<Upgraded> {
    let (answers, answer) = sync_channel(1);
    let address = processes.address;
    // Nobody hears it if the run has failed.
    std::thread::spawn(move || _ = answers.send(server::upgrade(address)));
    let upgraded = Cell::new(None);
    fleet.until(|_, _| {
        if let Ok(answered) = answer.try_recv() {
            upgraded.set(Some(answered));
            return true;
        }
        false
    });
    let Some(upgraded) = upgraded.into_inner() else {
        fleet.check()?;
        return Err(io::Error::other("the upgrade was not answered"));
    };
    let upgraded = upgraded?;
    processes.replaced(&upgraded);
    let (before, all) = (fleet.script.counts.patches, fleet.script.pauses().count() as u64);
    // Requests that are under way belong to the process before.
    fleet.until(|players, _| {
        players.counts.patches >= before + PATCHES * all && players.all_have(PATCHES)
    });
    Ok(upgraded)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
