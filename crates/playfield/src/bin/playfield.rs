//! The tool without rooms of its own: for its benchmarks.

use std::process::ExitCode;

fn main() -> ExitCode {
    playfield::Server::new().run()
}
