//! `playfield`: begins a game, and serves it while it is written.

mod dev;
mod name;
mod new;
mod templates;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use playfield_cli::options::{Failure, Usage};
use playfield_cli::{exit_code, schema};

const LOAD: &str = if cfg!(feature = "load") {
    "drive a running node with many clients, and measure it"
} else {
    "drive a running node with many clients: install with `--features load`"
};

fn help() -> String {
    format!(
        "\
Usage: playfield COMMAND [OPTIONS]

Commands:
  new NAME              write a game that runs into a new folder
  dev                   build and serve the game in this folder, and again after each save
  load URL              {LOAD}
  schema URL ROOM_TYPE  print the schema of a room type of a running node, as JSON
  help                  print this text

`COMMAND --help` prints the options of a command.
"
    )
}

fn main() -> ExitCode {
    exit_code(run(std::env::args_os().skip(1), &mut io::stdout()))
}

fn run(mut arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Failure> {
    let command = arguments.next().unwrap_or_else(|| "help".into());
    let parser = &mut lexopt::Parser::from_args(arguments);
    match &*command.to_string_lossy() {
        "new" => new::run(parser, out),
        "dev" => dev::run(parser, out),
        #[cfg(feature = "load")]
        "load" => playfield_cli::load::run(parser, "playfield", out),
        #[cfg(not(feature = "load"))]
        "load" => Err(io::Error::other(
            "this `playfield` was built without the load generator: install it with \
             `--features load`",
        )
        .into()),
        "schema" => {
            let none = || {
                Err(io::Error::other("this program has no rooms: say a node's URL and a room type"))
            };
            schema::run(parser, "playfield", none, out)
        }
        "help" | "-h" | "--help" => Ok(out.write_all(help().as_bytes())?),
        other => {
            Err(Usage(format!("unknown command {other:?}; use new, dev, load, schema or help"))
                .into())
        }
    }
}
