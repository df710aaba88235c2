//! `bench sync`: the time of one sync, from comparing the state to writing every player's message.

mod case;
pub(crate) mod copies;
pub(crate) mod room;
mod run;

pub(crate) use self::run::{MEASURED, WARM_UP};

use playfield_cli::options::{Failure, Given, Setter, Usage, set};
use playfield_state::{Format, Tracking};

use self::case::{CARDS_MAX, Case, ENTITIES_MAX, PLAYERS_MAX};
use crate::harness::options::{self, Suite};
use crate::harness::process;
use crate::harness::report::{Column, Report};

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "sync",
    about: "the time of one sync, from comparing the state to writing every player's message.
Without options that select a case, runs all standard cases.",
    defaults: Options::new,
    run,
};

/// The options: those that select a case, and others.
pub(crate) struct Options {
    case: Case,
    /// The options that select a case.
    chosen: Vec<&'static str>,
    json: bool,
    /// The number of times that the sequence of iterations is restarted.
    sequences: u32,
    corrupt_one: bool,
    /// Measure the one case in this process, which is a child of the command's.
    in_process: bool,
    is_quick: bool,
}

impl Options {
    fn new(is_quick: bool) -> Self {
        let (json, corrupt_one, in_process) = (false, false, false);
        let (case, chosen) = (Case::default(), Vec::new());
        let sequences = if is_quick { 2 } else { 30 };
        Self { case, chosen, json, sequences, corrupt_one, in_process, is_quick }
    }

    /// The case, which an option is about to change.
    fn choose(&mut self, given: &Given<'_>) -> &mut Case {
        self.chosen.push(given.name);
        &mut self.case
    }
}

impl options::Options for Options {
    const SETTERS: &'static [Setter<Self>] = &[
        Setter::new(
            "workload",
            "NAME",
            "swift (default), colyseus, entities or windows",
            |s, given| set(&mut s.choose(given).which, given.value()),
        ),
        Setter::new("players", "N", "players per room (default 30)", |s, given| {
            set(&mut s.choose(given).players, given.within(1..=PLAYERS_MAX))
        }),
        Setter::new("cards", "N", "cards per hand (default 10)", |s, given| {
            set(&mut s.choose(given).cards, given.within(1..=CARDS_MAX))
        }),
        Setter::new(
            "scenario",
            "A|B",
            "A: the round and some hands change; B: every player's public state too (default)",
            |s, given| set(&mut s.choose(given).scenario, given.value()),
        ),
        Setter::new(
            "hands",
            "FRACTION",
            "share of hands that change per step (default 0.2)",
            |s, given| set(&mut s.choose(given).hands, given.within(0.0..=1.0)),
        ),
        Setter::new(
            "entities",
            "N",
            "number of entities, in entities and windows (default 10000)",
            |s, given| set(&mut s.choose(given).entities, given.within(1..=ENTITIES_MAX)),
        ),
        Setter::new("changed", "N", "entities that move per step (default 100)", |s, given| {
            set(&mut s.choose(given).changed, given.within(0..=ENTITIES_MAX))
        }),
        Setter::new(
            "order",
            "NAME",
            "which entities move in a step: neighbors (default) or scattered ones",
            |s, given| {
                let orders = [("neighbors", false), ("scattered", true)];
                set(&mut s.choose(given).scattered, given.one_of(&orders))
            },
        ),
        Setter::new("moving", "N", "players that move per step (default 1)", |s, given| {
            set(&mut s.choose(given).moving, given.within(0..=PLAYERS_MAX))
        }),
        Setter::new("format", "NAME", "packed (default) or json", |s, given| {
            let formats = [Format::Packed, Format::Json].map(|format| (format.name(), format));
            set(&mut s.choose(given).format, given.one_of(&formats))
        }),
        Setter::new(
            "tracking",
            "on|off",
            "compare only modified values (default on)",
            |s, given| {
                let trackings = [("on", Tracking::On), ("off", Tracking::Off)];
                set(&mut s.choose(given).tracking, given.one_of(&trackings))
            },
        ),
        Setter::new(
            "sequences",
            "N",
            "how often the 105 syncs of a case are repeated in a new room (default 30)",
            |s, given| set(&mut s.sequences, given.within(1..=1_000_000)),
        ),
        Setter::new("json", "", "print one JSON object per line instead of tables", |s, _| {
            set(&mut s.json, Ok(true))
        }),
        Setter::internal("corrupt-one", |s, _| set(&mut s.corrupt_one, Ok(true))),
        Setter::internal("in-process", |s, _| set(&mut s.in_process, Ok(true))),
    ];

    fn is_json(&self) -> bool {
        self.json
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

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    // A measurement's child process receives every option.
    let case = &options.case;
    if !options.in_process
        && let Some(idle) = options.chosen.iter().find(|name| !case.heeds(name))
    {
        return Err(Usage(format!("--{idle} has no effect on the workload {}", case.which)).into());
    }
    if options.in_process {
        process::end_with_parent();
        let outcome = run::measure(case, options.sequences, options.corrupt_one);
        if let Some(failure) = &outcome.failure {
            eprintln!("not verified: {failure}");
        }
        report.wrong(!outcome.verified());
        let record = outcome.report(case);
        return Ok(report.text(&record.line())?);
    }
    let is_one = !options.chosen.is_empty();
    let cases = if is_one { vec![case.clone()] } else { case::standard(options.is_quick) };
    report.begin(COLUMNS)?;
    for case in &cases {
        let mut arguments = case.arguments();
        arguments.push(format!("--sequences={}", options.sequences));
        if options.corrupt_one {
            arguments.push("--corrupt-one".into());
        }
        report.add_finished(&process::run(&arguments)?)?;
    }
    Ok(())
}
