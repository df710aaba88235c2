//! The server of the conformance scenarios, for runners in other languages.
//!
//! `cargo run -p playfield-conformance` starts it on a free port of 127.0.0.1, and prints its URL as
//! one line. It ends when its standard input does. With a folder as its argument, it serves the
//! files in it under `/files`.

use std::env;
use std::io::{Read as _, Write as _, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let server = match playfield_conformance::start(folder.as_deref()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("the scenario server can't start: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", server.url());
    // An error means that nobody reads it, and then nobody holds the other end of the input.
    let _ = stdout().flush();
    let _ = stdin().read_to_end(&mut Vec::new());
    server.shutdown();
    ExitCode::SUCCESS
}
