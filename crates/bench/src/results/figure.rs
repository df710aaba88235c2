//! Figures: a value of a row, or two divided, in a few words.
//!
//! ```text
//! figure = term [" / " term] [":" format]
//! term   = ref | "max(" ref ")" | "min(" ref ")" | number
//! ref    = ["maybe "] [suite "."] field ["[" condition *("; " condition) "]"]
//! ```
//!
//! A condition is `name=value`, `name=value|value` for any of them, `name!=value`, or `name` for
//! rows where it has a value. Of several rows the first counts, unless it is the greatest or least
//! that is asked for. A field that no row has is an error, unless it is `maybe` there: results may
//! be older than the field. The format is a number of decimals, `k` for thousands, `M` for millions
//! or `%`; without one a number has about three digits.

use std::io;

use serde_json::Value;

use super::error;
use super::file::{Row, plain};
use super::library::Scope;

/// A statement about a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions(Vec<(String, Test)>);

#[derive(Clone, Debug, PartialEq)]
enum Test {
    IsOneOf(Vec<String>),
    IsNot(String),
    Present,
}

impl Conditions {
    /// Reads what is between the brackets.
    pub(super) fn parse(text: &str) -> io::Result<Self> {
        let one = |text: &str| match text.split_once('=') {
            None => (text.to_owned(), Test::Present),
            Some((name, value)) => match name.strip_suffix('!') {
                Some(name) => (name.to_owned(), Test::IsNot(value.into())),
                None => {
                    let values = value.split('|').map(str::to_owned).collect();
                    (name.to_owned(), Test::IsOneOf(values))
                }
            },
        };
        let all: Vec<_> = text.split("; ").map(one).collect();
        match all.iter().find(|(name, _)| !is_name(name)) {
            Some((name, _)) => Err(error(format!("the condition {name:?} has no name of a value"))),
            None => Ok(Self(all)),
        }
    }

    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn hold(&self, row: &Row) -> bool {
        self.0.iter().all(|(name, test)| {
            let value = row.get(name).unwrap_or(&Value::Null);
            match test {
                Test::IsOneOf(texts) => texts.contains(&plain(value)),
                Test::IsNot(text) => plain(value) != *text,
                Test::Present => !value.is_null(),
            }
        })
    }
}

/// A value of one row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ref {
    pub(super) suite: Option<String>,
    pub(super) field: String,
    pub(super) conditions: Conditions,
    /// Recorded results may be older than the field.
    pub(super) is_optional: bool,
    pick: Pick,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pick {
    First,
    Greatest,
    Least,
}

impl Ref {
    fn parse(text: &str) -> io::Result<Self> {
        for (start, pick) in [("max(", Pick::Greatest), ("min(", Pick::Least)] {
            if let Some(inner) = text.strip_prefix(start).and_then(|text| text.strip_suffix(')')) {
                return Ok(Self { pick, ..Self::parse(inner)? });
            }
        }
        let (text, is_optional) = match text.strip_prefix("maybe ") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (path, conditions) = match text.split_once('[') {
            None => (text, Conditions::none()),
            Some((path, rest)) => {
                let Some(conditions) = rest.strip_suffix(']') else {
                    return Err(error(format!("{text:?}: a ] is missing")));
                };
                (path, Conditions::parse(conditions)?)
            }
        };
        let (suite, field) = match path.split_once('.') {
            None => (None, path),
            Some((suite, field)) => (Some(suite.to_owned()), field),
        };
        if !is_name(field) || suite.as_ref().is_some_and(|suite| !is_suite(suite)) {
            return Err(error(format!("{text:?} is not the name of a value")));
        }
        Ok(Self { suite, field: field.to_owned(), conditions, is_optional, pick: Pick::First })
    }

    fn of(&self, scope: &Scope<'_>) -> io::Result<Option<Value>> {
        let rows = scope.rows(self)?;
        let mut values = rows.filter_map(|row| row.get(&self.field)).filter(|one| !one.is_null());
        let by_number = |one: &&Value, other: &&Value| {
            let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
            number(one).total_cmp(&number(other))
        };
        Ok(match self.pick {
            Pick::First => values.next(),
            Pick::Greatest => values.max_by(by_number),
            Pick::Least => values.min_by(by_number),
        }
        .cloned())
    }
}

/// A value or a ratio, and how it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    term: Term,
    divisor: Option<Term>,
    format: Format,
}

/// A value that is looked up, or a number of the document's own.
#[derive(Clone, Debug, PartialEq)]
enum Term {
    Ref(Ref),
    Number(f64),
}

impl Term {
    fn parse(text: &str) -> io::Result<Self> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let number = text.parse().map_err(|_| error(format!("{text:?} is not a number")))?;
            return Ok(Self::Number(number));
        }
        Ref::parse(text).map(Self::Ref)
    }

    fn of(&self, scope: &Scope<'_>) -> io::Result<Option<Value>> {
        match self {
            Self::Ref(value) => value.of(scope),
            Self::Number(number) => Ok(Some((*number).into())),
        }
    }

    fn as_ref(&self) -> Option<&Ref> {
        match self {
            Self::Ref(value) => Some(value),
            Self::Number(_) => None,
        }
    }
}

impl Figure {
    pub(super) fn parse(text: &str) -> io::Result<Self> {
        // A colon within brackets belongs to a value.
        let end = text.rfind([']', ')']).unwrap_or(0);
        let (terms, format) = match text[end..].find(':') {
            None => (text, Format::Digits),
            Some(place) => (&text[..end + place], Format::parse(&text[end + place + 1..])?),
        };
        let (term, divisor) = match terms.split_once(" / ") {
            None => (terms, None),
            Some((term, divisor)) => (term, Some(Term::parse(divisor)?)),
        };
        Ok(Self { term: Term::parse(term)?, divisor, format })
    }

    /// The values that it names.
    pub(super) fn refs(&self) -> impl Iterator<Item = &Ref> {
        std::iter::once(&self.term).chain(&self.divisor).filter_map(Term::as_ref)
    }

    /// Its value; `None` where nothing was recorded.
    pub(super) fn value(&self, scope: &Scope<'_>) -> io::Result<Option<Value>> {
        let Some(value) = self.term.of(scope)? else { return Ok(None) };
        let Some(by) = &self.divisor else { return Ok(Some(value)) };
        let Some(divisor) = by.of(scope)? else { return Ok(None) };
        if let (Some(term), Some(by)) = (self.term.as_ref(), by.as_ref()) {
            scope.check_machine(term, by)?;
        }
        match (value.as_f64(), divisor.as_f64()) {
            (Some(value), Some(divisor)) if divisor != 0.0 => Ok(Some((value / divisor).into())),
            _ => Err(error(format!("{value} / {divisor} is no number"))),
        }
    }

    /// Its text; `None` where nothing was recorded.
    pub(super) fn text(&self, scope: &Scope<'_>) -> io::Result<Option<String>> {
        Ok(self.value(scope)?.map(|value| self.format.text(&value)))
    }

    /// A value in the units in which the figure is written.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        value / self.format.unit()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Digits,
    Decimals(usize),
    Thousands,
    Millions,
    Percent,
}

impl Format {
    fn parse(text: &str) -> io::Result<Self> {
        match text {
            "k" => Ok(Self::Thousands),
            "M" => Ok(Self::Millions),
            "%" => Ok(Self::Percent),
            _ => text.parse().map(Self::Decimals).map_err(|_| {
                error(format!("unknown format {text:?}; use a number of decimals, k, M or %"))
            }),
        }
    }

    fn unit(self) -> f64 {
        match self {
            Self::Thousands => 1e3,
            Self::Millions => 1e6,
            Self::Percent => 0.01,
            Self::Digits | Self::Decimals(_) => 1.0,
        }
    }

    fn text(self, value: &Value) -> String {
        let Some(number) = value.as_f64() else {
            return match value {
                Value::Bool(yes) => (if *yes { "yes" } else { "no" }).into(),
                other => plain(other),
            };
        };
        let number = number / self.unit();
        match self {
            Self::Digits if !value.is_f64() => grouped(&value.to_string()),
            Self::Digits | Self::Thousands | Self::Millions => digits(number),
            Self::Decimals(count) => grouped(&format!("{number:.count$}")),
            Self::Percent => grouped(&format!("{number:.0}")),
        }
    }
}

/// Formats a number with about three digits. More would be noise.
pub(super) fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        _ => 3,
    };
    grouped(&format!("{number:.decimals$}"))
}

/// Puts commas between thousands.
pub(super) fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

/// Tells whether a text can name a suite, and so a file.
pub(super) fn is_suite(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Conditions, Figure, Format, digits};

    #[test]
    fn numbers_have_about_three_digits_and_commas() {
        let texts = [0.0, 0.0123, 0.674, 2.144, 26.34, 768.4, 7418.7, -1234567.8].map(digits);
        assert_eq!(texts, ["0", "0.012", "0.67", "2.14", "26.3", "768", "7,419", "-1,234,568"]);
        let whole = json!(15544);
        assert_eq!(Format::Digits.text(&whole), "15,544");
        assert_eq!(Format::Decimals(1).text(&whole), "15,544.0");
        assert_eq!(Format::Thousands.text(&whole), "15.5");
        assert_eq!(Format::Millions.text(&whole), "0.016");
        assert_eq!(Format::Percent.text(&json!(0.048)), "5");
        assert_eq!(Format::Digits.text(&json!("packed")), "packed");
    }

    #[test]
    fn conditions_compare_texts_numbers_and_what_is_missing() {
        let row = json!({"row": "read 8 B; x", "players": 30, "rate": null});
        let row = row.as_object().unwrap();
        for (text, holds) in [
            ("players=30", true),
            ("players=3", false),
            ("players=3|30", true),
            ("players!=3", true),
            ("rate=", true),
            ("rate", false),
            ("players=30; rate", false),
            ("nothing=", true),
        ] {
            assert_eq!(Conditions::parse(text).unwrap().hold(row), holds, "{text}");
        }
        assert!(Conditions::parse("a b=1").is_err());
    }

    #[test]
    fn figures_that_are_misspelled_are_refused() {
        for right in [
            "a",
            "s.a",
            "a[b=c: d]:2",
            "a[b=1; c!=2] / s.a[b=(3)]:%",
            "max(s.a[b]):k",
            "maybe s.a[b]:1",
            "2.5 / a:0",
        ] {
            Figure::parse(right).unwrap_or_else(|error| panic!("{right}: {error}"));
        }
        for wrong in ["", "a b", "a[b=1", "a:x", "a / ", "s/t.a", "mex(a)", "a[=1]", "1x / a"] {
            assert!(Figure::parse(wrong).is_err(), "{wrong}");
        }
    }
}
