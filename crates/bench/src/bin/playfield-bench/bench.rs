//! `bench`: the command line of the suites.

use std::io::Write;

use lexopt::Arg::{Long, Short, Value};
use playfield_cli::options::{Failure, Opt, Usage, unknown};

use crate::suites::SUITES;

const HELP: &str = "\
Usage: playfield-bench bench [SUITE] [OPTIONS]

Without a suite, runs all of them with default options (`--json` is allowed).
Each case runs in its own process. Every counted message is decoded and compared with a model. The
exit status is 1 if any differs, and 3 if none does and a row could not be measured.
";

const ALL: &[Opt] = &[Opt { name: "json", value: "", help: "print JSON instead of tables" }];

pub(crate) fn run(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match parser.next()? {
        Some(Value(name)) => {
            let name = name.to_string_lossy();
            match SUITES.iter().find(|suite| suite.name() == name) {
                Some(suite) => suite.run(parser, out),
                None => {
                    let known: Vec<&str> = SUITES.iter().map(|suite| suite.name()).collect();
                    let known = known.join(", ");
                    Err(Usage(format!("unknown suite {name:?}; use one of {known}")).into())
                }
            }
        }
        Some(Short('h') | Long("help")) => {
            let suites: String = SUITES.iter().map(|suite| suite.help()).collect();
            Ok(out.write_all(format!("{HELP}{suites}").as_bytes())?)
        }
        Some(Long("json")) => run_all(parser, &["--json"], out),
        Some(other) => Err(unknown(&other, ALL)),
        None => run_all(parser, &[], out),
    }
}

/// Every suite, with its defaults. A suite that is not verified does not keep the next from running.
fn run_all(
    parser: &mut lexopt::Parser,
    arguments: &[&str],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(other) = parser.next()? {
        return Err(unknown(&other, ALL));
    }
    let mut all = Ok(());
    for suite in SUITES {
        match suite.run(&mut lexopt::Parser::from_args(arguments), out) {
            Err(Failure::Unverified) => all = Err(Failure::Unverified),
            Err(unmeasured @ Failure::Unmeasured(_)) if all.is_ok() => all = Err(unmeasured),
            Err(Failure::Unmeasured(_)) => {}
            result => result?,
        }
    }
    all
}
