//! The options of a command: their help, their values, and errors about them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use playfield_server::closest;

/// More options are not listed in an error.
const LISTED_MAX: usize = 12;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong.
    Usage(Usage),
    /// An input is wrong, such as a file: a sentence that names it.
    Input(String),
    /// The work failed.
    Work(io::Error),
    /// The work finished, but a result could not be verified.
    Unverified,
    /// The work finished and nothing was wrong, but some results could not be measured on this
    /// machine: which, and why.
    Unmeasured(String),
}

/// The error in the arguments, in one sentence.
#[derive(Debug)]
pub struct Usage(pub String);

/// An option that a command takes.
pub struct Opt {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// The placeholder for its value in the help; empty if it takes none.
    pub value: &'static str,
    /// Its effect and its default, for the help; empty if it is internal.
    pub help: &'static str,
}

/// An option, and what it changes in the settings `S` of a command.
pub struct Setter<S> {
    /// Its description for people.
    pub opt: Opt,
    /// Takes its value.
    pub set: fn(&mut S, &mut Given<'_>) -> Result<(), Failure>,
}

impl<S> Setter<S> {
    /// An option with its name, the placeholder for its value, and its help.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        help: &'static str,
        set: fn(&mut S, &mut Given<'_>) -> Result<(), Failure>,
    ) -> Self {
        Self { opt: Opt { name, value, help }, set }
    }

    /// An option that programs give to themselves: it is not in the help.
    pub const fn internal(
        name: &'static str,
        set: fn(&mut S, &mut Given<'_>) -> Result<(), Failure>,
    ) -> Self {
        Self::new(name, "", "", set)
    }
}

/// An option on the command line, whose value is still to be read.
pub struct Given<'a> {
    /// Its name, without the dashes.
    pub name: &'static str,
    parser: &'a mut lexopt::Parser,
}

impl Given<'_> {
    /// Its value.
    pub fn value<T: FromStr>(&mut self) -> Result<T, Failure>
    where
        T::Err: std::fmt::Display,
    {
        value(self.parser, self.name)
    }

    /// Its value as it was given, such as the path of a file.
    pub fn text(&mut self) -> Result<OsString, Failure> {
        Ok(self.parser.value()?)
    }

    /// Its value, which must be in a range.
    pub fn within<T>(&mut self, range: RangeInclusive<T>) -> Result<T, Failure>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
        T::Err: std::fmt::Display,
    {
        within(self.parser, self.name, range)
    }

    /// Its value, which must be one of a few words.
    pub fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Result<T, Failure> {
        one_of(self.parser, self.name, words)
    }

    /// Its value: a number of milliseconds in a range.
    pub fn milliseconds(&mut self, range: RangeInclusive<u64>) -> Result<Duration, Failure> {
        self.within(range).map(Duration::from_millis)
    }

    /// Its value: a whole number of seconds in a range.
    pub fn seconds(&mut self, range: RangeInclusive<u64>) -> Result<Duration, Failure> {
        self.within(range).map(Duration::from_secs)
    }

    /// Its value: `on` or `off`.
    pub fn on_or_off(&mut self) -> Result<bool, Failure> {
        self.one_of(&[("on", true), ("off", false)])
    }
}

/// Sets a place to a value, unless that is wrong.
pub fn set<T>(place: &mut T, value: Result<T, Failure>) -> Result<(), Failure> {
    *place = value?;
    Ok(())
}

/// The options that were given. Each is taken once, or a value would be ignored in silence.
#[derive(Debug, Default)]
pub struct Once(BTreeSet<String>);

impl Once {
    /// Notes an option that is given, by its name without the dashes.
    ///
    /// # Errors
    /// If it was given before.
    pub fn note(&mut self, name: &str) -> Result<(), Failure> {
        if self.0.insert(name.to_owned()) {
            return Ok(());
        }
        Err(Usage(format!("--{name} is given twice: give it once")).into())
    }
}

/// Reads all arguments. `word` takes those that are not options, or returns whether it does not
/// expect one. Returns whether the command is to run: not if help is asked for.
pub fn read<S>(
    parser: &mut lexopt::Parser,
    setters: &'static [Setter<S>],
    settings: &mut S,
    mut word: impl FnMut(&mut S, &OsStr) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut once = Once::default();
    while let Some(argument) = parser.next()? {
        match &argument {
            Short('h') | Long("help") => return Ok(false),
            Value(text) if word(settings, text)? => continue,
            Long(name) => {
                if let Some(setter) = setters.iter().find(|setter| setter.opt.name == *name) {
                    once.note(setter.opt.name)?;
                    (setter.set)(settings, &mut Given { name: setter.opt.name, parser })?;
                    continue;
                }
            }
            Short(_) | Value(_) => {}
        }
        return Err(unknown(&argument, setters.iter().map(|setter| &setter.opt)));
    }
    Ok(true)
}

/// Adds a positional argument to a list of at most `most`. Returns whether it had space.
pub fn take_word(words: &mut Vec<String>, word: &OsStr, most: usize) -> Result<bool, Failure> {
    let takes = words.len() < most;
    if takes {
        words.push(word.to_string_lossy().into_owned());
    }
    Ok(takes)
}

/// The lines of help for options.
#[must_use]
pub fn describe<'a>(options: impl IntoIterator<Item = &'a Opt>) -> String {
    let mut text = String::new();
    for Opt { name, value, help } in options {
        if help.is_empty() {
            continue;
        }
        let shown =
            if value.is_empty() { format!("--{name}") } else { format!("--{name} {value}") };
        let _ = writeln!(text, "  {shown:<24} {help}");
    }
    text
}

/// The error for an argument that the command does not know.
pub fn unknown<'a>(
    argument: &lexopt::Arg<'_>,
    options: impl IntoIterator<Item = &'a Opt>,
) -> Failure {
    let people = options.into_iter().filter(|option| !option.help.is_empty());
    unknown_among(argument, people.map(|option| option.name.to_owned()))
}

/// An argument that the command does not know, which takes these options.
pub fn unknown_among(argument: &lexopt::Arg<'_>, names: impl Iterator<Item = String>) -> Failure {
    let shown = match argument {
        lexopt::Arg::Short(letter) => format!("-{letter}"),
        lexopt::Arg::Long(name) => format!("--{name}"),
        lexopt::Arg::Value(value) => {
            return Usage(format!("unexpected argument {value:?}")).into();
        }
    };
    let known: Vec<String> = names.chain(["help".into()]).collect();
    let meant = closest(shown.trim_start_matches('-'), known.iter().map(String::as_str));
    Usage(match meant {
        Some(meant) => format!("unknown option {shown}; did you mean --{meant}?"),
        None if known.len() > LISTED_MAX => {
            format!("unknown option {shown}; --help lists the options")
        }
        None => format!("unknown option {shown}; the options are --{}", known.join(", --")),
    })
    .into()
}

/// The value of the option just read.
pub fn value<T: FromStr>(parser: &mut lexopt::Parser, name: &str) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    let text = text(parser)?;
    text.parse().map_err(|error| Usage(format!("--{name} {text}: {error}")).into())
}

/// The value of the option just read. It is `true` for a switch without a value, before another
/// option or at the end.
pub fn text_or_true(parser: &mut lexopt::Parser, is_switch: bool) -> Result<String, Failure> {
    if is_switch {
        if let Some(value) = parser.optional_value() {
            return Ok(value.to_string_lossy().into_owned());
        }
        let rest = parser.raw_args()?;
        if rest.peek().is_none_or(|next| next.as_encoded_bytes().starts_with(b"-")) {
            return Ok("true".into());
        }
    }
    text(parser)
}

/// The value of the option just read, which must be in a range.
pub fn within<T>(
    parser: &mut lexopt::Parser,
    name: &str,
    range: RangeInclusive<T>,
) -> Result<T, Failure>
where
    T: FromStr + PartialOrd + std::fmt::Display,
    T::Err: std::fmt::Display,
{
    let value = value(parser, name)?;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Usage(format!("--{name} {value} must be from {} to {}", range.start(), range.end())).into())
}

/// The value of the option just read, which must be one of a few words.
pub fn one_of<T: Copy>(
    parser: &mut lexopt::Parser,
    name: &str,
    words: &[(&str, T)],
) -> Result<T, Failure> {
    let text = text(parser)?;
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Usage(format!("--{name} {text}: must be one of {}", known.join(", "))).into()
    })
}

fn text(parser: &mut lexopt::Parser) -> Result<String, Failure> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

impl From<Usage> for Failure {
    fn from(usage: Usage) -> Self {
        Self::Usage(usage)
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(Usage(error.to_string()))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Work(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, LISTED_MAX, Opt, Setter, Usage, read, set, unknown, within};

    const OPTIONS: &[Opt] = &[
        Opt { name: "players", value: "N", help: "how many" },
        Opt { name: "secret", value: "", help: "" },
    ];

    #[test]
    fn an_unknown_option_error_names_what_was_meant_or_lists_the_known_options() {
        let text = |argument, options| match unknown(&argument, options) {
            Failure::Usage(Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            text(lexopt::Arg::Long("player"), OPTIONS),
            "unknown option --player; did you mean --players?"
        );
        for (argument, shown) in
            [(lexopt::Arg::Long("secret"), "--secret"), (lexopt::Arg::Short('p'), "-p")]
        {
            let expected = format!("unknown option {shown}; the options are --players, --help");
            assert_eq!(text(argument, OPTIONS), expected);
        }
        let many: Vec<_> = (0..LISTED_MAX)
            .map(|_| Opt { name: "players", value: "N", help: "how many" })
            .collect();
        let error = text(lexopt::Arg::Short('x'), &many[1..]);
        assert!(error.contains("the options are"), "{error}");
        assert_eq!(
            text(lexopt::Arg::Short('x'), &many),
            "unknown option -x; --help lists the options"
        );
    }

    #[test]
    fn a_value_out_of_range_error_names_the_range() {
        let mut parser = lexopt::Parser::from_args(["--players=0"]);
        parser.next().unwrap();
        let Err(Failure::Usage(Usage(text))) = within(&mut parser, "players", 1_u64..=9) else {
            panic!()
        };
        assert_eq!(text, "--players 0 must be from 1 to 9");
    }

    #[test]
    fn an_option_that_is_given_twice_is_refused() {
        const SETTERS: &[Setter<u8>] =
            &[Setter::new("players", "N", "how many", |players, given| {
                set(players, given.value())
            })];
        let players = |arguments: &[&str]| {
            let mut players = 0;
            let mut parser = lexopt::Parser::from_args(arguments);
            read(&mut parser, SETTERS, &mut players, |_, _| Ok(false)).map(|_| players)
        };
        assert!(matches!(players(&["--players=2"]), Ok(2)));
        let Err(Failure::Usage(Usage(text))) = players(&["--players=2", "--players", "3"]) else {
            panic!()
        };
        assert_eq!(text, "--players is given twice: give it once");
    }
}
