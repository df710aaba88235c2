//! `bench`: arguments of the suites.

use std::io::Write;

use lexopt::Arg::{Long, Short, Value};
use playfield_bench::sync::{self, CARDS_MAX, Case, PLAYERS_MAX, SEQUENCES};
use playfield_state::{Format, Tracking};

use crate::options::{Failure, Opt, Usage, describe, one_of, unknown, value, within};

const HELP: &str = "\
Usage: playfield bench SUITE [OPTIONS]

Each case runs in a process of its own. What is counted is decoded and compared; exit status 1 if not all was equal.

sync: the time of one sync, from the comparison of a state to every player's message.
Without options that choose a case, all standard cases.
";

const SYNC: &[Opt] = &[
    Opt { name: "workload", value: "NAME", help: "swift (default) or colyseus" },
    Opt { name: "players", value: "N", help: "players in the room (default 30)" },
    Opt { name: "cards", value: "N", help: "cards in each hand (default 10)" },
    Opt {
        name: "scenario",
        value: "A|B",
        help: "A: the round and some hands change; B: every player's public state too (default)",
    },
    Opt { name: "hands", value: "FRACTION", help: "hands in which a card changes (default 0.2)" },
    Opt { name: "format", value: "NAME", help: "packed (default) or json" },
    Opt { name: "tracking", value: "on|off", help: "compare only what was touched (default on)" },
    Opt { name: "json", value: "", help: "one JSON object a case instead of a table" },
    Opt { name: "sequences", value: "", help: "" },
    Opt { name: "corrupt-one", value: "", help: "" },
    Opt { name: "in-process", value: "", help: "" },
];

pub(crate) fn help() -> String {
    format!("{HELP}{}", describe(SYNC))
}

pub(crate) fn run(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match parser.next()? {
        Some(Value(suite)) => match &*suite.to_string_lossy() {
            "sync" => run_sync(parser, out),
            other => Err(Usage(format!("there is no suite {other:?}: sync")).into()),
        },
        None => Err(Usage("bench needs a suite: sync".into()).into()),
        Some(Short('h') | Long("help")) => Ok(out.write_all(help().as_bytes())?),
        Some(other) => Err(unknown(&other, &[])),
    }
}

fn run_sync(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = sync::Options {
        case: None,
        json: false,
        sequences: SEQUENCES,
        corrupt_one: false,
        in_process: false,
    };
    let mut case = Case::default();
    let mut chosen = false;
    while let Some(argument) = parser.next()? {
        let chooses = !matches!(argument, Long("json" | "sequences" | "corrupt-one" | "in-process"));
        match argument {
            Long("workload") => case.which = value(parser, "workload")?,
            Long("players") => case.players = within(parser, "players", 1..=PLAYERS_MAX)?,
            Long("cards") => case.cards = within(parser, "cards", 1..=CARDS_MAX)?,
            Long("scenario") => case.scenario = value(parser, "scenario")?,
            Long("hands") => case.hands = within(parser, "hands", 0.0..=1.0)?,
            Long("format") => {
                case.format =
                    one_of(parser, "format", &[("packed", Format::Packed), ("json", Format::Json)])?;
            }
            Long("tracking") => {
                case.tracking = one_of(parser, "tracking", &[("on", Tracking::On), ("off", Tracking::Off)])?;
            }
            Long("json") => options.json = true,
            Long("sequences") => options.sequences = within(parser, "sequences", 1..=1_000_000)?,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("in-process") => options.in_process = true,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, SYNC)),
        }
        chosen |= chooses;
    }
    if chosen || options.in_process {
        options.case = Some(case);
    }
    if sync::run(&options, out)? { Ok(()) } else { Err(Failure::Unverified) }
}
