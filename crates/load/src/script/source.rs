//! The text of a script, and its values: what is wrong is named with its line.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::SCRIPT_DEPTH_MAX;
use crate::name::Name;
use crate::settings::LoadError;

/// The longest time in a script: a month, in seconds.
const SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

/// The shortest time between two repetitions.
const EVERY_MIN: Duration = Duration::from_micros(1);

pub(super) struct Source<'t> {
    pub(super) file: &'t str,
    pub(super) text: &'t str,
}

pub(super) type Table<'t> = DeTable<'t>;
pub(super) type Item<'t> = Spanned<DeValue<'t>>;

impl Source<'_> {
    pub(super) fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        format!("{}:{}", self.file, before.matches('\n').count() + 1)
    }

    pub(super) fn refuse(&self, at: usize, why: &dyn Display) -> LoadError {
        LoadError::Usage(format!("{}: {why}", self.place(at)))
    }

    pub(super) fn wrong(&self, item: &Item<'_>, name: &str, wanted: &str) -> LoadError {
        let shown = self.text.get(item.span()).unwrap_or_default();
        self.refuse(item.span().start, &format!("{name} = {shown} must be {wanted}"))
    }

    /// Refuses what a table must not have.
    pub(super) fn known(
        &self,
        table: &Table<'_>,
        names: &[&str],
        takes: &str,
    ) -> Result<(), LoadError> {
        match table.keys().find(|name| !names.contains(&name.get_ref().as_ref())) {
            None => Ok(()),
            Some(name) => {
                let why = format!("{:?} is unknown here: {takes}", name.get_ref());
                Err(self.refuse(name.span().start, &why))
            }
        }
    }

    pub(super) fn text(&self, item: &Item<'_>, name: &str) -> Result<String, LoadError> {
        match item.get_ref() {
            DeValue::String(text) if !text.is_empty() => Ok(text.clone().into_owned()),
            _ => Err(self.wrong(item, name, "a text that is not empty")),
        }
    }

    pub(super) fn name(&self, item: &Item<'_>, name: &str) -> Result<Name, LoadError> {
        let parsed = match item.get_ref() {
            DeValue::String(text) => Name::parse(text),
            _ => None,
        };
        let wanted = "a text that is not empty, with {n}, {n/10} or {n%10} for the connection's \
                      number";
        parsed.ok_or_else(|| self.wrong(item, name, wanted))
    }

    pub(super) fn switch(&self, item: &Item<'_>, name: &str) -> Result<bool, LoadError> {
        match item.get_ref() {
            DeValue::Boolean(on) => Ok(*on),
            _ => Err(self.wrong(item, name, "true or false")),
        }
    }

    pub(super) fn whole(&self, item: &Item<'_>, name: &str, max: u64) -> Result<u64, LoadError> {
        let number = match item.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| *number <= max);
        number.ok_or_else(|| self.wrong(item, name, &format!("a whole number from 0 to {max}")))
    }

    pub(super) fn seconds(&self, item: &Item<'_>, name: &str) -> Result<Duration, LoadError> {
        let seconds = match item.get_ref() {
            DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let seconds = seconds.filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
        let wanted = || self.wrong(item, name, &format!("seconds, from 0 to {SECONDS_MAX}"));
        seconds.map(Duration::from_secs_f64).ok_or_else(wanted)
    }

    /// The time between two repetitions.
    pub(super) fn every(&self, item: &Item<'_>) -> Result<Duration, LoadError> {
        let wanted = "0, for as fast as answers come, or at least 0.000001";
        let is_zero = match item.get_ref() {
            DeValue::Float(number) => number.as_str().parse() == Ok(0.0),
            _ => true,
        };
        let every = self.seconds(item, "every")?;
        let is_enough = every >= EVERY_MIN || every.is_zero() && is_zero;
        is_enough.then_some(every).ok_or_else(|| self.wrong(item, "every", wanted))
    }

    /// A value of TOML as JSON.
    pub(super) fn json(&self, item: &Item<'_>, depth: usize) -> Result<Value, LoadError> {
        if depth >= SCRIPT_DEPTH_MAX {
            let why = format!("the value is nested deeper than {SCRIPT_DEPTH_MAX}");
            return Err(self.refuse(item.span().start, &why));
        }
        Ok(match item.get_ref() {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Boolean(on) => Value::from(*on),
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                let signed = i64::from_str_radix(digits, radix).map(Value::from);
                let value = signed.or_else(|_| u64::from_str_radix(digits, radix).map(Value::from));
                value.map_err(|_| self.wrong(item, "a number", "from -2^63 to 2^64 - 1"))?
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse::<f64>().ok();
                let number = number.and_then(serde_json::Number::from_f64);
                number.map(Value::Number).ok_or_else(|| self.wrong(item, "a number", "finite"))?
            }
            DeValue::Array(elements) => {
                let elements = elements.iter().map(|element| self.json(element, depth + 1));
                Value::Array(elements.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => {
                let members = table.iter().map(|(name, item)| {
                    Ok((name.get_ref().clone().into_owned(), self.json(item, depth + 1)?))
                });
                Value::Object(members.collect::<Result<Map<_, _>, LoadError>>()?)
            }
            DeValue::Datetime(_) => {
                return Err(self.wrong(item, "a value", "in quotes: rooms have no dates"));
            }
        })
    }
}
