//! The command line, as a library over a user's own rooms: arguments in, the work of other crates,
//! an exit status out.
//!
//! Exit status: 0 when all went well, 1 when something failed or could not be verified, 2 when the
//! arguments made no sense.

mod bench;
mod options;
mod reports;
mod schema;
mod serve;

pub use playfield_bench::{Allocations, count_allocations_by};

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use playfield_server::{Config, Server};

use options::{Failure, Usage, unknown};

const HELP: &str = "\
Usage: playfield [COMMAND] [OPTIONS]

Commands:
  serve         serve this program's rooms; so it does without a command
  bench SUITE   measure, and check what was measured: sync, constructs, packet, websocket, rooms
  schema URL ROOM_TYPE
                what a running node's rooms of a type are made of, as JSON
  help          this text; `help COMMAND` says more

`COMMAND --help` says more of each.
";

/// Runs the command that this process was given. `make` makes the server, when it is to serve.
pub fn main(make: impl FnOnce(Config) -> Server) -> ExitCode {
    let mut out = io::stdout().lock();
    match run(std::env::args_os().skip(1).collect(), make, &mut out) {
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

fn run(
    mut arguments: Vec<OsString>,
    make: impl FnOnce(Config) -> Server,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let first = arguments.first().map(|argument| argument.to_string_lossy().into_owned());
    let command = match first.as_deref() {
        Some("-h" | "--help") => "help".to_owned(),
        // Options without a command are the server's.
        Some(option) if option.starts_with('-') => "serve".to_owned(),
        None => "serve".to_owned(),
        Some(command) => {
            arguments.remove(0);
            command.to_owned()
        }
    };
    let parser = &mut lexopt::Parser::from_args(arguments);
    match command.as_str() {
        "serve" => serve::run(parser, make, out),
        "bench" => bench::run(parser, out),
        "schema" => schema::run(parser, out),
        "help" => help(parser, out),
        other => Err(Usage(format!(
            "there is no command {other:?}; there are serve, bench, schema, help"
        ))
        .into()),
    }
}

fn help(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let text = match parser.next()? {
        None | Some(Short('h') | Long("help")) => HELP.to_owned(),
        Some(Value(topic)) => match &*topic.to_string_lossy() {
            "serve" => serve::help(),
            "bench" => bench::help(),
            "schema" => schema::help(),
            other => {
                return Err(Usage(format!(
                    "there is no help on {other:?}; there is on serve, bench, schema"
                ))
                .into());
            }
        },
        Some(other) => return Err(unknown(&other, &[])),
    };
    Ok(out.write_all(text.as_bytes())?)
}
