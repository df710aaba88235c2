//! The command line, as a library over a user's own rooms: arguments in, the work of other crates, an exit status out.
//!
//! Exit status: 0 when all went well, 1 when something failed or could not be verified, 2 when the arguments made no sense.

mod bench;
mod options;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use options::{Failure, Usage};

const HELP: &str = "\
Usage: playfield [COMMAND] [OPTIONS]

Commands:
  bench SUITE   measure, and check what was measured: sync
  help          this text; `help bench` says more

`COMMAND --help` says more of each.
";

/// Runs the command that this process was given.
pub fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    match run(std::env::args_os().skip(1), &mut out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(Usage(what))) => {
            eprintln!("{what}\nTry `help`.");
            ExitCode::from(2)
        }
        Err(Failure::Work(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Err(Failure::Unverified) => {
            eprintln!("what was measured could not be verified");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(arguments);
    match parser.next()? {
        Some(Value(command)) => match &*command.to_string_lossy() {
            "bench" => bench::run(&mut parser, out),
            "help" => help(&mut parser, out),
            other => Err(Usage(format!("there is no command {other:?}: bench, help")).into()),
        },
        None | Some(Short('h') | Long("help")) => Ok(out.write_all(HELP.as_bytes())?),
        Some(other) => Err(options::unknown(&other, &[])),
    }
}

fn help(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match parser.next()? {
        None => HELP.to_owned(),
        Some(lexopt::Arg::Value(topic)) if topic == "bench" => bench::help(),
        Some(other) => return Err(Usage(format!("there is no help on {other:?}: bench")).into()),
    };
    Ok(out.write_all(text.as_bytes())?)
}
