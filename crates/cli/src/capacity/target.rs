//! A target in a file (TOML), whose keys are called as the options are.

use std::ffi::OsStr;
use std::path::Path;

use playfield_measure::TargetError;
use playfield_server::closest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Command, OPTIONS};
use crate::options::{self, Failure, Usage};

/// The values that a key takes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Whole,
    Switch,
}

/// The keys of a target.
const KEYS: [(&str, Kind); 11] = [
    ("players", Kind::Whole),
    ("hz", Kind::Whole),
    ("rate", Kind::Number),
    ("tls", Kind::Switch),
    ("cores", Kind::Number),
    ("clock", Kind::Number),
    ("memory", Kind::Number),
    ("bandwidth", Kind::Number),
    ("utilization", Kind::Number),
    ("safety", Kind::Number),
    ("price", Kind::Number),
];

impl Kind {
    fn wanted(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Whole => "a whole number",
            Self::Switch => "true or false",
        }
    }
}

/// Reads a target into a command, as if its values were on the command line.
pub(super) fn read(file: &Path, command: &mut Command) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Usage(format!("--target {}: {error}", file.display())))?;
    parse(&file.display().to_string(), &text, command)
}

fn parse(file: &str, text: &str, command: &mut Command) -> Result<(), Failure> {
    let refuse = |at: usize, why: &str| {
        let before = text.get(..at).unwrap_or(text);
        Usage(format!("{file}:{}: {why}", before.matches('\n').count() + 1))
    };
    let table = DeTable::parse(text).map_err(|error| {
        refuse(error.span().map_or(0, |span| span.start), &format!("no TOML: {}", error.message()))
    })?;
    let table = table.into_inner();
    for (key, value) in &table {
        let name = key.get_ref().as_ref();
        let Some((known, kind)) = KEYS.iter().find(|(known, _)| *known == name) else {
            return Err(refuse(key.span().start, &unknown(name)).into());
        };
        let shown = text.get(value.span()).unwrap_or_default();
        let Some(word) = word(value, *kind) else {
            let why = format!("{known} = {shown} must be {}", kind.wanted());
            return Err(refuse(value.span().start, &why).into());
        };
        let argument = match (*kind, word.as_str()) {
            (Kind::Switch, "false") => continue,
            (Kind::Switch, _) => format!("--{known}"),
            _ => format!("--{known}={word}"),
        };
        let mut parser = lexopt::Parser::from_args([argument]);
        match options::read(&mut parser, OPTIONS, command, |_, _: &OsStr| Ok(false)) {
            Err(Failure::Usage(Usage(why))) => {
                let why = why.replacen(&format!("--{known} "), &format!("{known} = "), 1);
                return Err(refuse(value.span().start, &why).into());
            }
            read => read?,
        };
    }
    command.target.check().map_err(|TargetError { name, must, .. }| {
        let value = table.iter().find(|(key, _)| key.get_ref().as_ref() == name);
        let span = value.map(|(_, value)| value.span()).unwrap_or_default();
        let shown = text.get(span.clone()).unwrap_or_default();
        refuse(span.start, &format!("{name} = {shown} must be {must}")).into()
    })
}

/// A value as a word of the command line, if it is of that kind.
fn word(value: &Spanned<DeValue<'_>>, kind: Kind) -> Option<String> {
    match (value.get_ref(), kind) {
        (DeValue::Boolean(on), Kind::Switch) => Some(on.to_string()),
        (DeValue::Integer(number), Kind::Number | Kind::Whole) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it.to_string())
        }
        (DeValue::Float(number), Kind::Number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn unknown(name: &str) -> String {
    let known = KEYS.map(|(known, _)| known);
    let meant = closest(name, known).map(|meant| format!("; did you mean {meant}?"));
    let meant = meant.unwrap_or_default();
    format!("a target has no key {name:?}{meant} Its keys are {}", known.join(", ")).replacen(
        " Its",
        if meant.is_empty() { ": its" } else { " Its" },
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::capacity::Command;
    use crate::options::{Failure, Usage};

    fn refused(text: &str) -> String {
        match parse("machine.toml", text, &mut Command::default()) {
            Err(Failure::Usage(Usage(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_target_has_the_values_of_the_options() {
        let mut command = Command::default();
        let text = "# The machine.\ncores = 8\nclock = 1.2\nmemory = 16_000\nprice = 0.3\n\
                    players = 0x1e\ntls = true\nsafety = 0.6\n";
        assert!(parse("machine.toml", text, &mut command).is_ok());
        let target = command.target;
        assert_eq!((target.cores, target.clock, target.memory), (8.0, 1.2, 16e9));
        assert_eq!((target.price, target.safety), (Some(0.3), 0.6));
        assert_eq!((command.players, command.tls), (Some(30), true));
    }

    #[test]
    fn a_wrong_target_is_refused_with_the_line_and_what_is_allowed() {
        for (text, expected) in [
            ("\ncores = 0", "machine.toml:2: cores = 0 must be a number above 0"),
            ("cores = \"many\"", "machine.toml:1: cores = \"many\" must be a number"),
            ("hz = 20.5", "machine.toml:1: hz = 20.5 must be a whole number"),
            ("tls = 1", "machine.toml:1: tls = 1 must be true or false"),
            ("players = 0", "machine.toml:1: players = 0 must be from 1 to 10000"),
            ("rate = 1e-300", "machine.toml:1: rate = 1e-300 must be 0, or from 0.001"),
            ("clock = 1e308", "machine.toml:1: clock = 1e308 must be from 0.01 to 100"),
            ("memory = -5", "machine.toml:1: memory = -5 must be a number above 0"),
            ("safety = 2", "machine.toml:1: safety = 2 must be above 0, and 1 at most"),
            ("core = 2", "machine.toml:1: a target has no key \"core\"; did you mean cores? Its"),
            (
                "seconds = 2",
                "machine.toml:1: a target has no key \"seconds\": its keys are players",
            ),
            ("clock = 1\ncores", "machine.toml:2: no TOML: "),
        ] {
            let said = refused(text);
            assert!(said.starts_with(expected), "{text:?}: {said}");
        }
    }
}
