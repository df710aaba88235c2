//! `playfield-bench`: the benchmarks, and load and queries for any running node.

mod commands;

use std::alloc::System;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use playfield_bench::{Allocations, ROLES, Reports, SUITES, count_allocations_by};
use playfield_cli::options::{Failure, Usage};
use playfield_cli::{exit_code, load, schema};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts allocations, so that `bench packet` and `bench websocket` can report how often an
/// operation allocates and how much memory a connection keeps. Counting takes longer than
/// allocating does (20 and 11 ns), so a release build counts only if it is asked to.
#[cfg_attr(any(debug_assertions, feature = "count-allocations"), global_allocator)]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HELP: &str = "\
Usage: playfield-bench COMMAND [OPTIONS]

Commands:
  bench [SUITE]         run benchmarks and verify their results; bench --help lists them
  bench compare OLD NEW say which figures of two files of results have changed beyond the noise
  capacity --room ROOM  say how many rooms a machine carries: arena, table (of cards) or world
  record [SUITE...]     run suites, and write docs/benchmarks/SUITE.json and the tables of documents
  tables                make the tables of documents from docs/benchmarks
  load URL              drive a running node with many clients, and measure it
  schema URL ROOM_TYPE  print the schema of a room type of a running node, as JSON
  help                  print this text

`COMMAND --help` prints the options of a command.
";

const BENCH_HELP: &str = "\
Usage: playfield-bench bench [SUITE] [OPTIONS]
       playfield-bench bench compare OLD NEW

Without a suite, runs all of them with default options (`--json` and `--quick` are allowed), and
writes target/bench.html and target/bench.jsonl, if there is a folder target and not with --quick.
With --report FILE it writes that page, and the rows beside it, for one suite too.
Every counted message is decoded and compared with a model. The exit status is 1 if any differs, and
3 if none does and a row could not be measured. With --quick, a suite takes seconds: it shows that
the suite works, its figures mean nothing.
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
    let arguments: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(server) = playfield_bench::measured(&arguments) {
        return server.run();
    }
    exit_code(run(std::env::args_os().skip(1), &mut io::stdout()))
}

fn run(mut arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Failure> {
    let command = arguments.next().unwrap_or_else(|| "help".into());
    let rest: Vec<OsString> = arguments.collect();
    let texts = || rest.iter().map(|text| text.to_string_lossy().into_owned()).collect();
    let parser = &mut lexopt::Parser::from_args(rest.iter());
    match &*command.to_string_lossy() {
        "bench" => bench(texts(), out),
        "role" => role(texts()),
        "record" => commands::record(parser, out),
        "tables" => commands::tables(parser, out),
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

fn bench(mut arguments: Vec<String>, out: &mut dyn Write) -> Result<(), Failure> {
    match arguments.first().map(String::as_str) {
        Some("-h" | "--help") => {
            let suites: String = SUITES.iter().map(|suite| suite.help()).collect();
            return Ok(out.write_all(format!("{BENCH_HELP}{suites}").as_bytes())?);
        }
        Some("compare") => {
            return commands::compare(&mut lexopt::Parser::from_args(&arguments[1..]), out);
        }
        _ => {}
    }
    let named = report_file(&mut arguments)?;
    let mut reports = Reports::begin();
    let (result, page) = match arguments.first() {
        Some(name) if !name.starts_with('-') => {
            let Some(suite) = SUITES.iter().find(|suite| suite.name() == name) else {
                let known: Vec<&str> = SUITES.iter().map(|suite| suite.name()).collect();
                let known = known.join(", ");
                return Err(Usage(format!("unknown suite {name:?}; use one of {known}")).into());
            };
            arguments.remove(0);
            (suite.run(arguments, &mut reports, out), named)
        }
        _ => {
            let is_quick = arguments.iter().any(|argument| argument == "--quick");
            let default = Path::new("target").is_dir() && !is_quick;
            let page = named.or_else(|| default.then(|| PathBuf::from("target/bench.html")));
            (bench_all(&arguments, &mut reports, out), page)
        }
    };
    reports.end();
    // A run that fails leaves the old files.
    if let Some(page) = page.filter(|_| matches!(result, Ok(()) | Err(Failure::Unmeasured(_)))) {
        reports.write(&page)?;
        eprintln!("report: {}; rows: {}", page.display(), page.with_extension("jsonl").display());
    }
    result
}

/// Takes the option `--report FILE` out of the arguments, for whichever suites they run.
fn report_file(arguments: &mut Vec<String>) -> Result<Option<PathBuf>, Failure> {
    let Some(at) = arguments.iter().position(|argument| argument == "--report") else {
        return Ok(None);
    };
    arguments.remove(at);
    if at == arguments.len() {
        return Err(Usage("--report: name a file".into()).into());
    }
    let file = PathBuf::from(arguments.remove(at));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_file = file.file_name().is_some() && !file.is_dir();
    if !is_file || !folder.is_none_or(Path::is_dir) {
        let text = format!("--report {}: name a file in a folder that exists", file.display());
        return Err(Usage(text).into());
    }
    // The rows are in the file beside it with this extension.
    if file == file.with_extension("jsonl") {
        let page = file.with_extension("html");
        let text = format!(
            "--report {}: the page would replace the rows; name the page, such as {}",
            file.display(),
            page.display()
        );
        return Err(Usage(text).into());
    }
    Ok(Some(file))
}

/// Runs every suite. One that is not verified does not keep the next from running.
fn bench_all(
    arguments: &[String],
    reports: &mut Reports,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(other) = arguments.iter().find(|other| !["--json", "--quick"].contains(&&***other))
    {
        let text =
            format!("unknown option {other}; the options are --json, --quick, --report, --help");
        return Err(Usage(text).into());
    }
    let mut all = Ok(());
    for suite in SUITES {
        match suite.run(arguments.to_vec(), reports, out) {
            Err(Failure::Unverified) => all = Err(Failure::Unverified),
            Err(unmeasured @ Failure::Unmeasured(_)) if all.is_ok() => all = Err(unmeasured),
            Err(Failure::Unmeasured(_)) => {}
            result => result?,
        }
    }
    all
}

/// Serves as another process of a suite says.
fn role(mut words: Vec<String>) -> Result<(), Failure> {
    let name = if words.is_empty() { String::new() } else { words.remove(0) };
    let role = ROLES.iter().find(|role| role.name == name);
    let unknown = || Usage(format!("unknown role {name:?}"));
    Ok(role.ok_or_else(unknown)?.run(words)?)
}
