//! The cost of live profiles of rooms of the example `arena`.

use std::io;
use std::time::Duration;

use playfield_measure::{Drive, Plan, profile_cost};

use super::Options;
use crate::harness::report::{Column, Record, Report};

/// The room type of the example.
const ROOM_TYPE: &str = "arena";
/// Messages a second of each player.
const RATE: f64 = 5.0;
/// The number of rounds, each without profiles and with them.
const ROUNDS: u32 = 15;

const COLUMNS: &[Column] = &[
    ("rooms", "rooms"),
    ("players", "players"),
    ("% of a core", "core_percent"),
    ("profiled", "core_percent_profiled"),
    ("cost %", "cost_percent"),
    ("a quarter less", "cost_percent_p25"),
    ("a quarter more", "cost_percent_p75"),
];

pub(super) fn run(options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    report.begin(COLUMNS)?;
    let plan = Plan {
        room_type: ROOM_TYPE.into(),
        players: options.players as usize,
        is_default_size: false,
        hz: None,
        drive: Drive::Messages { name: None, value: None, rate: RATE, is_request: false },
        script: None,
        tls: None,
        time: Duration::from_secs(options.seconds.into()),
        is_whole: false,
    };
    let cost = profile_cost(&plan, options.rooms as usize, ROUNDS)?;
    let [without, with] = cost.cores(plan.time).map(|core| core * 100.0);
    let [less, more] = cost.quarters().map(|part| part * 100.0);
    report.add(
        Record::of("rooms")
            .with("workload", ROOM_TYPE)
            .with("row", "profile")
            .with("rooms", options.rooms)
            .with("players", options.players)
            .with("seconds", options.seconds)
            .with("rounds", ROUNDS)
            .measured("core_percent", without)
            .measured("core_percent_profiled", with)
            .measured("cost_percent", cost.part() * 100.0)
            .measured("cost_percent_p25", less)
            .measured("cost_percent_p75", more)
            .with("verified", true),
    )
}
