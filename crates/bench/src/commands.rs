//! `record`, `tables` and `bench compare`: the command lines of results in files.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lexopt::Arg::{Long, Short, Value};
use playfield_bench::results::{
    Source, compare as compare_files, differing, record as record_suites, root, update,
};
use playfield_cli::options::{Failure, Opt, Usage, describe, unknown};

const RECORD: &str = "\
Usage: playfield-bench record [SUITE...] [OPTIONS]

Runs the commands that docs/benchmarks/suites.json has for each suite (all suites without a name),
writes docs/benchmarks/SUITE.json, and makes the tables of the documents anew. A suite with a row
that is not verified is not recorded; the exit status is then 1.

";

const RECORD_OPTIONS: &[Opt] = &[
    Opt {
        name: "from",
        value: "FILE",
        help: "take the lines that the suite printed before; - is the standard input",
    },
    Opt {
        name: "changed",
        value: "",
        help: "record although files differ from the commit; results say so",
    },
];

const TABLES: &str = "\
Usage: playfield-bench tables [OPTIONS]

Writes the tables of README.md and docs/*.md from docs/benchmarks/*.json.

";

const TABLES_OPTIONS: &[Opt] = &[Opt {
    name: "check",
    value: "",
    help: "change nothing, and list the tables that differ; the exit status is then 1",
}];

pub(crate) fn record(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut suites, mut from, mut changed) = (Vec::new(), None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(name) => suites.push(name.to_string_lossy().into_owned()),
            Long("from") => from = Some(parser.value()?),
            Long("changed") => changed = true,
            Short('h') | Long("help") => return help(RECORD, RECORD_OPTIONS, out),
            other => return Err(unknown(&other, RECORD_OPTIONS)),
        }
    }
    let source = match (from, &mut suites[..]) {
        (None, _) => Source::Suites(suites),
        (Some(from), [suite]) => {
            Source::Lines { suite: std::mem::take(suite), text: contents(Path::new(&from))? }
        }
        (Some(_), _) => return Err(Usage("--from: name one suite".into()).into()),
    };
    match record_suites(&source, changed, out)? {
        true => Ok(()),
        false => Err(Failure::Unverified),
    }
}

pub(crate) fn tables(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut checks = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("check") => checks = true,
            Short('h') | Long("help") => return help(TABLES, TABLES_OPTIONS, out),
            other => return Err(unknown(&other, TABLES_OPTIONS)),
        }
    }
    if !checks {
        for page in update(&root()?)? {
            writeln!(out, "{} is changed", page.display())?;
        }
        return Ok(());
    }
    let differing = differing(&root()?)?;
    if differing.is_empty() {
        return Ok(());
    }
    let text = format!("these differ; run `playfield-bench tables`: {}", differing.join(", "));
    Err(io::Error::other(text).into())
}

const COMPARE: &str = "\
Usage: playfield-bench bench compare OLD NEW [OPTIONS]

Says which figures have changed beyond the noise between two files: lines that suites printed with
--json, target/bench.jsonl, or recorded files such as docs/benchmarks/sync.json. Rows with the same
parameters are compared. The exit status is 1 if a figure got worse, and 2 if a file is not as it
should be.

";

const COMPARE_OPTIONS: &[Opt] =
    &[Opt { name: "json", value: "", help: "print one JSON object instead of sentences" }];

pub(crate) fn compare(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut files, mut is_json) = (Vec::new(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(file) => files.push(PathBuf::from(file)),
            Long("json") => is_json = true,
            Short('h') | Long("help") => return help(COMPARE, COMPARE_OPTIONS, out),
            other => return Err(unknown(&other, COMPARE_OPTIONS)),
        }
    }
    let [old, new] = &files[..] else {
        let text = format!("compare takes two files, OLD and NEW, and not {}", files.len());
        return Err(Usage(text).into());
    };
    let compared = compare_files(old, new).map_err(Failure::Input)?;
    match is_json {
        true => writeln!(out, "{}", compared.to_json())?,
        false => out.write_all(compared.text().as_bytes())?,
    }
    out.flush()?;
    match compared.is_worse() {
        true => {
            let text = format!("{} is worse than {}: see above", new.display(), old.display());
            Err(io::Error::other(text).into())
        }
        false => Ok(()),
    }
}

fn help(text: &str, options: &'static [Opt], out: &mut dyn Write) -> Result<(), Failure> {
    Ok(out.write_all(format!("{text}{}", describe(options.iter())).as_bytes())?)
}

fn contents(path: &Path) -> io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
}
