//! `schema`: the schemas of this program, or of a running node, and whether older clients are served.

use std::io::{self, Write};
use std::path::Path;

use playfield_server::{Config, Server};
use playfield_wire::schema::check_compatible;

use crate::options::{Failure, Opt, Usage, describe, unknown};
use crate::schemas::{of_file, of_node, of_program};

const OPTIONS: &[Opt] = &[Opt {
    name: "root-certificate",
    value: "FILE",
    help: "over TLS, trust this certificate (PEM or DER), not the system's; may be repeated",
}];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} schema [options] [URL ROOM_TYPE]
       {program} schema check OLD [ROOM_TYPE]

Prints schemas as JSON: state, options, messages and events. Without arguments, those of this
program's room types, by name; otherwise that of a room type of a running node.
URL is tcp://host:port or ws://host:port, or tls://host:port or wss://host:port over TLS.

check fails, and says where, if this program could not serve clients that were built with the
schemas in the file OLD, which this command has printed for an older release.

Options:
{}",
        describe(OPTIONS)
    )
}

/// Prints schemas, or checks older ones. `make` makes the server of the program itself.
///
/// # Errors
/// If the arguments are wrong, the node can't be reached or has no such room type, or clients of an
/// older schema would not be served.
pub fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce(Config) -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let (mut words, mut roots) = (Vec::new(), Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => {
                return Ok(out.write_all(help(program).as_bytes())?);
            }
            Long("root-certificate") => {
                let path = std::path::PathBuf::from(parser.value()?);
                let certificate = std::fs::read(&path).map_err(|error| {
                    let path = path.display();
                    io::Error::new(error.kind(), format!("root-certificate {path}: {error}"))
                })?;
                roots.push(certificate);
            }
            Value(word) if words.len() < 3 => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unknown(&other, OPTIONS)),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => print_own(make, out),
        ["check", old] => check(Path::new(old), None, make, out),
        ["check", old, room_type] => check(Path::new(old), Some(room_type), make, out),
        [url, room_type] => {
            let schema = of_node(url, room_type, &roots)?;
            Ok(writeln!(out, "{}", schema.to_json_pretty())?)
        }
        _ => Err(Usage(
            "schema needs a URL and a room type, or neither: schema tcp://127.0.0.1:7350 table"
                .into(),
        )
        .into()),
    }
}

fn print_own(
    make: impl FnOnce(Config) -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let schemas: Vec<String> = of_program(make)?
        .iter()
        .map(|(name, schema)| {
            let name = serde_json::Value::from(name.as_str());
            format!("{name}: {}", schema.to_json_pretty()).replace('\n', "\n  ")
        })
        .collect();
    Ok(writeln!(out, "{{\n  {}\n}}", schemas.join(",\n  "))?)
}

/// Fails where clients that were built with the schemas in a file would not be served.
fn check(
    old: &Path,
    room_type: Option<&str>,
    make: impl FnOnce(Config) -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let own = of_program(make)?;
    let one = if let [(name, _)] = own.as_slice() { Some(name.as_str()) } else { None };
    let old = match of_file(old, room_type) {
        // A program with one room type needs no name for it.
        Err(_) if room_type.is_none() && one.is_some() => of_file(old, one)?,
        read => read?,
    };
    let mut wrong = Vec::new();
    for (name, client) in &old {
        match own.iter().find(|(known, _)| known == name) {
            None => wrong.push(format!("{name}: this program has no such room type")),
            Some((_, node)) => match check_compatible(node, client) {
                Ok(()) => writeln!(out, "{name}: clients of the older schema are served")?,
                Err(error) => wrong.push(format!("{name}: {error}")),
            },
        }
    }
    if old.is_empty() {
        wrong.push(format!("the file has no room type {:?}", room_type.unwrap_or_default()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(io::Error::other(wrong.join("\n")).into()) }
}
