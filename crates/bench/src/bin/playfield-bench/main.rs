//! `playfield-bench`: the benchmarks, and load and queries for any running node.

mod bench;
mod results;
mod suite;
mod suites;

use std::alloc::System;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use playfield_bench::{Allocations, count_allocations_by};
use playfield_cli::options::{Failure, Usage};
use playfield_cli::{exit_code, load, schema};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts allocations, so that `bench packet` and `bench websocket` can report how often an
/// operation allocates and how much memory a connection keeps. Counting takes longer than allocating
/// does (20 and 11 ns), so a release build counts only if it is asked to.
#[cfg_attr(any(debug_assertions, feature = "count-allocations"), global_allocator)]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HELP: &str = "\
Usage: playfield-bench COMMAND [OPTIONS]

Commands:
  bench [SUITE]         run benchmarks and verify their results; bench --help lists them
  record [SUITE...]     run suites, and write docs/benchmarks/SUITE.json and the tables of documents
  tables                make the tables of documents from docs/benchmarks
  load URL              drive a running node with many clients, and measure it
  schema URL ROOM_TYPE  print the schema of a room type of a running node, as JSON
  help                  print this text

`COMMAND --help` prints the options of a command.
";

fn main() -> ExitCode {
    if cfg!(any(debug_assertions, feature = "count-allocations")) {
        count_allocations_by(|| {
            let stats = ALLOCATOR.stats();
            Allocations {
                count: (stats.allocations + stats.reallocations) as u64,
                live_bytes: (stats.bytes_allocated - stats.bytes_deallocated) as u64,
            }
        });
    }
    exit_code(run(std::env::args_os().skip(1), &mut io::stdout().lock()))
}

fn run(mut arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Failure> {
    let command = arguments.next().unwrap_or_else(|| "help".into());
    let parser = &mut lexopt::Parser::from_args(arguments);
    match &*command.to_string_lossy() {
        "bench" => bench::run(parser, out),
        "record" => results::record(parser, out),
        "tables" => results::tables(parser, out),
        "load" => load::run(parser, "playfield-bench", out),
        "schema" => {
            let none = || {
                Err(io::Error::other("this program has no rooms: say a node's URL and a room type"))
            };
            schema::run(parser, "playfield-bench", none, out)
        }
        "help" | "-h" | "--help" => Ok(out.write_all(HELP.as_bytes())?),
        other => {
            let known = "bench, record, tables, load, schema or help";
            Err(Usage(format!("unknown command {other:?}; use {known}")).into())
        }
    }
}
