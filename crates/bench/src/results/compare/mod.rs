//! Two files of results: which figures have changed beyond the noise.
//!
//! Rows with the same parameters are compared. The noise of a figure is the range of its rounds
//! (`us_min` to `us_max`) in both files together, or what the calibration measured, or what is
//! usual for its kind, whichever is larger. A time or a rate without a range has the widest range of
//! the others in its row, and of one machine the change of its speed between the two rows is noise.
//! Times and rates of different machines are scaled by their calibrations; ratios within a run are
//! compared as they are.

mod kind;
mod noise;
mod read;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use playfield_measure::machine::is_same;
use playfield_measure::{Change, Conditions, Finding, speed};
use serde_json::{Value, json};

use self::kind::{Kind, Unit};
use self::noise::{Pair, UNKNOWN_NOISE};
use self::read::Measured;

/// The changes between two files.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Rows that both files have.
    pub rows: usize,
    /// Rows that only the first and only the second have.
    pub alone: [usize; 2],
    /// The figures, with their rows.
    pub changes: Vec<(Place, Change)>,
    /// Remarks on the comparison, such as the scale.
    pub notes: Vec<String>,
}

/// The row of a figure: its suite and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    suite: String,
    parameters: Vec<(String, String)>,
    /// The number among rows with the same parameters, from 0.
    number: usize,
}

/// Compares two files: lines that suites printed with `--json`, or recorded files.
///
/// # Errors
/// A sentence with the file, and the line if one is at fault: a file can't be read, is cut or of
/// another version, or has no row in common with the other.
pub fn compare(old: &Path, new: &Path) -> Result<Compared, String> {
    let (before, now) = (placed(read::read(old)?), placed(read::read(new)?));
    let mut compared = Compared { rows: 0, alone: [0, 0], changes: Vec::new(), notes: Vec::new() };
    for (place, now) in &now {
        let Some(before) = before.get(place) else { continue };
        compared.rows += 1;
        compared.add(place, before, now);
    }
    let only = |rows: &BTreeMap<Place, Measured>| rows.len() - compared.rows;
    compared.alone = [only(&before), only(&now)];
    if compared.rows == 0 {
        let suites = |rows: &BTreeMap<Place, Measured>| {
            let mut suites: Vec<&str> = rows.keys().map(|place| place.suite.as_str()).collect();
            suites.dedup();
            suites.join(", ")
        };
        return Err(format!(
            "{}: no row has the parameters of one in {}; they have {} and {}",
            new.display(),
            old.display(),
            suites(&now),
            suites(&before)
        ));
    }
    compared.changes.sort_by_key(|(_, change)| change.finding());
    Ok(compared)
}

/// Rows by their place.
fn placed(rows: Vec<Measured>) -> BTreeMap<Place, Measured> {
    let mut placed = BTreeMap::new();
    for measured in rows {
        let parameters = measured.parameters().into_iter();
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).collect();
        let mut place = Place { suite: measured.suite.clone(), parameters, number: 0 };
        while placed.contains_key(&place) {
            place.number += 1;
        }
        placed.insert(place, measured);
    }
    placed
}

impl Compared {
    /// Returns whether a figure got worse by more than the noise.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count(Finding::Worse) > 0
    }

    /// Counts the figures with this finding.
    #[must_use]
    pub fn count(&self, finding: Finding) -> usize {
        self.changes.iter().filter(|(_, change)| change.finding() == finding).count()
    }

    fn add(&mut self, place: &Place, before: &Measured, now: &Measured) {
        let conditions = before.conditions().zip(now.conditions());
        let machines = [before.machine(), now.machine()];
        let speed = speed(&machines[0], &machines[1]);
        self.note(before.profile() == now.profile(), conditions, speed, &machines);
        let is_same_machine = is_same(&machines[0], &machines[1]);
        let pair =
            Pair { suite: &now.suite, rows: [&before.row, &now.row], conditions, is_same_machine };
        for (name, value) in &now.row {
            let Kind::Figure(figure) = Kind::of(&now.suite, name, &now.row) else { continue };
            let numbers = before.row.get(name).and_then(Value::as_f64).zip(value.as_f64());
            let Some(numbers) = numbers.filter(|(before, now)| *before > 0.0 && *now > 0.0) else {
                continue;
            };
            let scale = match (figure.unit, speed) {
                (Unit::Ratio | Unit::Memory | Unit::Amount, _) => 1.0,
                (Unit::Time, Some(speed)) => speed,
                (Unit::Rate, Some(speed)) => 1.0 / speed,
                (Unit::Time | Unit::Rate, None) => continue,
            };
            let change = Change {
                name: name.clone(),
                before: numbers.0,
                now: numbers.1 * scale,
                noise: pair.noise(name, figure, scale),
                better: figure.better,
                is_quiet: figure.unit == Unit::Amount
                    || conditions.is_none_or(|(before, now)| before.is_quiet && now.is_quiet),
            };
            self.changes.push((place.clone(), change));
        }
    }

    /// Notes how a row is compared, once for all rows that are compared in the same way.
    fn note(
        &mut self,
        same_build: bool,
        conditions: Option<(Conditions, Conditions)>,
        speed: Option<f64>,
        [old, new]: &[Value; 2],
    ) {
        let text = match (conditions, speed) {
            (Some((before, now)), Some(speed)) if !is_same(old, new) => format!(
                "times and rates are scaled by calibration: a core is {speed:.2} times as fast \
                 ({:.0} → {:.0} µs); ratios to baselines, bytes and intervals are compared as they \
                 are",
                before.us, now.us
            ),
            (_, None) if !same_build => "times and rates are not compared: one is of a debug \
                                         build, or does not say"
                .into(),
            (_, None) => "times and rates are not compared: the machines differ, and were not \
                          calibrated; ratios and bytes are"
                .into(),
            (None, _) => format!(
                "the machines were not calibrated: {:.0} % count as noise where no range is known",
                UNKNOWN_NOISE * 100.0
            ),
            _ => return,
        };
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The comparison, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} rows in both, {} figures\n", self.rows, self.changes.len());
        for (count, file) in self.alone.into_iter().zip(["first", "second"]) {
            if count > 0 {
                let _ = writeln!(text, "{count} rows are in the {file} file alone");
            }
        }
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        for (place, change) in &self.changes {
            let finding = change.finding();
            if finding == Finding::Equal {
                continue;
            }
            let noise = change.noise * 100.0;
            let _ = writeln!(
                text,
                "{}: {}: {change} (noise {noise:.0} %)",
                finding.name(),
                self.label(place)
            );
        }
        let findings = [Finding::Worse, Finding::TooNoisy, Finding::Better, Finding::Equal];
        let counts = findings.map(|finding| format!("{}: {}", finding.name(), self.count(finding)));
        text + &counts.join(", ") + "\n"
    }

    /// The suite, and the parameters in which its rows differ.
    fn label(&self, place: &Place) -> String {
        let others = || self.changes.iter().map(|(place, _)| place);
        let differs = |name: &str, value: &str| {
            let mut same_suite = others().filter(|other| other.suite == place.suite);
            same_suite.any(|other| {
                let of = other.parameters.iter().find(|(of, _)| of == name);
                of.is_none_or(|(_, of)| of != value)
            })
        };
        let shown = place.parameters.iter().filter(|(name, value)| differs(name, value));
        let mut label = place.suite.clone();
        shown.for_each(|(name, value)| label += &format!(" {name}={value}"));
        if place.number > 0 {
            label += &format!(" ({})", place.number + 1);
        }
        label
    }

    /// The comparison, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let changes = self.changes.iter().map(|(place, change)| {
            let parameters: BTreeMap<_, _> = place.parameters.iter().cloned().collect();
            json!({
                "suite": place.suite, "row": parameters, "figure": change.name,
                "before": change.before, "now": change.now, "change": change.part(),
                "noise": change.noise, "finding": change.finding().name(),
            })
        });
        json!({
            "compare": 1, "rows": self.rows, "rows_in_one_file": self.alone, "notes": self.notes,
            "changes": changes.collect::<Vec<_>>(), "worse": self.is_worse(),
        })
    }
}

#[cfg(test)]
mod tests;
