//! A suite as a command: its options, in one table, and how it runs.

use std::io::Write;

use playfield_cli::options::{Failure, Given, Setter, Usage, describe, read};

use super::report::Report;
use super::reports::Reports;

/// Defines an enumeration whose values have names, on the command line and in reports.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$of])* $value,)* }

        impl $name {
            pub(crate) const NAMES: &'static [(&'static str, Self)] =
                &[$(($text, Self::$value),)*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$value => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> std::result::Result<Self, String> {
                let named = Self::NAMES.iter().find(|(name, _)| *name == text);
                let names = || Self::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>();
                named.map(|(_, value)| *value).ok_or_else(|| {
                    format!("must be one of {}", names().join(", "))
                })
            }
        }
    };
}

/// Defines the options of a suite. Each has a default, another one for a quick run if needed, its
/// name, the placeholder for its value, its help, and how its value is read. An option without help
/// is internal. All suites have `--json`.
macro_rules! options {
    ($(#[$doc:meta])* $name:ident {
        $($field:ident: $type:ty = $default:expr $(, quick $quick:expr)?
            => $option:literal $value:literal $help:literal, |$given:ident| $read:expr;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* pub(crate) json: bool }

        impl $name {
            pub(crate) fn new(is_quick: bool) -> Self {
                let mut options = Self { $($field: $default,)* json: false };
                if is_quick {
                    $($(options.$field = $quick;)?)*
                }
                options
            }
        }

        impl $crate::harness::options::Options for $name {
            const SETTERS: &'static [playfield_cli::options::Setter<Self>] = &[
                $(playfield_cli::options::Setter::new($option, $value, $help, |options, $given| {
                    playfield_cli::options::set(&mut options.$field, $read)
                }),)*
                playfield_cli::options::Setter::new(
                    "json",
                    "",
                    "print one JSON object per line instead of tables",
                    |options, _| playfield_cli::options::set(&mut options.json, Ok(true)),
                ),
            ];

            fn is_json(&self) -> bool {
                self.json
            }
        }
    };
}

pub(crate) use {names, options};

/// The options of a suite.
pub(crate) trait Options: Sized + 'static {
    const SETTERS: &'static [Setter<Self>];

    fn is_json(&self) -> bool;
}

/// A suite of benchmarks.
pub(crate) struct Suite<O> {
    pub(crate) name: &'static str,
    /// A description of what it measures.
    pub(crate) about: &'static str,
    /// The options without any on the command line, for a quick run or not.
    pub(crate) defaults: fn(is_quick: bool) -> O,
    pub(crate) run: fn(&O, &mut Report<'_>) -> Result<(), Failure>,
}

/// A suite, whatever its options are.
pub trait Command: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// A description of the suite and its options.
    fn help(&self) -> String;

    /// Reads the arguments, and runs the suite.
    ///
    /// # Errors
    /// If arguments are wrong, the suite can't run, or a result is not as it should be.
    fn run(
        &self,
        arguments: Vec<String>,
        reports: &mut Reports,
        out: &mut dyn Write,
    ) -> Result<(), Failure>;
}

impl<O: Options> Command for Suite<O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> String {
        let options = describe(O::SETTERS.iter().map(|setter| &setter.opt));
        format!("\n{}: {}\n{options}", self.name, self.about)
    }

    fn run(
        &self,
        mut arguments: Vec<String>,
        reports: &mut Reports,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let before = arguments.len();
        arguments.retain(|argument| argument != "--quick");
        let mut options = (self.defaults)(arguments.len() < before);
        let parser = &mut lexopt::Parser::from_args(arguments);
        if !read(parser, O::SETTERS, &mut options, |_, _| Ok(false))? {
            let help = self.help();
            return Ok(out.write_all(help.trim_start().as_bytes())?);
        }
        reports.begin_suite(self.name);
        let mut report = Report::new(options.is_json(), reports, out);
        (self.run)(&options, &mut report)?;
        report.end()
    }
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
