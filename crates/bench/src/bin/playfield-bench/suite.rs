//! The command line of a suite: its options, and what they change.

use std::io::{self, Write};

use playfield_bench::side::Side;
use playfield_cli::options::{self, Failure, Given, Setter, Usage, describe, set};

/// A suite of benchmarks, which the settings `S` control.
pub(crate) struct Suite<S: 'static> {
    pub(crate) name: &'static str,
    /// What it measures.
    pub(crate) about: &'static str,
    pub(crate) defaults: fn() -> S,
    pub(crate) setters: &'static [Setter<S>],
    /// Returns whether every result is right.
    pub(crate) run: fn(S, &mut dyn Write) -> Result<bool, Failure>,
}

/// A suite, whatever its settings are.
pub(crate) trait Command: Sync {
    fn name(&self) -> &'static str;

    fn help(&self) -> String;

    /// Reads the arguments, and runs the suite.
    fn run(&self, parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure>;
}

impl<S> Command for Suite<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> String {
        let options = describe(self.setters.iter().map(|setter| &setter.opt));
        format!("\n{}: {}\n{options}", self.name, self.about)
    }

    fn run(&self, parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
        let mut settings = (self.defaults)();
        if !options::read(parser, self.setters, &mut settings, |_, _| Ok(false))? {
            let help = self.help();
            return Ok(out.write_all(help.trim_start().as_bytes())?);
        }
        let is_verified = (self.run)(settings, out)?;
        if is_verified { Ok(()) } else { Err(Failure::Unverified) }
    }
}

/// What changes settings by the value of an option.
type Set<S> = fn(&mut S, &mut Given<'_>) -> Result<(), Failure>;

/// Turns a switch on.
pub(crate) fn on(switch: &mut bool) -> Result<(), Failure> {
    set(switch, Ok(true))
}

// Options that several suites have.

pub(crate) const fn json<S>(set: Set<S>) -> Setter<S> {
    Setter::new("json", "", "print one JSON object per line instead of tables", set)
}

pub(crate) const fn row<S>(set: Set<S>) -> Setter<S> {
    Setter::new("row", "NAME", "run only this row; an unknown name lists all rows", set)
}

pub(crate) const fn corrupt_one<S>(set: Set<S>) -> Setter<S> {
    Setter::internal("corrupt-one", set)
}

/// Which of its processes this one is.
pub(crate) const fn role<S>(set: Set<S>) -> Setter<S> {
    Setter::internal("role", set)
}

pub(crate) const fn form<S>(set: Set<S>) -> Setter<S> {
    Setter::new("form", "same|verified", "run only this form", set)
}

/// Of a suite whose rows are measured in turns.
pub(crate) const fn rounds<S>(set: Set<S>) -> Setter<S> {
    Setter::new("rounds", "N", "measurements per row; the fastest counts (default 9)", set)
}

/// Of a suite whose rows are measured in turns.
pub(crate) const fn round_ms<S>(set: Set<S>) -> Setter<S> {
    Setter::new("round-ms", "N", "duration of one measurement (default 10)", set)
}

pub(crate) const fn transport<S>(set: Set<S>) -> Setter<S> {
    Setter::new("transport", "tcp|ws", "native framing (default) or WebSocket", set)
}

/// The name of a row, one of these.
pub(crate) fn row_of<N: AsRef<str>>(
    given: &mut Given<'_>,
    names: &[N],
) -> Result<Option<String>, Failure> {
    let row: String = given.value()?;
    if names.iter().any(|name| name.as_ref() == row) {
        return Ok(Some(row));
    }
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("; ");
    Err(Usage(format!("unknown row {row:?}; use one of {names}")).into())
}

/// Whether this process is the server of a suite.
pub(crate) fn is_server(given: &mut Given<'_>) -> Result<bool, Failure> {
    given.one_of(&[("server", true)])
}

/// Which server this process is.
pub(crate) fn side(given: &mut Given<'_>) -> Result<Option<Side>, Failure> {
    given.one_of(Side::NAMES).map(Some)
}

/// What a suite returns that has no failures of its own.
pub(crate) fn verified(result: io::Result<bool>) -> Result<bool, Failure> {
    Ok(result?)
}
