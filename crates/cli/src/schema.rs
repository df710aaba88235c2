//! `schema`: the schema of a room type of a running node.

use std::io::{self, Write};
use std::time::Duration;

use playfield_client::{Error, connect};

use crate::options::{Failure, Opt, Usage, describe, unknown};

const OPTIONS: &[Opt] = &[Opt {
    name: "root-certificate",
    value: "FILE",
    help: "over TLS, trust this certificate (PEM or DER), not the system's; may be repeated",
}];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} schema [options] URL ROOM_TYPE

Prints the schema of a room type of a running node as JSON: its state, options, messages and events.
URL is tcp://host:port or ws://host:port, or tls://host:port or wss://host:port over TLS.

Options:
{}",
        describe(OPTIONS)
    )
}

/// Asks a node for the schema, and prints it.
///
/// # Errors
/// If the arguments are wrong, the node can't be reached, or it has no such room type.
pub fn run(parser: &mut lexopt::Parser, program: &str, out: &mut dyn Write) -> Result<(), Failure> {
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
            Value(word) if words.len() < 2 => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unknown(&other, OPTIONS)),
        }
    }
    let [url, room_type] = words.as_slice() else {
        return Err(Usage(
            "schema needs a URL and a room type: schema tcp://127.0.0.1:7350 table".into(),
        )
        .into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime
        .block_on(ask(url, room_type, &roots))
        // Errors name the setting of the client's API.
        .map_err(|error| explained(&error).replace("root_certificate", "--root-certificate"))
        .map_err(io::Error::other)?;
    Ok(writeln!(out, "{text}")?)
}

async fn ask(url: &str, room_type: &str, roots: &[Vec<u8>]) -> Result<String, Error> {
    let connect = connect(url).reconnect_for(Duration::ZERO);
    let connect = roots.iter().fold(connect, |connect, root| connect.root_certificate(root));
    let connection = connect.await?;
    let schema = connection.schema(room_type).await?;
    connection.close().await;
    Ok(schema.to_json_pretty())
}

/// An error with its causes.
fn explained(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
