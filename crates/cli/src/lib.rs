//! The command line of a program that serves rooms.
//!
//! Exit status: 0 for success, 1 if something failed or could not be verified, 2 if the arguments
//! are wrong.

#[cfg(feature = "load")]
mod capacity;
mod codegen;
#[cfg(target_os = "linux")]
mod first;
mod generate;
#[cfg(feature = "load")]
pub mod load;
pub mod options;
mod replay;
mod saves;
pub mod schema;
mod schemas;
mod serve;
#[cfg(target_os = "linux")]
pub mod upgrade;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use playfield_server::{Config, Server};

use options::{Failure, Usage, unknown};

/// The commands beside `help`, as errors list them.
const COMMANDS: &str = "serve, upgrade, capacity, profile, replay, schema, generate, saves";

/// The bots of a program, each with the type of its room.
#[cfg(feature = "load")]
pub type Bots = Vec<(String, playfield_load::MakeBot)>;

/// The parts that a command needs of the server that a program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// All of it.
    Serve,
    /// Its room types: what needs keys or other files is left out.
    Describe,
    /// Its room types and its store, which is there already.
    Saves,
    /// Its room types, and what they need to run. Nothing outside is reached.
    Measure,
}

/// Runs the command that this process was started with. `make` makes the program's server, and
/// `bots` are its players for measurements.
pub fn main(
    #[cfg(feature = "load")] bots: Bots,
    make: impl FnOnce(Config, Purpose) -> io::Result<Server>,
) -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = name(arguments.next());
    // Without a lock, which would keep rooms that print from going on.
    let out = &mut io::stdout();
    exit_code(run(
        &program,
        arguments.collect(),
        #[cfg(feature = "load")]
        bots,
        make,
        out,
    ))
}

/// Reports a failure on standard error, and returns the exit status.
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    let (text, code) = match failure {
        Failure::Usage(Usage(what)) => (format!("{what}\nTry `help`."), ExitCode::from(2)),
        Failure::Input(what) => (what, ExitCode::from(2)),
        Failure::Work(error) => (error.to_string(), ExitCode::FAILURE),
        Failure::Unverified => ("a result could not be verified".to_owned(), ExitCode::FAILURE),
        Failure::Unmeasured(what) => (format!("not measured: {what}"), ExitCode::from(3)),
    };
    // If this can't be written, the status must suffice.
    let _ = writeln!(io::stderr(), "{text}");
    code
}

/// The program's name in its help: the name of its file.
fn name(path: Option<OsString>) -> String {
    let stem = path.as_deref().and_then(|path| Path::new(path).file_stem());
    stem.map_or_else(|| "server".into(), |stem| stem.to_string_lossy().into_owned())
}

fn run(
    program: &str,
    mut arguments: Vec<OsString>,
    #[cfg(feature = "load")] bots: Bots,
    make: impl FnOnce(Config, Purpose) -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let first = arguments.first().map(|argument| argument.to_string_lossy().into_owned());
    let command = match first.as_deref() {
        Some("-h" | "--help") => "help".to_owned(),
        // Options without a command are those of `serve`.
        Some(option) if option.starts_with('-') => "serve".to_owned(),
        None => "serve".to_owned(),
        Some(command) => {
            arguments.remove(0);
            command.to_owned()
        }
    };
    let parser = &mut lexopt::Parser::from_args(arguments);
    match command.as_str() {
        "serve" => serve::run(parser, program, |config| make(config, Purpose::Serve), out),
        "schema" => {
            schema::run(parser, program, || make(Config::default(), Purpose::Describe), out)
        }
        "generate" => {
            generate::run(parser, program, || make(Config::default(), Purpose::Describe), out)
        }
        "replay" => {
            replay::run(parser, program, || make(Config::default(), Purpose::Describe), out)
        }
        "saves" => saves::run(parser, program, || make(Config::default(), Purpose::Saves), out),
        #[cfg(feature = "load")]
        "capacity" => {
            let make = || make(Config::default(), Purpose::Describe);
            capacity::run(parser, program, bots, make, out)
        }
        #[cfg(feature = "load")]
        "profile" => {
            let make = || make(Config::default(), Purpose::Describe);
            capacity::profile::run(parser, program, bots, make, out)
        }
        #[cfg(not(feature = "load"))]
        "capacity" | "profile" => {
            let text = format!("{command}: this program was built without the feature `load`");
            Err(io::Error::other(text).into())
        }
        #[cfg(feature = "load")]
        playfield_measure::node::COMMAND => {
            let words = parser.raw_args()?.map(|word| word.to_string_lossy().into_owned());
            let words: Vec<_> = words.collect();
            Ok(playfield_measure::node::run(&words, |config| make(config, Purpose::Measure))?)
        }
        #[cfg(target_os = "linux")]
        "upgrade" => upgrade::run(parser, program, out),
        "help" => help(parser, program, out),
        other => {
            Err(Usage(format!("unknown command {other:?}; the commands are {COMMANDS}, help"))
                .into())
        }
    }
}

fn help(parser: &mut lexopt::Parser, program: &str, out: &mut dyn Write) -> Result<(), Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let text = match parser.next()? {
        None | Some(Short('h') | Long("help")) => overview(program),
        Some(Value(topic)) => match &*topic.to_string_lossy() {
            "serve" => serve::help(program),
            #[cfg(feature = "load")]
            "capacity" => capacity::help(program),
            #[cfg(feature = "load")]
            "profile" => capacity::profile::help(program),
            "schema" => schema::help(program),
            "generate" => generate::help(program),
            "replay" => replay::help(program),
            "saves" => saves::help(program),
            #[cfg(target_os = "linux")]
            "upgrade" => upgrade::help(program),
            other => {
                let text = format!("no help for {other:?}; there is help for {COMMANDS}");
                return Err(Usage(text).into());
            }
        },
        Some(other) => return Err(unknown(&other, &[])),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn overview(program: &str) -> String {
    format!(
        "\
Usage: {program} [COMMAND] [OPTIONS]

Commands:
  serve                 serve until interrupted; the default
  upgrade               replace a running process by a new one; the match goes on
  capacity ROOM_TYPE    measure what rooms cost, and say how many a machine carries
  profile ROOM_TYPE     run a room, and say what its fields cost
  replay FILE           run a recorded room again: print its state, or compare it
  schema                print the schemas of this program's room types, as JSON
  schema URL ROOM_TYPE  print the schema of a room type of a running node
  schema check OLD      fail if clients or saves of an older release would no longer be served or read
  generate LANGUAGE     write the types of rooms for clients: typescript, python
  saves COMMAND         list saved rooms and copies of saves, show and restore them
  help [COMMAND]        print this text, or the options of a command
"
    )
}
