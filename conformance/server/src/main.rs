//! The server of the conformance scenarios, for runners in other languages.
//!
//! `cargo run -p playfield-conformance` starts it on a free port of 127.0.0.1, and prints its URL as
//! one line. It ends when its standard input does.

use std::io::{Read as _, Write as _, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let server = match playfield_conformance::start() {
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
