//! Goals of the benchmarks: `goals.json`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::figure::{Figure, digits, grouped};
use super::library::{Library, Scope};
use super::page::origins;
use super::{FOLDER, at, error};

/// All goals.
pub(super) struct Goals(Vec<Goal>);

/// A limit of a figure.
struct Goal {
    /// The figure that is measured.
    what: String,
    figure: Figure,
    limit: Limit,
    /// The unit of figure and limit; empty for a ratio.
    unit: String,
}

enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Goals {
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let path = root.join(FOLDER).join("goals.json");
        let text = fs::read_to_string(&path).map_err(at(path.display()))?;
        Self::parse(&text).map_err(at(path.display()))
    }

    pub(super) fn parse(text: &str) -> io::Result<Self> {
        let goals: Vec<Value> = serde_json::from_str(text)?;
        goals.iter().map(Goal::parse).collect::<io::Result<_>>().map(Self)
    }

    /// The table of those that are missed, and how many there are.
    pub(super) fn table(&self, library: &Library) -> io::Result<String> {
        let scope = Scope { library, suite: None, group: None };
        let (mut rows, mut suites) = (String::new(), BTreeSet::new());
        let (mut met, mut missed, mut unknown) = (0, 0, 0);
        for goal in &self.0 {
            suites.extend(scope.suites(goal.figure.refs())?);
            let value = goal.figure.value(&scope).map_err(at(&goal.what))?;
            let Some(value) = value.and_then(|value| value.as_f64()) else {
                unknown += 1;
                continue;
            };
            let measured = goal.figure.scaled(value);
            if goal.limit.is_met(measured) {
                met += 1;
                continue;
            }
            missed += 1;
            let (limit, unit) = (goal.limit.text(), &goal.unit);
            let row = format!("| {} | {}{unit} | {limit}{unit} |\n", goal.what, digits(measured));
            rows.push_str(&row);
        }
        let mut text = format!("Goals that are met: {met}, missed: {missed}");
        if unknown > 0 {
            text.push_str(&format!(", not measured yet: {unknown}"));
        }
        text.push_str(".\n");
        if missed > 0 {
            text.push_str(&format!(
                "\n| goal that is missed | measured | goal |\n|---|---|---|\n{rows}"
            ));
        }
        Ok(format!("{text}\n{}", origins(&suites, library)))
    }
}

impl Goal {
    fn parse(goal: &Value) -> io::Result<Self> {
        let what = goal["goal"].as_str().ok_or_else(|| error("a goal has no text"))?;
        let wrong = |why: &str| error(format!("{what:?}: {why}"));
        let figure = goal["figure"].as_str().ok_or_else(|| wrong("it has no figure"))?;
        let limit = match (goal["at_most"].as_f64(), goal["at_least"].as_f64()) {
            (Some(most), None) => Limit::AtMost(most),
            (None, Some(least)) => Limit::AtLeast(least),
            _ => return Err(wrong("it has either at_most or at_least")),
        };
        let unit = goal["unit"].as_str().map_or(String::new(), |unit| format!(" {unit}"));
        let figure = Figure::parse(figure).map_err(at(what))?;
        Ok(Self { what: what.to_owned(), figure, limit, unit })
    }
}

impl Limit {
    fn is_met(&self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= *most,
            Self::AtLeast(least) => value >= *least,
        }
    }

    fn text(&self) -> String {
        let (sign, value) = match self {
            Self::AtMost(most) => ("≤", most),
            Self::AtLeast(least) => ("≥", least),
        };
        format!("{sign} {}", grouped(&value.to_string()))
    }
}
